r"""The audit: how well a model serves each group of patients, with intervals, on one page.

Every figure of the audit is a ratio of sums over patients or pairs of patients, so its value
without patient :math:`i` is known from what that patient adds to numerator and denominator, for all
groups at once, in :math:`O(n \log n)`. Of these values :mod:`drocox.intervals` makes standard
errors. They speak of *this* model and of other patients like these; that another sample would have
given another model is not in them.
"""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
from scipy import special
from sklearn.tree import DecisionTreeRegressor

from drocox import _checks, concordance
from drocox.data import SurvivalData
from drocox.intervals import simultaneous, spread

FEWEST = 5  # events that a group needs to be judged
WORST = 3  # leaves of the tree that are judged
MOST = 100_000  # patients who are searched for badly served groups
COMPARED = "attribute group versus difference low high noise_floor beyond_noise".split()
# the scale on which each estimate is nearly normal, and the way back
SCALES = dict.fromkeys(("concordance", "c_index"), (special.logit, special.expit))
SCALES |= dict.fromkeys(("calibration", "mean_risk"), (np.log, np.exp))


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

    def subset(self, rows: np.ndarray) -> "_Judged":
        return _Judged(self.scores[rows], self.time[rows], self.event[rows], self.fold[rows])

    @cached_property
    def total(self) -> np.ndarray:
        return self.points(np.full(len(self.time), True))

    def points(self, members: np.ndarray, harrell: bool = False) -> np.ndarray:
        """Points and pairs of each member with the other members of its fold, shape (n, 2)."""
        out = np.zeros((len(members), 2))
        for fold in np.unique(self.fold[members & self.event]):
            rows = np.flatnonzero(members & (self.fold == fold))
            found = concordance.count(self.scores[rows], self.time[rows], self.event[rows])
            b1 = (found.points, found.pairs)
            within = (found.harrell_points, found.harrell_pairs)
            out[rows] = np.column_stack(within if harrell else b1)
        return out

    def c_index(self, members: np.ndarray) -> tuple[float, np.ndarray]:
        return _ratio(2 * self.points(members, harrell=True), 2)

    def concordance(self, members: np.ndarray) -> tuple[float, np.ndarray]:
        inside = members[:, None]
        # with partners in the group: known for members, and for others what is left
        partners = np.where(inside, self.points(members), self.total - self.points(~members))
        return _ratio(inside * self.total + partners, 2)

    def calibration(self, members: np.ndarray) -> tuple[float, np.ndarray]:
        lost = np.zeros(len(members)) if self.expected is None else members * self.expected
        more = np.zeros(len(members))
        for fold in np.unique(self.fold) if self.expected is None else ():
            rows = self.fold == fold
            inside = members[rows]
            hazard = np.exp(self.scores[rows] - self.scores[rows].max())
            at, at_risk, step = _breslow(hazard, self.time[rows], self.event[rows])
            share = np.cumsum(np.bincount(at, hazard * inside)[::-1])[::-1] / at_risk
            # own events, own hazard, and what it takes from others in the risk sets:
            # h / (D - h) = h/D + (h/D)^2 + ...
            lost[rows] = self.event[rows] * share[at]
            lost[rows] += hazard * (inside * np.cumsum(step)[at] - np.cumsum(share * step)[at])
            step = step / at_risk
            more[rows] = hazard**2 * (inside * np.cumsum(step)[at] - np.cumsum(share * step)[at])
        return _ratio(np.column_stack([members & self.event, lost]), more=more)

    def mean_risk(self, members: np.ndarray) -> tuple[float, np.ndarray]:
        mean = np.bincount(self.fold, self.scores) / np.bincount(self.fold)
        score = self.scores - mean[self.fold]
        value, without = _ratio(np.column_stack([members * score, members]))
        # everybody's mean is 0, and without a patient the opposite of their share
        return np.exp(value), np.exp(without + score / (len(score) - 1))


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
    return np.argsort(order) % folds  # where each patient stands in that order


def _ratio(lost: np.ndarray, times: int = 1, more: float = 0.0) -> tuple[float, np.ndarray]:
    """A ratio of two totals, and what it is when each patient's part is lost.

    Pairs are lost with either of their patients, two ``times`` in all; ``more`` of the denominator
    is lost to second order.
    """
    total = lost.sum(axis=0) / times
    left = total - lost
    return total[0] / total[1], left[:, 0] / (left[:, 1] - more)


def _breslow(hazard, time, event) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rank of each patient's time; sum of hazards at risk and step of the baseline, by rank."""
    at = np.unique(time, return_inverse=True)[1]
    at_risk = np.cumsum(np.bincount(at, hazard)[::-1])[::-1]
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
    alone = [[name] for name in data.groups]
    for names in alone if len(alone) == 1 else [*alone, list(data.groups)]:
        codes = np.column_stack([data.groups[name] for name in names])
        for cell in np.unique(codes, axis=0):
            labels = (data.group_labels[a][c] for a, c in zip(names, cell, strict=True))
            yield " × ".join(names), ", ".join(labels), (codes == cell).all(axis=1)


