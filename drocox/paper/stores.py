"""The stores of the paper: its protocols, registered as work."""

from drocox.paper.protocol import METHODS_OF
from drocox.paper.work import WORK, Work, register

for _protocol, _methods in METHODS_OF.items():
    register(_protocol, Work("drocox.paper.runner", _methods, begins={_protocol: "paper.run"}))


def known_stores() -> list[str]:
    """Names of all stores: those of the paper, then those that are registered besides.

    Returns
    -------
    list of str
    """
    return list(dict.fromkeys([*METHODS_OF, *WORK]))
