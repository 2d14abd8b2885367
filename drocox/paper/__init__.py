"""The reproduction of Hu & Chen (2022): data, protocol, runs, tables, figure and claims.

Data flows one way through the modules: ``datasets`` and ``protocol`` describe, ``prepare`` splits
and scales, ``run`` trains and evaluates one stack of models, ``sweep`` does so for all of them into
a ``store`` and verifies it by training again; ``selection`` chooses among the stored rows, called
*runs*; ``tables`` and ``figures`` show them; ``comparisons`` puts intervals on differences between
methods; ``claims`` holds the paper's claims against the runs, and ``theory`` against mathematics.

The library never imports this package. The studies of :mod:`drocox.beyond` build on it.
"""


class StoreError(RuntimeError):
    """A store is incomplete, damaged or in use; the message says what to do."""
