"""Validation of arguments, for the public functions of the package only.

Inner loops call unchecked kernels. Every message names the argument and a remedy. pandas and torch
are imported where they are needed, so that a usage error on the command line is reported at once.
"""

import difflib
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import torch


def like(name: str, known: Iterable[str]) -> str:
    """The question "did you mean ...?" if one of the known names is similar, else nothing."""
    close = difflib.get_close_matches(str(name), map(str, known), 1)
    return f" did you mean {close[0]!r}?" if close else ""


def one_of(value: str, name: str, known: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``known``, else raise an error that lists them."""
    known = list(known)
    if value not in known:
        raise ValueError(f"unknown {name} {value!r}; choose one of: {', '.join(known)}")
    return value


def is_number(value: object) -> bool:
    """Whether ``value`` is a real number; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def number_in(value: float, name: str, low: float, high: float) -> float:
    """Return ``value`` as a float in the half-open interval (low, high]."""
    if not is_number(value):
        raise TypeError(f"{name} must be a number in ({low:g}, {high:g}], got {value!r}")
    if not low < float(value) <= high:
        raise ValueError(f"{name} must lie in ({low:g}, {high:g}], got {value!r}")
    return float(value)


def whole_number(value: int, name: str, least: int) -> int:
    """Return ``value`` as an int that is at least ``least``."""
    if not is_number(value) or not float(value).is_integer():
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value!r}")
    return int(value)


def at_least_zero(value: float, name: str) -> float:
    """Return ``value`` as a finite float >= 0."""
    if not is_number(value):
        raise TypeError(f"{name} must be a number >= 0, got {value!r}")
    if not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return float(value)


def array(values: Any) -> np.ndarray:
    """Return ``values`` as an array; tensors may require gradients and live on any device."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    values = values.detach().cpu()
    return (values.double() if values.is_floating_point() else values).numpy()  # bfloat16 too


def numbers(values: ArrayLike, name: str, ndim: int | None = None) -> np.ndarray:
    """Return ``values`` as a float64 array; refuse empty input, NaN and infinities."""
    given = array(values)
    if given.dtype.kind in "mM":  # NumPy would convert them to nanoseconds
        raise TypeError(f"{name} holds dates or durations; pass numbers, such as days since entry")
    try:
        out = np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numeric; encode its non-numeric values first") from error
    if ndim is not None and out.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {out.shape}")
    if out.size == 0:
        raise ValueError(f"{name} is empty; pass at least one patient")
    if bad := int((~np.isfinite(out)).sum()):
        raise ValueError(f"{name} holds {bad} NaN or infinite value(s); impute or drop them first")
    return np.require(out, requirements="W")  # columns of pandas 3 are read-only: torch warns


def outcomes(
    time: ArrayLike,
    event: ArrayLike,
    names: Sequence[str] = ("time", "event"),
    ndim: int | None = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return observed times (float64, >= 0) and event indicators (bool) of equal shape."""
    time = numbers(time, names[0], ndim)
    event = numbers(event, names[1], ndim)
    same_length(**{names[0]: time, names[1]: event})
    if time.shape != event.shape and min(time.ndim, event.ndim) > 1:
        said = f"{names[0]} has shape {time.shape}, {names[1]} {event.shape}"
        raise ValueError(f"{said}; pass both as (n,) or in the shape of the scores")
    time, event = map(np.ascontiguousarray, np.broadcast_arrays(time, event))
    if (time < 0).any():
        raise ValueError(f"{names[0]} holds negative values; durations start at 0")
    if not ((event == 0.0) | (event == 1.0)).all():
        raise ValueError(f"{names[1]} must be 0/1 or boolean (1 = event, 0 = censored)")
    event = event.astype(bool)
    if not event.any(axis=-1).all():
        raise ValueError(f"nobody has an event ({names[1]} is all 0); pass at least one event")
    return time, event


def same_length(**arrays: np.ndarray) -> None:
    """Refuse arrays whose last dimensions differ, naming each with its length."""
    if len({a.shape[-1] for a in arrays.values()}) > 1:
        said = ", ".join(f"{name} has {a.shape[-1]}" for name, a in arrays.items())
        raise ValueError(f"lengths differ: {said}; pass one value per patient")


def floats(values: Any, name: str) -> "torch.Tensor":
    """Return ``values`` as a floating tensor of shape (..., n), dtype and graph kept."""
    import torch

    if not isinstance(values, torch.Tensor):
        values = np.array(values)  # a copy: torch rejects negative strides
        if values.dtype.kind not in "fiub":
            raise TypeError(f"{name} must be numeric, got {values.dtype} values")
        values = torch.from_numpy(values)
    if values.device.type == "mps":  # Apple's GPU
        raise TypeError(f"{name} is on {values.device}, which has no float64; pass {name}.cpu()")
    if not values.is_floating_point():
        values = values.to(torch.float64)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"{name} is empty; pass a tensor of shape (..., n) with n >= 1")
    if not torch.isfinite(values.detach()).all():
        raise ValueError(f"{name} holds NaN or infinite values; check the model that made them")
    return values


def weights(values: ArrayLike, n: int) -> np.ndarray:
    """Return case weights of ``n`` patients: counts, finite, >= 0 and not all 0."""
    out = np.array(numbers(values, "weights", 1))  # a copy: torch rejects negative strides
    if len(out) != n:
        raise ValueError(f"weights must hold one number per patient ({n}), got {len(out)}")
    if (out < 0).any() or not 0 < out.sum() < np.inf:
        raise ValueError("weights must be finite numbers >= 0 that are not all zero")
    mean = out[out > 0].mean()
    if mean <= 0.5:  # such as shares that sum to 1: the log of their sum could be negative
        raise ValueError(
            f"weights are counts of patients, and these are {mean:.3g} on average, half a patient "
            f"or less; pass w / w.mean()"
        )
    return out


def install(extra: str) -> str:
    """What to do where something is missing that an extra of this package installs."""
    return f'run: pip install "drocox[{extra}]"'


def missing(what: str, extra: str) -> ModuleNotFoundError:
    """The error for something that an extra of this package installs."""
    return ModuleNotFoundError(f"{what}; {install(extra)}")


def labels(values: ArrayLike, name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels of ``n`` patients, sorted, and each patient's code 0, 1, ..."""
    import pandas as pd

    values = array(values)
    if values.ndim != 1 or len(values) != n:
        raise ValueError(f"{name} must hold one group label per patient ({n}), got {values.shape}")
    if pd.isna(values).any():
        raise ValueError(f"{name} holds missing values; give every patient a group label")
    try:
        return np.unique(values, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"{name} mixes types of labels; make them all text or numbers") from error


def codes(values: ArrayLike, name: str, n: int) -> np.ndarray:
    """Return group labels of ``n`` patients as integer codes 0..G-1, at least two groups."""
    groups, out = labels(values, name, n)
    if len(groups) < 2:
        raise ValueError(f"{name} holds a single group; a comparison needs at least two")
    return out
