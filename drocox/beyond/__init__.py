"""Studies beyond the paper, on its data, on other public data and on simulated patients.

They build on the library and on the reproduction, and neither imports them. Each study is a module,
see :mod:`drocox.beyond.run`.
"""

STUDIES = ("protection", "groups", "censoring", "rivals", "many_data_sets")
