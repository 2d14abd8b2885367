"""Chapters' functions with their values and guards recorded, and with numbers that are not theirs.

A function that tells values is run as on the page (:func:`told`): every sentence must hold. To see
that its guards can fail, it is run again with perturbed arguments (:func:`failed`); :func:`check`
does both.
"""

from types import ModuleType

import numpy as np
import pandas as pd
import pytest


class Told:
    """What a function told the page: values by name, and for each sentence whether it held."""

    def __init__(self):
        self.values = {}
        self.held = {}

    def say(self, name, value):
        self.values[name] = str(value)

    def keep(self, name, shown, display=False):
        self.values[name] = shown

    def guard(self, holds, sentence):
        self.held[sentence] = self.held.get(sentence, True) and bool(holds)

    @property
    def failed(self):
        """The sentences that did not hold."""
        return {sentence for sentence, held in self.held.items() if not held}


def record(module: ModuleType, function: str, *arguments, strict: bool = True) -> Told:
    """Run a function of a chapter's module and record what it tells; lax: until it breaks."""
    told = Told()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("say", "guard", "keep"):
            patch.setattr(module, name, getattr(told, name), raising=False)
        try:
            getattr(module, function)(*arguments)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            if strict:
                raise
    return told


def told(module: ModuleType, function: str, *arguments) -> Told:
    """What a function tells of the real numbers: every sentence holds."""
    result = record(module, function, *arguments)
    assert not result.failed
    return result


def failed(module: ModuleType, function: str, *variants: tuple) -> set[str]:
    """The sentences that fail for at least one of several lists of perturbed arguments."""
    sentences = set()
    for arguments in variants:
        sentences |= record(module, function, *arguments, strict=False).failed
    return sentences


def check(module: ModuleType, function: str, *arguments, variants: list[tuple]) -> dict:
    """What a function tells: all sentences hold, and each fails for some of the variants."""
    result = told(module, function, *arguments)
    assert failed(module, function, *variants) == set(result.held)
    return result.values


def shuffled(numbers, seed: int):
    """The same numbers at other places.

    Of frames each numeric column is permuted, of series the values; in dicts, lists and tuples
    every element. Anything else stays.
    """
    rng = np.random.default_rng(seed)
    if isinstance(numbers, dict):
        return {key: shuffled(value, seed + i) for i, (key, value) in enumerate(numbers.items())}
    if isinstance(numbers, pd.Series):
        return pd.Series(rng.permutation(numbers.to_numpy()), numbers.index)
    if isinstance(numbers, pd.DataFrame):
        columns = {}
        for i, (_, column) in enumerate(numbers.items()):
            is_number = pd.api.types.is_numeric_dtype(column)
            columns[i] = rng.permutation(column.to_numpy()) if is_number else column.to_numpy()
        return pd.DataFrame(columns, numbers.index).set_axis(numbers.columns, axis=1)
    return numbers


def rescaled(numbers, factor: float, shift: float = 0.0):
    """The same structure with every number times a factor plus a shift; words stay."""
    if isinstance(numbers, dict):
        return {key: rescaled(value, factor, shift) for key, value in numbers.items()}
    if isinstance(numbers, pd.Series):
        return factor * numbers + shift
    if isinstance(numbers, pd.DataFrame):
        changed = {}
        for i, (_, column) in enumerate(numbers.items()):
            is_number = pd.api.types.is_numeric_dtype(column)
            changed[i] = factor * column + shift if is_number else column
        return pd.DataFrame(changed, numbers.index).set_axis(numbers.columns, axis=1)
    return numbers