def _compare(found: list[tuple[dict, float, np.ndarray]]) -> list[dict]:
    """Rows of differences in percent, with intervals that are simultaneous over them.

    ``found`` says of what, and holds each difference, and its values without each patient in turn.
    """
    found = [one for one in found if np.isfinite(one[2]).all()]
    if not found:
        return []
    names, values, without = zip(*found, strict=True)
    covariance, df = spread(100 * np.column_stack(without))
    critical, floor = simultaneous(covariance, df)
    half = critical * np.sqrt(np.diag(covariance))
    size = 100 * np.array(values)
    rows = pd.DataFrame(names).assign(difference=size, low=size - half, high=size + half)
    rows = rows.assign(noise_floor=floor, beyond_noise=np.abs(size) > half)
    return rows.to_dict("records")


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


def _grow(judged: _Judged, tenth, X: np.ndarray, leaves: int, share=0.1) -> DecisionTreeRegressor:
    """A tree on patients' discordance beyond that of patients with like scores, tenths of them.

    In the middle of the scores there is less to tell apart, however good the model.
    """
    counts = pd.DataFrame(judged.total, columns=["points", "pairs"])
    alike = counts.groupby(tenth).transform("sum")
    excess = alike["points"] / alike["pairs"] - counts["points"] / counts["pairs"]
    tree = DecisionTreeRegressor(max_leaf_nodes=leaves, min_samples_leaf=share, random_state=0)
    return tree.fit(X, excess.fillna(0), sample_weight=counts["pairs"])


def _slices(judged: _Judged, X: pd.DataFrame) -> pd.DataFrame:
    """The worst leaves of a tree grown on one half of the patients, judged on the other.

    A leaf is compared with the others, weighted to have the leaf's scores.
    """
    part = assign_folds(judged.event, max(2, 2 * len(X) // MOST), seed=0)
    first, second = part == 0, part == 1
    rank = pd.Series(judged.scores).groupby(judged.fold).rank(pct=True)
    tenth = np.ceil(10 * rank).to_numpy()
    X = X.fillna(X[first].median()).fillna(0)

    tree = _grow(judged.subset(first), tenth[first], X[first].to_numpy(), leaves=6)

    other, tenth = judged.subset(second), tenth[second]
    leaf = tree.apply(X[second].to_numpy())
    bad = tree.tree_.value.ravel()
    found = []
    for node, name in sorted(_paths(tree.tree_, X), key=lambda it: -bad[it[0]]):
        members = leaf == node
        events = other.event[members].sum()
        if len(found) == WORST or bad[node] <= 0 or events < FEWEST:
            continue
        value, without = other.concordance(members)
        weights = pd.Series(other.total[members, 1]).groupby(tenth[members]).sum()
        for like, weight in (weights / weights.sum()).items():
            mean, means = other.concordance(~members & (tenth == like))
            value -= weight * mean
            without = without - weight * means
        row = {"attribute": "found", "group": name, "versus": "others with like scores"}
        found.append((row | {"patients": members.sum(), "events": events}, value, without))
    return pd.DataFrame(_compare(found), columns=[*COMPARED, "patients", "events"])


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
            sizes = rows["difference"][rows["beyond_noise"] == clear]
            row = rows.loc[sizes.abs().idxmax()]
            sign = -1 if row["difference"] < 0 else 1
            better, worse = row[["group", "versus"]][::sign]
            low, high = sorted(sign * row[["low", "high"]])
            said.append(
                f"By {name}, {'a' if clear else 'no'} difference beyond noise: {better} is "
                f"ranked better than {worse} by {abs(row['difference']):.1f} points (95 % "
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
        heads = ["patients", "events", "conc.", "low", "high", "o/e", "low", "high"]
        labels = [g if len(g) < 28 else f"{g[:13]}…{g[-13:]}" for g in self.table["group"]]
        table = self.table.filter(regex="^(patients|events|conc|cal)").set_axis(heads, axis=1)
        text = table.set_axis(labels).to_string(float_format="%.2f", na_rep="")
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
    return jinja2.Environment(autoescape=True).from_string(layout).render(audits=audits)


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
            row = {"attribute": attribute, "group": label, "patients": members.sum()}
            row["events"] = data.event[members].sum()
            table.append(row)
            for name, (forward, back) in SCALES.items() if row["events"] >= FEWEST else ():
                value, without = getattr(judged, name)(members)
                half = 1.96 * np.sqrt(spread(forward(without)[:, None])[0].item())
                ends = {"": 0, "_low": -half, "_high": half}
                row |= {name + end: back(forward(value) + by) for end, by in ends.items()}
                if name == "concordance" and attribute in fractions:
                    fractions[attribute].append((label, value, without))
        ci = []
        for attribute, found in fractions.items():
            pairs = combinations(found, 2)
            rows = [({"group": b[0], "versus": a[0]}, b[1] - a[1], b[2] - a[2]) for a, b in pairs]
            ci += [{"attribute": attribute} | row for row in _compare(rows)]
        slices = _slices(judged, data.X)
    return Audit(data.name, pd.DataFrame(table), pd.DataFrame(ci, columns=COMPARED), slices)
