"""The reproduction of Hu & Chen (2022): data, protocol, runs, tables, figure and claims.

Data flows one way through the modules: ``datasets`` and ``protocol`` describe, ``prepare`` splits
and scales, ``run`` trains and evaluates one stack of models, ``sweep`` does so for all of them into
a ``store``, with the ``provenance`` of its rows; ``selection`` chooses among the stored rows,
called *runs*; ``tables`` and ``figures`` show them; ``claims`` counts by ``comparisons`` of
methods, and what needs no runs is ``checked``.

The library never imports this package. The studies of :mod:`drocox.beyond` build on it; they
register their store in ``work``, and the sweep runs and keeps them like the runs of the paper.
"""

from drocox.paper.work import StoreError

__all__ = ["StoreError"]
