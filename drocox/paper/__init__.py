"""The reproduction of Hu & Chen (2022): data, protocol, runs, tables, figure and claims.

Data flows one way through the modules: ``datasets`` and ``protocol`` describe, ``prepare`` splits
and scales, ``run`` trains and judges one stack of models, ``sweep`` does so for all of them into a
``store``, with the ``provenance`` of its rows; ``selection``, ``tables``, ``figures`` and
``claims`` read the stored rows, called *runs*. The library never imports this package.
"""


class StoreError(RuntimeError):
    """A store is incomplete, damaged, or made by other code; the message says what to do."""
