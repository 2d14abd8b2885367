"""Studies beyond the paper, on its data and on invented patients.

They stand on the library and on the reproduction, and neither imports them: importing this package
registers their store, ``beyond``, with :mod:`drocox.paper.work`. Each study is a module, see
:mod:`drocox.beyond.run`.
"""

from drocox.paper import work

STUDIES = ("protection", "groups", "censoring", "rivals", "many", "controls")

work.register(
    "beyond",
    work.Work(
        module="drocox.beyond.run",
        methods=STUDIES,
        begins={study: f"beyond.{study}" for study in STUDIES},
        uniform=False,  # a study has columns of its own, and a job many rows
    ),
)
