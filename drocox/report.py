r"""The audit: how well a model serves each group of patients, with intervals, on one page.

The figures of a group are ratios of sums over patients or pairs of patients
(:mod:`drocox.heldout`). Their intervals (:mod:`drocox.intervals`) speak of *this* model and of
other patients like these; that another sample would have given another model is not in them.
Groups that nobody named are searched for by :mod:`drocox.slices`.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd

from drocox import _checks
from drocox.data import SurvivalData
from drocox.heldout import (
    DIFFERENCE_COLUMNS,
    FEWEST_EVENTS,
    SCALES,
    Estimate,
    HeldOut,
    compare,
    expected_events,
)
from drocox.intervals import jackknife
from drocox.slices import find_slices

LABEL_WIDTH = 27  # of a group in the printed table


@dataclass(frozen=True, eq=False)
class Audit:
    """What :func:`audit` found; ``print`` shows it in 80 columns.

    Attributes
    ----------
    name : str
        Of the data.
    table : DataFrame
        A row for everybody, each group and each intersection of groups: ``attribute``, ``group``,
        ``patients``, ``events``, and the figures that :func:`audit` explains, each with an
        interval (``..._low``, ``..._high``).
    ci : DataFrame
        A row for each pair of groups of an attribute, in percentage points: the signed
        ``difference`` of their concordance, ``group`` less ``versus``, with an interval that is
        simultaneous over the attribute's pairs (``low``, ``high``); ``noise_floor``, the difference
        that a model without any shows on average in the most striking of the pairs, on as many
        patients as this pair has; ``beyond_noise``, whether the interval excludes 0.
    slices : DataFrame
        The same for the worst groups that a search found, the worst first, judged on patients who
        took no part in it and compared with others who have like scores.
    """

    name: str
    table: pd.DataFrame
    ci: pd.DataFrame
    slices: pd.DataFrame

    @property
    def sentence(self) -> str:
        """The finding in words, a line for each attribute and for each group found."""
        attributes = list(self.table["attribute"].unique())[1:]  # without everybody
        if len(attributes) > 1:
            attributes = attributes[:-1]  # without their intersections
        lines = []
        for name in attributes:
            lines.append(_attribute_sentence(name, self.ci[self.ci["attribute"] == name]))
        for row in self.slices[self.slices["high"] < 0].itertuples():
            lines.append(
                f"Found by search: {row.group}, ranked worse than {row.versus} by "
                f"{-row.difference:.1f} points ({-row.high:.1f} to {-row.low:.1f})."
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [textwrap.fill(line, 80) for line in self.sentence.splitlines()]
        heads = ["patients", "events", "conc.", "low", "high", "o/e", "low", "high"]
        table = self.table.filter(regex="^(patients|events|conc|cal)").set_axis(heads, axis=1)
        table = table.set_axis(_short_labels(self.table["group"]))
        text = table.to_string(float_format=_number_text, na_rep="")
        return "\n".join([*lines, "", text])

    def plot(self) -> object:
        """Draw concordance and calibration of every group, with intervals.

        Returns
        -------
        matplotlib Figure
        """
        import matplotlib.pyplot as plt  # here: the library does without

        table = self.table[self.table["concordance"].notna()]
        place = -np.arange(len(table))
        size = (6.4, 1.2 + 0.28 * len(table))
        with plt.rc_context({"text.parse_math": False}):  # a group may be called $x$
            figure, axes = plt.subplots(1, 2, sharey=True, figsize=size, layout="constrained")
            for ax, name in zip(axes, ("concordance", "calibration"), strict=True):
                ax.hlines(place, table[f"{name}_low"], table[f"{name}_high"])
                ax.plot(table[name], place, "o")
                ax.axvline(table[name].iloc[0], color="0.5", linestyle=":")
                ax.set(xlabel=name, yticks=place, yticklabels=table["group"])
        return figure

    def to_html(self, path: str | Path) -> Path:
        """Write the audit as one page that needs no other file.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Path
        """
        Path(path).write_text(page({"": self}), encoding="utf-8")
        return Path(path)


def page(audits: Mapping[str, Audit]) -> str:
    """The audits of one or several models as a page, laid out by ``page.html`` beside this module.

    Parameters
    ----------
    audits : mapping of str to Audit
        By the name of the model, which may be empty.

    Returns
    -------
    str
        HTML without scripts, styles, fonts or pictures from elsewhere; names are escaped.
    """
    layout = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True)
    environment.filters["number_text"] = _number_text
    return environment.from_string(layout).render(audits=audits)


def _attribute_sentence(name: str, rows: pd.DataFrame) -> str:
    """The finding on one attribute: its largest difference, beyond noise if there is one."""
    if rows.empty:
        return f"By {name}, nothing to compare: too few groups with {FEWEST_EVENTS} events."
    clear = rows["beyond_noise"].any()
    candidates = rows[rows["beyond_noise"] == clear]
    row = candidates.loc[candidates["difference"].abs().idxmax()]
    if row["difference"] < 0:
        better, worse = row["versus"], row["group"]
        low, high = -row["high"], -row["low"]
    else:
        better, worse = row["group"], row["versus"]
        low, high = row["low"], row["high"]
    return (
        f"By {name}, {'a' if clear else 'no'} difference beyond noise: {better} is "
        f"ranked better than {worse} by {abs(row['difference']):.1f} points (95 % "
        f"interval {low:.1f} to {high:.1f}); a perfectly fair model would show "
        f"{row['noise_floor']:.1f} on as many patients."
    )


def _number_text(value: float, digits: int = 2) -> str:
    """A number with some digits after the point; large ones by their power of ten."""
    if abs(value) >= 1000:
        return f"{value:.1e}"
    return f"{value:.{digits}f}"


def _short_labels(labels: Sequence[str]) -> list[str]:
    """Labels that fit their column, long ones without a middle, such that they stay distinct."""
    long = {label for label in labels if len(label) > LABEL_WIDTH}
    middle = (LABEL_WIDTH - 1) // 2
    for head in sorted(range(LABEL_WIDTH - 1), key=lambda size: abs(size - middle)):
        tail = LABEL_WIDTH - 1 - head
        short = {label: f"{label[:head]}…{label[-tail:]}" for label in long}
        if len(set(short.values())) == len(long):
            return [short.get(label, label) for label in labels]
    number = {label: f"…{k + 1}" for k, label in enumerate(sorted(long))}
    keep = LABEL_WIDTH - len(f"…{len(long)}")
    return [label[:keep] + number[label] if label in long else label for label in labels]


def _groups(data: SurvivalData) -> Iterator[tuple[str, str, np.ndarray]]:
    """Attribute, label and members of every group; everybody first, intersections last."""
    yield "", "everybody", np.full(len(data), True)
    families = [[name] for name in data.groups]
    if len(families) > 1:
        families.append(list(data.groups))
    for names in families:
        codes = np.column_stack([data.groups[name] for name in names])
        for cell in np.unique(codes, axis=0):
            labels = [data.group_labels[a][c] for a, c in zip(names, cell, strict=True)]
            yield " × ".join(names), ", ".join(labels), (codes == cell).all(axis=1)


def _checked_scores(scores) -> np.ndarray:
    """Scores as numbers; a patient without a score is named."""
    scores = _checks.array(scores)
    if scores.dtype.kind == "f" and scores.ndim == 1 and not np.isfinite(scores).all():
        bad = np.flatnonzero(~np.isfinite(scores))
        raise ValueError(
            f"scores holds {len(bad)} NaN or infinite value(s), the first in row {bad[0]}; score "
            "these patients, or leave them out of data and scores"
        )
    return _checks.numbers(scores, "scores", 1)


def _checked_folds(folds, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the folds, and which of them each patient is in, from 0."""
    if folds is None:
        return np.zeros(1, int), np.zeros(n, int)
    folds = _checks.array(folds)
    _checks.same_length(folds=folds, data=np.empty(n))
    if folds.ndim != 1 or pd.isna(folds).any():
        raise ValueError("folds must hold one label per patient, and none may be missing")
    return np.unique(folds, return_inverse=True)


