"""Calls with one bad argument each, for tests that it is refused by name."""

from collections.abc import Iterable, Mapping, Sequence

import pytest


def bad_calls(calls: Mapping[str, Sequence[str]], bad: Iterable[tuple[str, object, str]]) -> list:
    """Parameters of a test: function, name of the bad argument, its value, and the message.

    ``calls`` has the names of each function's arguments; ``bad`` has values that are refused, with
    the argument's name before and the message behind.
    """
    cases = []
    for function, names in calls.items():
        for name, value, message in bad:
            if name in names:
                case = (function, name, value, message)
                cases.append(pytest.param(*case, id=f"{function}: {message}"))
    return cases
