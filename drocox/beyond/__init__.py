"""The third floor: experiments beyond the paper, on its data and on invented patients.

It uses the library and the reproduction; neither uses it, except that the sweep, the store and the
command line know its runs by the name ``beyond``. Each study is a module, see
:mod:`drocox.beyond.run`.
"""

# by name, with the modules that decide its numbers beside its own and those of all studies
STUDIES = {
    "protection": (),
    "groups": ("report",),
    "rivals": ("report", "beyond.groups", "beyond.protection"),
}