def _training_parts(train, folds, labels: np.ndarray) -> list[tuple]:
    """Training part and its scores for each fold."""
    parts = [train] * len(labels)
    if isinstance(train, Mapping):
        if folds is None:
            raise ValueError("train is a mapping by fold; pass folds=, the fold of each patient")
        if missing := [str(label) for label in labels if label not in train]:
            raise ValueError(
                f"train lacks fold {', '.join(missing)}; pass a pair (SurvivalData, scores) for "
                "each label in folds"
            )
        parts = [train[label] for label in labels]
    for part in parts:
        pair = isinstance(part, tuple | list) and len(part) == 2
        if not pair or not isinstance(part[0], SurvivalData):
            raise TypeError(
                "train must be a pair (SurvivalData, scores of its patients), or a mapping of fold "
                "to such pairs"
            )
    return parts


def _held_out(data: SurvivalData, scores, folds, train) -> HeldOut:
    """The patients to be judged, once everything is checked."""
    if not isinstance(data, SurvivalData) or not data.groups:
        raise TypeError("data must be a SurvivalData with groups; see SurvivalData.from_frame")
    if data.event.sum() < FEWEST_EVENTS:
        raise ValueError(
            f"data has {data.event.sum()} event(s); an audit needs {FEWEST_EVENTS} or more"
        )
    scores = _checked_scores(scores)
    _checks.same_length(scores=scores, data=data.time)
    labels, fold = _checked_folds(folds, len(data))
    expected = None
    if train is not None:
        expected = np.empty(len(data))
        for k, (part, part_scores) in enumerate(_training_parts(train, folds, labels)):
            rows = fold == k
            expected[rows] = expected_events(part, part_scores, scores[rows], data.time[rows])
    patients = HeldOut(scores, data.time, data.event, fold, expected)
    if not patients.all_pairs.any():
        raise ValueError("folds leaves nobody to be compared with; use fewer, larger folds")
    return patients


