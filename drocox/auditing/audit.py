r"""The audit: how well a model serves each group of patients, with intervals, on one page.

Predictions of any kind of model come in by :mod:`drocox.auditing.predictions`. The measures of
:mod:`drocox.auditing.measures` are estimated by :mod:`drocox.heldout`, compared by
:mod:`drocox.auditing.group_measures` and put into words by :mod:`drocox.auditing.findings`;
:mod:`drocox.auditing.page` lays all of it out, and :mod:`drocox.auditing.plots` draws it. Intervals
(:mod:`drocox.heldout.intervals`, :mod:`drocox.auditing.contrasts`) are for *this* model, or for
these models where several were cross-fitted, and other patients like these; they do not cover that
another sample would have given another model. :mod:`drocox.auditing.slices` searches for groups
that nobody named.
"""

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from drocox import __version__, _checks
from drocox.auditing.disclosure import (
    Hidden,
    hidden_at_horizon,
    hidden_groups,
    small_counts,
    small_decisions,
)
from drocox.auditing.findings import model_sentences, number_text, paragraphs, sentences
from drocox.auditing.funnel import Funnel, funnel
from drocox.auditing.group_measures import (
    FEW_EVENTS,
    MOST_PAIRED,
    Measured,
    calibration_curve,
    group_estimates,
    measure_groups,
)
from drocox.auditing.groupings import Grouping, groupings_of
from drocox.auditing.measures import Measure, own_measures
from drocox.auditing.own_model import KNOWS, OwnModelGain, knows_outcome, named_features
from drocox.auditing.page import page
from drocox.auditing.plots import draw_calibration, draw_funnels, draw_groups
from drocox.auditing.predictions import (
    Predictions,
    check_data,
    predictions,
    same_measure,
    with_threshold,
)
from drocox.auditing.slices import find_slices
from drocox.data import SurvivalData
from drocox.heldout import DIFFERENCE_COLUMNS, FEWEST_EVENTS, HeldOut, compare, difference
from drocox.terminal import listed, short_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SurvivalCurves = ArrayLike | Sequence[Callable]  # survival probabilities, or functions of time
TrainingPart = tuple[SurvivalData, ArrayLike]  # patients and their scores

