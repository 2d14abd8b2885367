"""The third floor: experiments beyond the paper, on its data and on invented patients.

It uses the library and the reproduction, and neither imports it: the sweep, the store and the
command line know its runs by the name ``beyond``. Each study is a module, see
:mod:`drocox.beyond.run`.
"""
