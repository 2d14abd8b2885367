"""Calls with one bad argument each, for tests of error messages."""

from collections.abc import Iterable, Mapping, Sequence

import pytest


def bad_calls(calls: Mapping[str, Sequence[str]], bad: Iterable[tuple[str, object, str]]) -> list:
    """Parameters of a test: function, name of the bad argument, its value, and the message.

    ``calls`` maps a function to the names of its arguments; ``bad`` lists argument, bad value and
    expected message.
    """
    cases = []
    for function, names in calls.items():
        for name, value, message in bad:
            if name in names:
                case = (function, name, value, message)
                cases.append(pytest.param(*case, id=f"{function}: {message}"))
    return cases
