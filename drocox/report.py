r"""The audit: how well a model serves each group of patients, with intervals, on one page.

Every figure of the audit is a ratio of sums over patients or pairs of patients, so its value
without patient :math:`i` is known from what that patient adds to numerator and denominator. The
jackknife makes standard errors of these values,

.. math:: \widehat{\mathrm{Var}}(\hat\vartheta) = \frac{n-1}{n} \sum_i
          \big(\hat\vartheta_{(-i)} - \bar\vartheta\big)^2,

for all groups at once, in :math:`O(n \log n)`. They speak of *this* model and of other patients
like these; that another sample would have given another model is not in them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import special, stats
from sklearn.tree import DecisionTreeRegressor

from drocox import _checks, concordance
from drocox.data import SurvivalData
from drocox.page import HEADINGS, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST = 5  # events that a group needs to be judged
WORST = 3  # leaves of the tree that are judged
MOST = 100_000  # patients who are searched for badly served groups
DRAWS = 20_000  # of the largest of several errors
COMPARED = "attribute group versus difference low high noise_floor beyond_noise".split()
# the scale on which each estimate is nearly normal, and the way back
SCALES = {
    "c_index": (special.logit, special.expit),
    "concordance": (special.logit, special.expit),
    "calibration": (np.log, np.exp),
    "mean_risk": (np.log, np.exp),
}


def spread(without: np.ndarray) -> tuple[np.ndarray, float]:
    """Jackknife covariance of several estimates, and its degrees of freedom.

    Parameters
    ----------
    without : array of shape (n, k)
        The k estimates without each patient in turn.

    Returns
    -------
    covariance, df : array of shape (k, k), float
        The degrees of freedom are those of as many equal squares as the n unequal ones are worth.
    """
    apart = without - without.mean(axis=0)
    squares = apart**2
    size = squares.sum(axis=0)
    worth = np.divide(size**2, (squares**2).sum(axis=0), np.full(len(size), 2.0), where=size > 0)
    return (1 - 1 / len(apart)) * apart.T @ apart, max(1.0, worth.min() - 1)


def simultaneous(covariance: np.ndarray, df: float) -> tuple[float, float]:
    r"""Critical value for several estimates at once, and how large the largest error is.

    Parameters
    ----------
    covariance : array of shape (k, k)
        Of the k estimates.
    df : float
        Degrees of freedom of their standard errors.

    Returns
    -------
    critical, floor : float
        All k intervals, estimate ± critical × standard error, hold together with probability 95 %
        (Student's t for k = 1, else simulated with a fixed seed). The floor is the mean of
        :math:`\max_j |\epsilon_j|`: what is seen on average where nothing is.
    """
    error = np.sqrt(np.diag(covariance))
    if len(error) == 1:
        return float(stats.t.ppf(0.975, df)), float(np.sqrt(2 / np.pi) * error[0])
    rng = np.random.default_rng(0)
    size, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(size, 0)) @ axes.T  # the symmetric one is unique
    draws = rng.standard_normal((DRAWS, len(error))) @ root
    largest = np.abs(draws / np.where(error > 0, error, np.inf)).max(axis=1)
    largest /= np.sqrt(rng.chisquare(df, DRAWS) / df)
    return float(np.quantile(largest, 0.95)), float(np.abs(draws).max(axis=1).mean())


@dataclass(frozen=True)
class _Judged:
    """Held-out scores and outcomes; every method takes a mask of patients, the members of a group.

    Methods named after a column return its value, and its values without each patient in turn.
    """

    scores: np.ndarray
    time: np.ndarray
    event: np.ndarray
    fold: np.ndarray
    expected: np.ndarray | None = None  # events by the baseline of the training part

    def subset(self, rows: np.ndarray) -> _Judged:
        return _Judged(self.scores[rows], self.time[rows], self.event[rows], self.fold[rows])

    @cached_property
    def total(self) -> np.ndarray:
        return self.points(np.full(len(self.time), True))

    def points(self, members: np.ndarray, harrell: bool = False) -> np.ndarray:
        """Points and pairs of each member with the other members of its fold, shape (n, 2)."""
        out = np.zeros((len(members), 2))
        for fold in np.unique(self.fold[members & self.event]):
            rows = np.flatnonzero(members & (self.fold == fold))
            score, time, event = self.scores[rows], self.time[rows], self.event[rows]
            if harrell:  # those censored at a time come later, ...
                time = 2 * np.unique(time, return_inverse=True)[1] + ~event
            out[rows] = np.column_stack(concordance.pair_counts(score, time, event))
            if harrell:  # ... and two events at one time are no pair
                both = pd.DataFrame({"time": time, "score": score})
                alike = event * (both.groupby("time")["time"].transform("size") - 1)
                twins = event * (both.groupby(["time", "score"])["time"].transform("size") - 1)
                out[rows] -= np.column_stack([(alike + twins) / 2, alike])
        return out

    def c_index(self, members: np.ndarray) -> tuple[float, np.ndarray]:
        points = self.points(members, harrell=True)
        return _ratio(2 * points, points.sum(axis=0))  # a pair goes with either patient

    def concordance(self, members: np.ndarray) -> tuple[float, np.ndarray]:
        inside = members[:, None]
        # with partners in the group: known for members, and for others what is left
        partners = np.where(inside, self.points(members), self.total - self.points(~members))
        return _ratio(inside * self.total + partners, self.total[members].sum(axis=0))

    def calibration(self, members: np.ndarray) -> tuple[float, np.ndarray]:
        observed = members & self.event
        if self.expected is not None:
            return _ratio(np.column_stack([observed, members * self.expected]))
        total = 0.0
        lost = np.empty(len(members))
        for fold in np.unique(self.fold):
            rows = self.fold == fold
            event, inside = self.event[rows], members[rows]
            hazard = np.exp(self.scores[rows] - self.scores[rows].max())
            at, at_risk, step = _breslow(hazard, self.time[rows], event)
            share = _from_the_end(np.bincount(at, hazard * inside)) / at_risk
            total += (share * step * at_risk).sum()
            lost[rows] = event * share[at]
            # and the earlier risk sets lose a hazard: h / (D - h) = h/D + (h/D)^2 + ...
            for power in (1, 2):
                change = inside * np.cumsum(step)[at] - np.cumsum(share * step)[at]
                lost[rows] += hazard**power * change
                step = step / at_risk
        return _ratio(np.column_stack([observed, lost]), np.array([observed.sum(), total]))

    def mean_risk(self, members: np.ndarray) -> tuple[float, np.ndarray]:
        mean = np.bincount(self.fold, self.scores) / np.bincount(self.fold)
        score = self.scores - mean[self.fold]
        mine = _ratio(np.column_stack([members * score, members]))
        everybody = _ratio(np.column_stack([score, np.ones(len(score))]))
        return np.exp(mine[0] - everybody[0]), np.exp(mine[1] - everybody[1])


def assign_folds(strata, folds: int, seed: int) -> np.ndarray:
    """Deal patients into folds at random, each stratum as evenly as possible.

    Parameters
    ----------
    strata : array of shape (n,)
        For example events, or events by group.
    folds, seed : int

    Returns
    -------
    array of shape (n,)
        Fold of each patient, from 0.
    """
    shuffled = np.random.default_rng(seed).permutation(len(strata))
    order = shuffled[np.argsort(np.asarray(strata)[shuffled], kind="stable")]
    fold = np.empty(len(order), int)
    fold[order] = np.arange(len(order)) % folds
    return fold


def _ratio(lost: np.ndarray, total: np.ndarray | None = None) -> tuple[float, np.ndarray]:
    """A ratio of two totals, by default sums, and what it is when each patient's part is lost."""
    total = lost.sum(axis=0) if total is None else total
    left = total - lost
    return total[0] / total[1], left[:, 0] / left[:, 1]


def _from_the_end(values: np.ndarray) -> np.ndarray:
    return np.cumsum(values[::-1])[::-1]


def _breslow(hazard, time, event) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rank of each patient's time; sum of hazards at risk and step of the baseline, by rank."""
    at = np.unique(time, return_inverse=True)[1]
    at_risk = _from_the_end(np.bincount(at, hazard))
    return at, at_risk, np.bincount(at, event) / at_risk


def _expected(part: SurvivalData, train_scores, scores, time) -> np.ndarray:
    """Expected events of patients by the baseline hazard of a training part."""
    train_scores = _checks.numbers(train_scores, "scores in train", 1)
    _checks.same_length(**{"scores in train": train_scores, "train": part.time})
    top = train_scores.max()
    step = _breslow(np.exp(train_scores - top), part.time, part.event)[2]
    before = np.searchsorted(np.unique(part.time), time, side="right")
    return np.append(0, np.cumsum(step))[before] * np.exp(scores - top)


def _groups(data: SurvivalData) -> Iterator[tuple[str, str, np.ndarray]]:
    """Attribute, label and members of every group; everybody first, intersections last."""
    yield "", "everybody", np.full(len(data), True)
    for name, codes in data.groups.items():
        for code in np.unique(codes):
            yield name, data.group_labels[name][code], codes == code
    if len(data.groups) > 1:
        for cell in np.unique(data.group_matrix, axis=0):
            labels = (data.group_labels[a][c] for a, c in zip(data.groups, cell, strict=True))
            members = (data.group_matrix == cell).all(axis=1)
            yield " × ".join(data.groups), ", ".join(labels), members


def _compare(names: list[tuple], values: list[tuple[float, np.ndarray]]) -> list[tuple]:
    """Rows of differences in percent, with intervals that are simultaneous over them.

    ``names`` says of what: attribute, group, versus. ``values`` holds each difference, and its
    values without each patient in turn.
    """
    if not values:
        return []
    covariance, df = spread(100 * np.column_stack([without for _, without in values]))
    critical, floor = simultaneous(covariance, df)
    rows = []
    for k, half in enumerate(critical * np.sqrt(np.diag(covariance))):
        size = 100 * values[k][0]
        rows.append((*names[k], size, size - half, size + half, floor, abs(size) > half))
    return rows


def _paths(tree, X: pd.DataFrame, node: int = 0, path: tuple = ()) -> Iterator[tuple[int, str]]:
    """Number and description of every leaf; of thresholds on one side the last is the tightest."""
    if tree.children_left[node] < 0:
        yield node, " and ".join(dict(path).values())
        return
    name = X.columns[tree.feature[node]]
    words = [f"{name} {sign} {tree.threshold[node]:.4g}" for sign in ("≤", ">")]
    if X[name].isin((0, 1)).all():
        words = [f"not {name}", str(name)] if "=" in str(name) else [f"{name} = 0", f"{name} = 1"]
    for side, child in enumerate((tree.children_left[node], tree.children_right[node])):
        yield from _paths(tree, X, child, (*path, ((name, side), words[side])))


def _slices(judged: _Judged, X: pd.DataFrame) -> pd.DataFrame:
    """The worst leaves of a tree grown on one half of the patients, judged on the other.

    The tree explains discordance beyond that of patients with like scores (tenths of them): in the
    middle of the scores there is less to tell apart, however good the model. A leaf is compared
    with the others, weighted to have the leaf's scores.
    """
    rows = np.random.default_rng(0).permutation(len(X))[:MOST]
    half = assign_folds(judged.event[rows], 2, seed=0)
    first, second = rows[half == 0], rows[half == 1]
    rank = pd.Series(judged.scores).groupby(judged.fold).rank(pct=True)
    tenth = np.ceil(10 * rank).to_numpy()
    X = X.fillna(X.iloc[first].median()).fillna(0)

    counts = pd.DataFrame(judged.subset(first).total, columns=["points", "pairs"])
    alike = counts.groupby(tenth[first]).transform("sum")
    excess = alike["points"] / alike["pairs"] - counts["points"] / counts["pairs"]
    tree = DecisionTreeRegressor(max_leaf_nodes=6, min_samples_leaf=0.1, random_state=0)
    tree.fit(X.iloc[first].to_numpy(), excess.fillna(0), sample_weight=counts["pairs"])

    other, tenth = judged.subset(second), tenth[second]
    leaf = tree.apply(X.iloc[second].to_numpy())
    bad = tree.tree_.value.ravel()
    names, values, sizes = [], [], []
    for node, name in sorted(_paths(tree.tree_, X), key=lambda it: -bad[it[0]]):
        members = leaf == node
        events = other.event[members].sum()
        if len(names) == WORST or bad[node] <= 0 or events < FEWEST:
            continue
        value, without = other.concordance(members)
        weights = pd.Series(other.total[members, 1]).groupby(tenth[members]).sum()
        for like, weight in (weights / weights.sum()).items():
            mean, means = other.concordance(~members & (tenth == like))
            value -= weight * mean
            without = without - weight * means
        if np.isfinite(without).all():
            names.append(("found", name, "others with like scores"))
            values.append((value, without))
            sizes.append((members.sum(), events))
    found = pd.DataFrame(_compare(names, values), columns=COMPARED)
    found[["patients", "events"]] = sizes or np.empty((0, 2))
    return found


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
        simultaneous over the attribute's pairs (``low``, ``high``); ``noise_floor``, the largest
        difference that a model without any shows on average on as many patients;
        ``beyond_noise``, whether the interval excludes 0.
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
        said = []
        attributes = list(self.table["attribute"].unique())[1:]  # without everybody,
        for name in attributes[:-1] or attributes:  # and without intersections
            rows = self.ci[self.ci["attribute"] == name]
            if rows.empty:
                said.append(f"By {name}, nothing to compare: too few groups with {FEWEST} events.")
                continue
            clear = rows["beyond_noise"].any()
            rows = rows[rows["beyond_noise"]] if clear else rows
            row = rows.loc[rows["difference"].abs().idxmax()]
            names, low, high = [row["group"], row["versus"]], row["low"], row["high"]
            if row["difference"] < 0:
                names, low, high = names[::-1], -high, -low
            said.append(
                f"By {name}, {'a' if clear else 'no'} difference beyond noise: {names[0]} is "
                f"ranked better than {names[1]} by {abs(row['difference']):.1f} points (95 % "
                f"interval {low:.1f} to {high:.1f}); a perfectly fair model would show "
                f"{row['noise_floor']:.1f} on as many patients."
            )
        for row in self.slices[self.slices["high"] < 0].itertuples():
            said.append(
                f"Found by search: {row.group}, ranked worse than {row.versus} by "
                f"{-row.difference:.1f} points ({-row.high:.1f} to {-row.low:.1f})."
            )
        return "\n".join(said)

    def __str__(self) -> str:
        lines = [textwrap.fill(line, 80) for line in self.sentence.splitlines()]
        lines.append(f"\n{'patients':>42}{'events':>8}{'concordance':>15}{'obs./exp.':>15}")
        for row in self.table.itertuples():
            label = row.group if len(row.group) < 33 else f"{row.group[:15]}…{row.group[-16:]}"
            said = f"{label:33}{row.patients:9,}{row.events:8,}"
            for name in ("concordance", "calibration"):
                value, low, high = (getattr(row, name + end) for end in ("", "_low", "_high"))
                said += f" {value:.2f} {low:.2f}-{high:.2f}" if value == value else ""
            lines.append(said)
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Draw concordance and calibration of every group, with intervals.

        Returns
        -------
        matplotlib Figure
        """
        import matplotlib.pyplot as plt  # here: the library does without

        table = self.table[self.table["concordance"].notna()]
        place = -np.arange(len(table))
        with plt.rc_context({"text.parse_math": False}):  # a group may be called $x$
            size = (6.4, 1.2 + 0.28 * len(table))
            figure, axes = plt.subplots(1, 2, sharey=True, figsize=size, layout="constrained")
            for ax, name in zip(axes, ("concordance", "calibration"), strict=True):
                ax.hlines(place, table[f"{name}_low"], table[f"{name}_high"])
                ax.plot(table[name], place, "o")
                ax.axvline(table[name].iloc[0], color="0.5", linestyle=":")
                ax.set(xlabel=HEADINGS[name], yticks=place, yticklabels=table["group"])
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
        path = Path(path)
        path.write_text(page({"": self}), encoding="utf-8")
        return path


def audit(
    data: SurvivalData,
    scores,
    *,
    folds=None,
    train: tuple[SurvivalData, np.ndarray] | Mapping | None = None,
) -> Audit:
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
    """
    if not isinstance(data, SurvivalData) or not data.groups:
        raise TypeError("data must be a SurvivalData with groups; see SurvivalData.from_frame")
    if data.event.sum() < FEWEST:
        raise ValueError(f"data has {data.event.sum()} event(s); an audit needs {FEWEST} or more")
    scores = _checks.numbers(scores, "scores", 1)
    fold = np.zeros(len(data), int) if folds is None else _checks.array(folds)
    _checks.same_length(scores=scores, folds=fold, data=data.time)
    labels, fold = np.unique(fold, return_inverse=True)
    expected = None if train is None else np.empty(len(data))
    for k, label in enumerate(labels if train is not None else ()):
        rows = fold == k
        part = train[label] if isinstance(train, Mapping) else train
        expected[rows] = _expected(*part, scores[rows], data.time[rows])
    judged = _Judged(scores, data.time, data.event, fold, expected)
    table, fractions = [], {name: [] for name in data.groups}
    with np.errstate(divide="ignore", invalid="ignore"):  # what does not exist is NaN
        for attribute, label, members in _groups(data):
            events = int(data.event[members].sum())
            row = {"attribute": attribute, "group": label}
            row |= {"patients": int(members.sum()), "events": events}
            table.append(row)
            for name, (forward, back) in SCALES.items() if events >= FEWEST else ():
                value, without = getattr(judged, name)(members)
                variance = spread(forward(without)[:, None])[0].item()
                half = stats.norm.ppf(0.975) * np.sqrt(variance)
                row |= {name: value, f"{name}_low": back(forward(value) - half)}
                row[f"{name}_high"] = back(forward(value) + half)
                if name == "concordance" and attribute in fractions and np.isfinite(without).all():
                    fractions[attribute].append((label, value, without))
        ci = []
        for attribute, found in fractions.items():
            pairs = list(combinations(found, 2))
            values = [(b[1] - a[1], b[2] - a[2]) for a, b in pairs]
            ci += _compare([(attribute, b[0], a[0]) for a, b in pairs], values)
        slices = _slices(judged, data.X)
    return Audit(data.name, pd.DataFrame(table), pd.DataFrame(ci, columns=COMPARED), slices)