def _with_interval(name: str, estimate: Estimate) -> dict[str, float]:
    r"""A figure with the ends of its 95 % interval, the columns of a row.

    On the scale g of :data:`drocox.heldout.SCALES`, where the estimate is nearly normal,

    .. math:: g^{-1}\big(g(\hat\vartheta) \pm 1.96 \, \hat\sigma\big) .
    """
    forward, back = SCALES[name]
    centre = forward(estimate.value)
    if back is np.exp and not np.isfinite(centre):
        centre = np.nan  # hazards beyond the largest number
    covariance, _ = jackknife(forward(estimate.without)[:, None])
    half = 1.96 * np.sqrt(covariance.item())
    return {
        name: back(centre),
        f"{name}_low": back(centre - half),
        f"{name}_high": back(centre + half),
    }


def audit(data: SurvivalData, scores, *, folds=None, train: tuple | Mapping | None = None) -> Audit:
    r"""Judge how well scores serve the groups of ``data``, with 95 % intervals.

    ``c_index`` is Harrell's, among the group's own patients. ``concordance`` is the fraction of
    Algorithm B.1, the group's patients compared with everybody; its differences between groups make
    up concordance imparity. ``calibration`` is observed by expected events,

    .. math:: \sum_{i \in g} \delta_i \Big/ \sum_{i \in g} \hat H_0(Y_i)\, e^{f_i},

    with Breslow's baseline, and ``mean_risk`` the geometric mean of the hazards :math:`e^{f_i}`
    relative to everybody's. Groups with fewer than 5 events are counted, not judged.

    Parameters
    ----------
    data : SurvivalData
        With at least one attribute in ``groups``.
    scores : array of shape (n,)
        Log-hazards by a model that has not seen these patients; higher for earlier events.
    folds : array of shape (n,), optional
        Which model scored each patient, where several did (cross-fitting): only patients of one
        fold are compared.
    train : (SurvivalData, array), or a mapping of fold to such pairs, optional
        Training part and its scores, for the baseline hazard. Without it the baseline is that of
        ``data``, and calibration is relative: 1 on the whole.

    Returns
    -------
    Audit
        With ``table``, ``ci``, ``slices``, ``sentence``, ``plot()`` and ``to_html(path)``.

    Examples
    --------
    >>> from drocox import load_dataset
    >>> data = load_dataset("seer")
    >>> found = audit(data, data.X["nodes_positive"])
    >>> found.ci[["group", "versus", "difference"]].round(1)
          group     versus  difference
    0  age > 65  age <= 65        -3.0
    1     white  non-white         1.6
    """
    # what does not exist is NaN
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        patients = _held_out(data, scores, folds, train)
        table = []
        fractions: dict[str, list[tuple[str, Estimate]]] = {name: [] for name in data.groups}
        for attribute, label, members in _groups(data):
            events = data.event[members].sum()
            row = {"attribute": attribute, "group": label, "patients": members.sum()}
            row["events"] = events
            if events >= FEWEST_EVENTS:
                for name in SCALES:
                    estimate = getattr(patients, name)(members)
                    row |= _with_interval(name, estimate)
                    if name == "concordance" and attribute in fractions:
                        fractions[attribute].append((label, estimate))
            table.append(row)
        ci = []
        for attribute, groups in fractions.items():
            ci += _pairwise(attribute, groups)
        slices = find_slices(patients, data.X)
    return Audit(
        data.name, pd.DataFrame(table), pd.DataFrame(ci, columns=DIFFERENCE_COLUMNS), slices
    )


def _pairwise(attribute: str, groups: list[tuple[str, Estimate]]) -> list[dict]:
    """Differences of the concordance of every two groups of an attribute."""
    names = []
    differences = []
    for (versus, first), (group, second) in combinations(groups, 2):
        names.append({"attribute": attribute, "group": group, "versus": versus})
        difference = Estimate(second.value - first.value, second.without - first.without)
        differences.append(difference)
    return compare(names, differences)