MODEL_WIDTH = 14  # of a model's name in a table of text
CURVE_COLUMNS = ["attribute", "group", "patients", "events", "predicted"]
CURVE_COLUMNS += ["observed", "low", "high"]
PAIRED_COLUMNS = ["model", "versus", "attribute", "group", "measure"]
PAIRED_COLUMNS += ["difference", "low", "high", "says"]
MOST_IN_CAUTION = 12  # groups in a sentence of the page
FEW_EVENTS_NOTE = "Few events{until}, so that intervals are wide and rough: {}."
HANGING_NOTE = (
    "Decided by one or two patients, so that intervals are very wide: {}. Their data are worth a "
    "look."
)
TAILS_NOTE = (
    "A few extreme scores decide the slope, which is another one without the lowest and the "
    "highest 2.5 % of the scores: {}."
)
HIDDEN_NOTE = (
    "Groups with fewer than {} events or patients without an event are not shown{}. If they are "
    "joined with others, or left out, more can be shown."
)
ALMOST_PERFECT_NOTE = (
    "The predictions rank the patients almost perfectly, as if they were made from something that "
    "is known only afterwards."
)
KNOWING_NOTE = (
    "No model was fitted here: {} alone tells nearly who has the event, or in which order, and may "
    "be known only afterwards."
)
OWN_KNOWS_NOTE = (
    "A model of {} ranks a group almost perfectly, so that one of these columns may be known only "
    "after the event: whether another model would rank a group better is left open."
)
FEW_FLAGGED_NOTE = (
    "Decisions are shown for everybody only: in some group fewer than {} patients with or without "
    "an event are flagged, or are not."
)
ALSO_HIDDEN = ", nor are others, {} in all, from which the counts of these could be worked out"
SEARCHED_SHYLY = "Of groups found by search, those that could tell a small number are not shown."
AT_HORIZON_NOTE = (
    "Risks, AUC and Brier score are not shown for groups with fewer than {} events up to time "
    "{:.4g}, nor for others from which the number of these could be worked out."
)


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What :func:`audit` found; ``print`` shows it in 80 columns.

    Attributes
    ----------
    name : str
        Of the data.
    table : DataFrame
        A row for everybody, each group and each intersection of groups: ``attribute``, ``group``,
        ``patients``, ``events`` and those up to the horizon (``events_by_horizon``), the share
        ``censored``, the median ``follow_up``, and the measures that :func:`audit` explains,
        each with an interval (``..._low``, ``..._high``).
    differences : DataFrame
        A row for each pair of groups of an attribute and each ``measure``: the signed
        ``difference``, ``group`` minus ``versus``, with an interval that holds for all attributes
        at once (``low``, ``high``), or for the attribute's pairs where ``familywise`` is false,
        and what this ``says``: ``alike`` if it lies inside the margin of a measure that has one,
        ``differ`` if it excludes 0, else ``cannot tell``. Of observed / expected it is the ratio of
        the two groups. Of more than six groups each is compared with everybody.
    imparity : DataFrame
        The same, in percent, for concordance by Algorithm B.1, whose rules for ties in time can
        make a difference of their own; and ``noise_floor``, the absolute difference that the
        attribute's most striking pair would show on average by chance, on as many patients as this
        pair has, if the model had the same concordance in all groups.
    slices : DataFrame
        The same, by the pairs of Harrell's c-index, for the worst groups that a search found, the
        worst first, judged on patients who took no part in it and compared with others who have
        like scores.
    notes : tuple of str
        What the reader should know first, such as scores that look reversed.
    horizon : float
        The time up to which risks are judged.
    familywise : bool
        Whether the intervals of differences hold for all attributes at once.
    smallest : int
        Groups with fewer patients, events or patients without an event are not shown.
    features : tuple of str
        The columns that models fitted here have used.
    """

    name: str
    table: pd.DataFrame
    differences: pd.DataFrame
    imparity: pd.DataFrame
    slices: pd.DataFrame
    notes: tuple[str, ...]
    horizon: float
    familywise: bool
    smallest: int
    features: tuple[str, ...]
    _predictions: Predictions
    _groupings: list[Grouping]
    _hidden: Hidden
    _measured: Measured
    _open: bool  # whether models fitted here say nothing, since a column knows the outcome

    @property
    def sentence(self) -> str:
        """The findings in words, a line for each attribute, its measures, and each group found."""
        if self._predictions.backwards:
            return "\n".join(self.notes)
        found = (self.table, self.differences, self.slices, self.notes)
        features = self.features if self._predictions.ranks and not self._open else None
        decided = None if self.threshold is None else (self.threshold, self.horizon)
        lines = sentences(*found, self.measures, features, decided)
        if self.smallest and self.features:
            lines.append(SEARCHED_SHYLY)
        return paragraphs(lines)

    @property
    def threshold(self) -> float | None:
        """The risk from which patients are flagged, if decisions are judged."""
        return self._predictions.patients.threshold

    def __repr__(self) -> str:
        patients, events = self.table.loc[0, ["patients", "events"]]
        by = ", ".join(one.attribute for one in self._groupings if one.compared)
        return f"Audit({self.name!r}: {patients:,} patients, {events:,} events, by {by})"

    def __str__(self) -> str:
        lines = _wrapped(self.sentence)
        second = "calibration" if self.table["calibration"].notna().any() else "slope"
        heads = {"c_index": "c-index", "calibration": "o/e", "slope": "slope"}
        table = self._counts()
        for name in ("c_index", second):
            for end, head in (("", heads[name]), ("_low", "low"), ("_high", "high")):
                values = self.table[name + end].to_numpy()
                table.insert(table.shape[1], head, values, allow_duplicates=True)
        if self.table["c_expected"].notna().any():  # instead of the second interval
            table = table.iloc[:, :-2]
            table.insert(table.shape[1] - 1, "expected", self.table["c_expected"].to_numpy())

        def short(value: float) -> str:
            return number_text(value, 2 if abs(value) < 10 else 1)

        text = table.to_string(float_format=short, na_rep="")
        cautions = [textwrap.fill(line, 80) for line in self.cautions]
        return "\n".join([*lines, *cautions, "", text])

    def _counts(self) -> pd.DataFrame:
        """Patients and events of each group, by its short name, as a terminal shows them."""
        names = [label for grouping in self._groupings for label in grouping.short]
        table = pd.DataFrame(index=short_labels(names))
        for head in ("patients", "events"):
            table[head] = [f"{n:.0f}" if n == n else "hidden" for n in self.table[head]]
        return table

    def compare(self, other: "Audit") -> pd.DataFrame:
        """Differences of two models on the same patients, this one minus the other.

        Parameters
        ----------
        other : Audit
            Of the same data.

        Returns
        -------
        DataFrame
            A row for each group and measure that both can answer: ``attribute``, ``group``,
            ``measure``, ``difference`` with an interval (``low``, ``high``), and what this
            ``says``. In each measure the intervals of groups hold for all of them at once, or for
            those of an attribute where ``familywise`` is false. Units as in ``differences``.
        """
        rows = _paired({"other": other, "self": self})
        return rows.drop(columns=["model", "versus"])

    def funnels(self) -> list[Funnel]:
        """For each attribute with many groups, their c-index by events and limits of chance."""
        funnels = []
        for one in self._groupings:
            if one.compared and len(one.labels) > MOST_PAIRED:
                estimates = group_estimates(self._predictions, one, "c_index", self._hidden)
                if estimates:
                    funnels.append(funnel(one.attribute, self.table, self.differences, estimates))
        return funnels

    @property
    def measures(self) -> dict[str, Measure]:
        """All measures by name, own ones last, and how they are shown."""
        return self._predictions.described

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the measures in ``table``.

        For risks at a single time, ``calibration`` is a ratio of risks, not of events.
        """
        return {name: one.title for name, one in self.measures.items()}

    def calibration_curves(self, bins: int = 5) -> pd.DataFrame:
        """Observed and predicted risk at the horizon, in parts of each group.

        Parameters
        ----------
        bins : int
            Parts of each group, of equal size, by predicted risk.

        Returns
        -------
        DataFrame
            With ``attribute``, ``group``, ``patients``, ``events`` (up to the horizon),
            ``predicted`` and ``observed``, which has a 95 % interval (``low``, ``high``); empty
            where no risks were predicted. Attributes with many groups are left out, and groups of
            which a part has too few patients, events or patients without an event to be shown:
            observed risks would tell their numbers. With ``smallest`` and a threshold there are
            none, since beside decisions they could tell who lies between.
        """
        patients = self._predictions.patients
        curves = [pd.DataFrame(columns=CURVE_COLUMNS)]
        if patients.risk is None or (self.smallest and self.threshold is not None):
            return curves[0]
        for grouping in self._groupings:
            if not grouping.compared or len(grouping.labels) > MOST_PAIRED:
                continue
            for group in grouping.groups(patients):
                too_small = len(group.alone.time) < 2 * bins
                if too_small or (grouping.attribute, group.label) in self._hidden.at_horizon:
                    continue
                with np.errstate(divide="ignore", invalid="ignore"):  # nobody had the event
                    curve = calibration_curve(group.alone, bins)
                if not small_counts(curve["patients"], curve["events"], self.smallest).any():
                    curves.append(curve.assign(attribute=grouping.attribute, group=group.label))
        return pd.concat(curves[1:] or curves, ignore_index=True)[CURVE_COLUMNS]

    @property
    def cautions(self) -> list[str]:
        """Warnings of the page: groups with few events, and intervals that tell little."""
        known = self.table[self.table["attribute"].isin([f.attribute for f in self._groupings[1:]])]
        lines = []
        counted, until = "events", ""
        if self.table["risk_predicted"].notna().any():
            counted, until = "events_by_horizon", f" up to time {self.horizon:.4g}"
        few = known[(known["events"] >= FEWEST_EVENTS) & (known[counted] < FEW_EVENTS)]
        names = [f"{group} ({n:.0f})" for group, n in zip(few["group"], few[counted], strict=True)]
        hanging, tails = self._measured.hanging, self._measured.tails
        for note, named in ((FEW_EVENTS_NOTE, names), (HANGING_NOTE, hanging), (TAILS_NOTE, tails)):
            if named:
                lines.append(note.format(listed(named, MOST_IN_CAUTION, ", "), until=until))
        return lines

    def plot(self) -> "Figure":
        """Draw c-index and calibration (or slope) of every group, with intervals.

        For an attribute with more than six groups it draws a funnel plot: the c-index by the number
        of events, around everybody's, with limits that hold 95 % of the groups by chance, and
        others that hold all of them. Returns a matplotlib Figure.
        """
        import matplotlib.pyplot as plt  # here: it chooses a backend, and only plots need one

        figure = plt.figure()
        if funnels := self.funnels():
            draw_funnels(figure, funnels)
        else:
            draw_groups(figure, {"": self.table}, self.titles)
        return figure

    def plot_calibration(self, bins: int = 5) -> "Figure":
        """Draw observed against predicted risk at the horizon, in a matplotlib Figure.

        Parameters
        ----------
        bins : int
            Parts of each group, of equal size.
        """
        curves = self.calibration_curves(bins)
        if self._predictions.patients.risk is None:
            raise ValueError("no risks to draw; pass survival= with times=, or scores with train=")
        if curves.empty:
            raise ValueError(
                "no group can be drawn in parts: lower bins, or leave out threshold with smallest"
            )
        import matplotlib.pyplot as plt

        figure = plt.figure()
        draw_calibration(figure, curves)
        return figure

    def to_html(self, path: str | Path, facts: Mapping[str, str] | None = None) -> Path:
        """Write the audit as one page that needs no other file, and return its path.

        Parameters
        ----------
        path : str or Path
            The file.
        facts : mapping of str to str, optional
            What else the page should say of its making; ``Event`` and ``Predictions`` stand at its
            top, as in ``facts={"Event": "death, time in days"}``.
        """
        Path(path).write_text(page({"": self}, facts), encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        """The first lines and the table, in a notebook."""
        lead = "".join(f"<p>{escape(line)}</p>" for line in self.sentence.split("\n"))
        known = self.table.dropna(axis=1, how="all")
        return lead + known.to_html(index=False, float_format=number_text, na_rep="–")

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """The table as text with commas, written to ``path`` or, without one, returned."""
        return self.table.to_csv(path, index=False)

    def to_markdown(self) -> str:
        """The sentence and the table in Markdown."""
        known = self.table.dropna(axis=1, how="all").drop(columns="attribute")
        lines = [
            f"{'  ' if line.startswith('- ') else '- '}{escape(line, False)}"
            for line in self.sentence.splitlines()
        ]
        lines += ["", "| " + " | ".join(known.columns) + " |"]
        lines.append("|" + "---|" * len(known.columns))
        for row in known.itertuples(index=False):
            cells = [
                number_text(v, 3) if isinstance(v, float) else escape(str(v), False) for v in row
            ]
            cells = [cell.replace("|", "\\|").replace("nan", "–") for cell in cells]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything that was found, for other programs; also written to ``path`` if given."""
        content = {
            "name": self.name,
            "drocox": __version__,
            "horizon": self.horizon,
            "threshold": self.threshold,
            "sentence": self.sentence.splitlines(),
            "table": _records(self.table),
            "differences": _records(self.differences),
            "imparity": _records(self.imparity),
            "slices": _records(self.slices),
        }
        return _write_json(content, path)


class Audits(dict[str, Audit]):
    """Audits of several models of the same patients, by name, and the differences of the models.

    ``audits["forest"]`` is the :class:`Audit` of one of them; ``print`` shows all in 80 columns.
    """

    def __repr__(self) -> str:
        return f"Audits({', '.join(map(repr, self))}: {next(iter(self.values()))!r})"

    @cached_property
    def paired(self) -> pd.DataFrame:
        """Differences of each model and the first one, on the same patients.

        A row for each group and measure that both can answer: ``model``, ``versus`` (the first
        model), ``attribute``, ``group``, ``measure``, ``difference`` with an interval (``low``,
        ``high``), and what this ``says``. There is no row of calibration where it is a ratio of
        events for one model and of risks for the other, and none of slopes that leave out
        different patients of the group. In each measure the intervals of everybody hold for all
        models at once, those of groups for all models and groups, or for the groups of an
        attribute where ``familywise`` is false. Units as in ``Audit.differences``. A model that
        ranks backwards is not compared.
        """
        return _paired(self)

    @property
    def table(self) -> pd.DataFrame:
        """The tables of all models below each other; the first column is ``model``."""
        tables = {name: one.table for name, one in self.items()}
        return pd.concat(tables, names=["model"]).reset_index("model").reset_index(drop=True)

    @property
    def sentence(self) -> str:
        """How the models differ in words, a line for each model but the first."""
        backwards = [name for name, one in self.items() if one._predictions.backwards]
        titles = next(iter(self.values())).titles
        return paragraphs(model_sentences(self.table, self.paired, titles, backwards))

    def __str__(self) -> str:
        parts = _wrapped(self.sentence)
        first, *others = self
        for name in others:
            parts += ["", self._side_by_side(name, first)]
        for name, one in self.items():
            parts += ["", f"{name}:", *_wrapped(one.sentence)]
        cautions = dict.fromkeys(line for one in self.values() for line in one.cautions)
        return "\n".join([*parts, *(textwrap.fill(line, 80) for line in cautions)])

    def _side_by_side(self, model: str, versus: str) -> str:
        """The c-index of each group by two models, and the difference with its interval."""
        names = short_labels([versus, model], MODEL_WIDTH)
        one, two = self[versus], self[model]
        table = one._counts()
        table[names[0]] = one.table["c_index"].to_numpy()
        table[names[1]] = two.table["c_index"].to_numpy()
        rows = self.paired[(self.paired["measure"] == "c_index") & (self.paired["model"] == model)]
        found = one.table[["attribute", "group"]].merge(rows, "left", ["attribute", "group"])
        for name, head in (("difference", "differ by"), ("low", "low"), ("high", "high")):
            table[head] = [number_text(x, 3) if x == x else "" for x in found[name]]
        return table.to_string(float_format=number_text, na_rep="")

    def to_html(self, path: str | Path, facts: Mapping[str, str] | None = None) -> Path:
        """Write the audits as one page, as :meth:`Audit.to_html` does, and return its path."""
        Path(path).write_text(page(self, facts), encoding="utf-8")
        return Path(path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything that was found, for other programs; also written to ``path`` if given."""
        models = {name: json.loads(one.to_json()) for name, one in self.items()}
        content = {"sentence": self.sentence.splitlines(), "paired": _records(self.paired)}
        return _write_json({**content, "models": models}, path)

    def _repr_html_(self) -> str:
        """The sentences and the differences of the models, in a notebook."""
        lead = "".join(f"<p>{escape(line)}</p>" for line in self.sentence.splitlines())
        return lead + self.paired.to_html(index=False, float_format=number_text, na_rep="–")


def _paired(audits: Mapping[str, Audit]) -> pd.DataFrame:
    """Differences of each model and the first one, as in :attr:`Audits.paired`."""
    (base, first), *others = audits.items()
    for _, other in others:
        _check_same_patients(first, other)
    rows: list[dict] = []
    for name, measure in first.measures.items():
        if not measure.between_models:
            continue
        families: dict[str, tuple] = {}  # rows and differences whose intervals hold together
        for grouping in first._groupings:
            theirs = group_estimates(first._predictions, grouping, name, first._hidden)
            family = "groups" if grouping.attribute and first.familywise else grouping.attribute
            names, differences = families.setdefault(family, ([], []))
            for model, other in others:
                if first._predictions.backwards or other._predictions.backwards:
                    continue
                mine = group_estimates(other._predictions, grouping, name, other._hidden)
                for label in (label for label in mine if label in theirs):
                    members = grouping.codes == grouping.labels.index(label)
                    if same_measure(name, other._predictions, first._predictions, members):
                        row = {"model": model, "attribute": grouping.attribute, "group": label}
                        names.append(row)
                        differences.append(difference(mine[label], theirs[label]))
        for names, differences in families.values():
            for row in compare(names, differences, measure.unit):
                rows.append({"versus": base, "measure": name, **row})
    models = list(audits)
    groups = first.table[["attribute", "group"]].itertuples(index=False, name=None)
    places = {group: k for k, group in enumerate(groups)}
    rows.sort(key=lambda row: (models.index(row["model"]), places[row["attribute"], row["group"]]))
    return pd.DataFrame(rows, columns=PAIRED_COLUMNS)


def _check_same_patients(one: Audit, other: Audit) -> None:
    """Refuse to compare audits of other outcomes, groups or horizons."""
    mine, theirs = one._predictions.patients, other._predictions.patients
    same = np.array_equal(mine.time, theirs.time) and np.array_equal(mine.event, theirs.event)
    labels, others = ([g.labels for g in audit._groupings] for audit in (one, other))
    if not same or labels != others:
        raise ValueError("other must be an audit of the same data and groups")
    if one.horizon != other.horizon:
        raise ValueError(
            f"the models are judged up to {one.horizon:g} and {other.horizon:g}; pass one horizon="
        )


def _wrapped(text: str) -> list[str]:
    """The lines in 80 columns, those of an attribute's measures indented."""
    return [
        textwrap.fill(line, 80, subsequent_indent="  " if line.startswith("- ") else "")
        for line in text.splitlines()
    ]


def _records(frame: pd.DataFrame) -> list[dict]:
    """Rows for JSON."""
    return json.loads(frame.to_json(orient="records", double_precision=12))


def _write_json(content: dict, path: str | Path | None) -> str:
    """The content as text, which is written to a file, too, if one is named."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def audit(
    data: SurvivalData,
    scores: ArrayLike | pd.DataFrame | Mapping[str, ArrayLike | Mapping[str, Any]] | None = None,
    *,
    risk: ArrayLike | pd.DataFrame | Mapping[str, ArrayLike] | None = None,
    survival: SurvivalCurves | Mapping[str, SurvivalCurves] | None = None,
    times: ArrayLike | None = None,
    expected: ArrayLike | Mapping[str, ArrayLike] | None = None,
    horizon: float | None = None,
    folds: ArrayLike | None = None,
    train: TrainingPart | Mapping[Any, TrainingPart] | None = None,
    features: Sequence[str] | None = None,
    margin: Mapping[str, float] | None = None,
    smallest: int = 0,
    familywise: bool = True,
    threshold: float | None = None,
    measures: Mapping[str, Callable[[HeldOut, np.ndarray], float]] | None = None,
) -> Audit | Audits:
    r"""Judge how well predictions serve the groups of ``data``, with 95 % intervals.

    ``c_index`` is Harrell's, among the group's own patients. ``c_expected`` is the c-index that the
    model's own predictions lead one to expect there: over exactly the pairs that the c-index
    compares, the mean of

    .. math:: 1 / (1 + e^{-b |f_i - f_j|}) ,

    the probability that the patient with the higher log-hazard has the event first, under
    proportional hazards and whatever the censoring given the scores (model-based concordance:
    Gönen and Heller, 2005; van Klaveren and others, 2016). The slope b is one for everybody, fitted
    without the two patients, so that everybody is ranked as expected, nearly by construction.
    ``c_minus_expected`` is 0 within error if the group is ranked as expected, whatever its c-index.
    Below 0 the model knows less about the group than its predictions say, as it does if the group's
    own ``slope`` is lower than everybody's. Hazards that are not proportional can look like either.
    A constant score is ranked as expected, and so, mostly, is a model that lacks a feature. With
    ``features``, ``own_model_gain`` is the cross-fitted c-index of a ridge Cox model of these
    columns that is fitted to the group alone, minus that of the scores, over the same patients,
    4,000 at most; above 0, another model ranks the group better. With ``survival`` or ``risk``,
    log-hazards are those at the horizon.

    ``uno_c`` is the c-index weighted for censoring, up to the horizon. ``concordance`` is the
    fraction of Algorithm B.1, the group's patients compared with everybody; its differences between
    groups make up concordance imparity. ``calibration`` is observed / expected events,

    .. math:: \sum_{i \in g} \delta_i \Big/ \sum_{i \in g} \hat H_i(Y_i)

    (for survival at a single time, observed / predicted risk), ``slope`` the coefficient of a Cox
    regression on the log-hazards, ``central_slope`` the same without the lowest and the highest
    2.5 % of the scores, and ``mean_risk`` the geometric mean of the hazards relative to
    everybody's. Up to the horizon, ``risk_observed`` is Kaplan and Meier's risk,
    ``risk_predicted`` the mean prediction, ``auc`` and ``brier`` compare the two patient by
    patient. With a ``threshold``, ``flagged`` is the share of patients with at least this predicted
    risk, and ``sensitivity``, ``specificity``, ``ppv`` (the observed risk of the flagged) and
    ``net_benefit`` (true positives minus false ones at the odds of the threshold, as shares of the
    group) are those of flagging them, by Kaplan and Meier's risks of flagged and other patients
    (:mod:`drocox.heldout.decisions`). A group at higher risk has a higher net benefit, so compare
    that of models rather than of groups.

    Measures for which the predictions do not suffice are NaN: calibration needs survival, expected
    events or a training part. Groups with fewer than 5 events are counted, not judged; AUC, Brier
    score and decisions need 5 patients with an event up to the horizon and 5 who are observed
    longer.

    Intervals are those of the models at hand, for other patients like these. Where several models
    were cross-fitted, intervals are for these models and do not cover that another training would
    have given others. In simulations they hold about as often as they say, and a little less
    often in cross-fitted data with little censoring.

    Parameters
    ----------
    data : SurvivalData
        With at least one attribute in ``groups``.
    scores : array of shape (n,), optional
        Log-hazards by a model that has not seen these patients; higher for earlier events. Scores
        on another scale are ranked, and a note says what they look like. Two or more models of
        the same patients are judged side by side: pass a DataFrame with a column for each model,
        or a mapping of names to arrays, or to what :func:`drocox.cross_fit` returned. A Series,
        here and below, must have the index of ``data.X``.
    risk : array of shape (n,), optional
        Risks of an event up to ``horizon``; or a mapping of names to those of several models.
    survival : array of shape (n,) or (n, k), or n functions of time, optional
        Probabilities of surviving, for a model of any kind; or a mapping of names to those of
        several models.
    times : float or array of shape (k,), optional
        The time or times of ``survival``.
    expected : array of shape (n,), optional
        Expected events of each patient up to the observed time; or a mapping of names to those of
        several models.
    horizon : float, optional
        Time up to which risks are judged; by default the time of ``survival`` if it has one, else
        the last event after which a tenth of the patients is still observed.
    folds : array of shape (n,), optional
        Which model scored each patient, where several did (cross-fitting): only patients of one
        fold are compared.
    train : (SurvivalData, array), or a mapping of fold to such pairs, optional
        Training part and its scores, for the baseline hazard.
    features : list of str, optional
        Columns of ``data.X`` that a model fitted here may use, and nothing else: for a model
        of each group's own and for the search for badly served groups, neither of which is there
        without them. Name only what is known at the time of the prediction.
    margin : mapping of str to float, optional
        Differences that do not matter, by measure: conventions and no findings. By default
        ``{"c_index": 0.05, "calibration": 1.25, "slope": 0.2}``, of observed / expected events a
        ratio from 0.80 to 1.25.
    smallest : int
        Groups with fewer patients, events or patients without an event are not shown, nor are
        others from which their counts could be worked out, by whatever sums and differences, nor
        how large the groups are that a search found. The same holds for events up to the horizon
        and the measures there. Notes and warnings tell no smaller number of patients either.
    familywise : bool
        Whether the intervals of differences hold for all attributes at once. Those of c-index,
        c-index minus expected and calibration, which the first paragraph is about, then hold
        together: where no group differs, they say of a named group that it does in 5 % of all
        audits. Those of any other measure hold among themselves, as do those of groups that the
        search found.
        Otherwise intervals hold for the groups of one attribute and one measure.
    measures : mapping of str to function, optional
        Measures of your own, by name. A function gets all held-out patients and a mask, True for
        the group's, and returns a number. Patients have ``scores``, ``time``, ``event``, ``fold``,
        ``risk``, ``until`` (the horizon), and the measures above as methods. It is called without
        each of 100 blocks of patients, too, from which intervals and differences follow. Groups
        hidden by ``smallest`` are hidden here; whether a value of yours tells a small number of
        patients in another group, only you can know.
    threshold : float, optional
        Risk up to the horizon, between 0 and 1, from which patients are flagged: decisions at this
        threshold are judged, too. Needs ``survival``, or ``scores`` with ``train``.

    Returns
    -------
    Audit, or Audits of several models
        With ``table``, ``differences``, ``imparity``, ``slices``, ``sentence``, ``compare(other)``,
        ``plot()``, ``plot_calibration()`` and ``to_html(path)``. For several models with
        ``paired``, the differences of each and the first, ``table``, ``sentence`` and
        ``to_html(path)``; ``found["name"]`` is the audit of one of them.

    Examples
    --------
    >>> from drocox import load_dataset
    >>> data = load_dataset("seer")
    >>> result = audit(data, data.X["nodes_positive"])
    >>> result.imparity[["group", "versus", "difference"]].round(1)
          group     versus  difference
    0  age > 65  age <= 65        -3.0
    1     white  non-white         1.6

    Decisions: patients with a risk of 20 % or more within 60 months are flagged.

    >>> survival = 0.97 ** (1 + data.X["nodes_positive"])
    >>> result = audit(data, survival=survival, times=60.0, threshold=0.2)
    >>> result.table[["group", "flagged", "sensitivity", "ppv", "net_benefit"]].round(2)[:3]
           group  flagged  sensitivity   ppv  net_benefit
    0  everybody     0.18         0.39  0.26         0.01
    1  age <= 65     0.18         0.40  0.25         0.01
    2   age > 65     0.19         0.35  0.32         0.03

    A measure of one's own, the share of a group among the tenth of patients at highest risk:

    >>> def share_at_top(patients, members):
    ...     top = patients.scores >= np.quantile(patients.scores, 0.9)
    ...     return members[top].mean()
    >>> own = audit(data, data.X["nodes_positive"], measures={"at top": share_at_top})
    >>> own.table[["group", "at top", "at top_low", "at top_high"]].round(2)[1:5]
           group  at top  at top_low  at top_high
    1  age <= 65    0.86        0.81         0.90
    2   age > 65    0.14        0.10         0.19
    3  non-white    0.16        0.10         0.22
    4      white    0.84        0.78         0.90
    """
    smallest = _checks.whole_number(smallest, "smallest", least=0)
    options: dict[str, Any] = {"times": times, "horizon": horizon, "folds": folds, "train": train}
    options |= {"smallest": smallest, "familywise": familywise, "threshold": threshold}
    options["more"] = own_measures(measures)
    models = _by_model({"scores": scores, "risk": risk, "survival": survival, "expected": expected})
    check_data(data)
    used = named_features(data.X, features)
    if knowing := knows_outcome(used, data.time, data.event):
        used = used.iloc[:, :0]
    own = OwnModelGain(used) if used.shape[1] else None
    options |= {"features": used, "knowing": knowing, "own": own, "margin": margin}
    found = Audits({name: _audit(data, **(options | one)) for name, one in models.items()})
    if len(found) == 1:
        return found.popitem()[1]
    _ = found.paired  # which refuses models that cannot be compared
    return found


def _audit(
    data: SurvivalData,
    scores=None,
    *,
    smallest: int,
    familywise: bool,
    threshold: float | None,
    more: dict[str, Callable],
    features: pd.DataFrame,
    knowing: list[str],
    own: OwnModelGain | None,
    margin: Mapping[str, float] | None,
    **given,
) -> Audit:
    """The audit of one model; ``more`` has own measures, ``own`` fits models of groups."""
    # what does not exist is NaN
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        predicted = predictions(data, scores, smallest=smallest, **given)
        if threshold is not None:
            predicted = with_threshold(predicted, threshold)
        if not predicted.ranks or predicted.backwards:
            own = None
        more = more if own is None else {**more, "own_model_gain": own}
        predicted = predicted._replace(more=more, margin=margin)
        groupings, of_groups = groupings_of(data)
        groups, others = hidden_groups(groupings, data.event, smallest)
        early = data.event & (data.time <= predicted.patients.until)
        hidden = Hidden(groups, hidden_at_horizon(groupings, early, smallest, groups))
        notes = [*predicted.notes, *of_groups]
        if knowing:
            notes.append(KNOWING_NOTE.format(", ".join(knowing)))
        if groups:
            notes.append(HIDDEN_NOTE.format(smallest, ALSO_HIDDEN.format(others) if others else ""))
        if hidden.at_horizon > groups:
            notes.append(AT_HORIZON_NOTE.format(smallest, predicted.patients.until))
        if threshold is not None and small_decisions(predicted.patients, groupings, smallest):
            notes.append(FEW_FLAGGED_NOTE.format(smallest))
            hidden = hidden._replace(decisions=True)
            if small_decisions(predicted.patients, groupings[:1], smallest):
                raise ValueError(
                    f"threshold {threshold:g} flags, or leaves, fewer than {smallest} patients "
                    "with or without an event; choose another one, or lower smallest"
                )
        measured = measure_groups(predicted, groupings, hidden, familywise)
        if measured.table["c_index"].iloc[0] >= KNOWS:
            notes.append(ALMOST_PERFECT_NOTE)
        if own is not None and own.knows:
            notes.append(OWN_KNOWS_NOTE.format(", ".join(map(str, features.columns))))
        slices = pd.DataFrame(columns=[*DIFFERENCE_COLUMNS, "patients", "events"])
        if own is not None and not own.knows:
            secret = [
                one.codes == code
                for one in groupings
                for code, label in enumerate(one.labels)
                if (one.attribute, label) in groups
            ]
            slices = find_slices(predicted.patients, features, secret)
        small = small_counts(slices["patients"], slices["events"], smallest).astype(bool)
        slices = slices[~small].reset_index(drop=True)
        if smallest:  # with counts of known groups, these could tell what is hidden
            slices = slices.assign(patients=np.nan, events=np.nan)
    return Audit(
        name=data.name,
        table=measured.table,
        differences=measured.comparisons.drop(columns="noise_floor"),
        imparity=measured.imparity,
        slices=slices,
        notes=tuple(notes),
        horizon=predicted.patients.until,
        familywise=familywise,
        smallest=smallest,
        features=tuple(map(str, features.columns)),
        _predictions=predicted,
        _groupings=groupings,
        _hidden=hidden,
        _measured=measured,
        _open=bool(knowing) or (own is not None and own.knows),
    )


def _by_model(given: dict[str, Any]) -> dict[str, dict]:
    """Predictions of each model by its name; those of a single one have none."""
    for argument in ("scores", "risk"):
        if isinstance(given[argument], pd.DataFrame):
            given[argument] = dict(given[argument].items())
    given = {argument: value for argument, value in given.items() if value is not None}
    several = {argument: one for argument, one in given.items() if isinstance(one, Mapping)}
    if not several:
        return {"": given}
    names = [list(one) for one in several.values()]
    if len(several) < len(given) or any(one != names[0] for one in names):
        raise ValueError(f"{', '.join(given)}: name the same models in each")
    if len(names[0]) < 2:
        raise ValueError(
            f"{next(iter(several))} names {len(names[0])} model(s); name two or more, or pass the "
            "predictions of one without a name"
        )
    models: dict[str, dict] = {}
    for name in names[0]:
        models[str(name)] = {}
        for argument, by_name in several.items():
            one = by_name[name]
            models[str(name)] |= one if isinstance(one, Mapping) else {argument: one}
    return models
