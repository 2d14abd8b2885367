"""A word now and then from what takes long."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
PATIENCE = 5.0  # seconds without a word


def steps(items: Iterable[Item], words: str) -> Iterator[Item]:
    """Pass items on, and say every five seconds how far it is; notebooks are left alone.

    Parameters
    ----------
    items : iterable
    words : str
        What is being done.

    Returns
    -------
    iterator
        Of the same items.
    """
    items = list(items)
    last_word = time.monotonic()
    for k, item in enumerate(items):
        now = time.monotonic()
        if now - last_word > PATIENCE and "ipykernel" not in sys.modules:
            print(f"{words}: {k} of {len(items)}", file=sys.stderr, flush=True)
            last_word = now
        yield item
