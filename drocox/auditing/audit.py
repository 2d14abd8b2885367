r"""The audit: how well a model serves each group of patients, with intervals, on one page.

Predictions of any kind of model come in by :mod:`drocox.auditing.predictions`; the figures of a
group are made by :mod:`drocox.heldout`, judged and compared by :mod:`drocox.auditing.judging`, and
put into words by :mod:`drocox.auditing.findings`; :func:`page` lays all of it out,
:mod:`drocox.auditing.plots` draws it. Their intervals (:mod:`drocox.heldout.intervals`,
:mod:`drocox.auditing.contrasts`) speak of *this* model, or of these models where several were
cross-fitted, and of other patients like these; that another sample would have given another model
is not in them. Groups that nobody named are searched for by :mod:`drocox.auditing.slices`.
"""

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import count
from pathlib import Path
from warnings import warn

import jinja2
import numpy as np
import pandas as pd

from drocox import __version__, _checks
from drocox.auditing.disclosure import hidden_groups, small_counts
from drocox.auditing.families import Family, families
from drocox.auditing.findings import digits_for, number_text, sentences
from drocox.auditing.funnel import Funnel, funnel
from drocox.auditing.judging import (
    COMPARISON_COLUMNS,
    FEWEST_AT_HORIZON,
    MEASURES,
    MOST_PAIRED,
    group_estimates,
    judge,
)
from drocox.auditing.plots import as_svg, draw_calibration, draw_funnels, draw_groups
from drocox.auditing.predictions import Predictions, predictions
from drocox.auditing.slices import find_slices
from drocox.data import SurvivalData
from drocox.heldout import DIFFERENCE_COLUMNS, FEWEST_EVENTS, Estimate, compare
from drocox.heldout import horizon as horizons
from drocox.terminal import short_labels

FEW_EVENTS = 30  # below which a group's intervals are rough
MOST_NAMED = 12  # groups in a sentence of the page
SHOWN_ROWS = 40  # of a table on the page; all of them are in to_csv
FEW_EVENTS_NOTE = (
    "Few events, so that intervals are wide and rough, those of concordance a little short: {}."
)
HIDDEN_NOTE = "Groups with fewer than {} events or patients without an event are not shown{}."
ALSO_HIDDEN = ", nor are {} larger ones, from which the counts of these could be worked out"


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
    differences : DataFrame
        A row for each pair of groups of an attribute and each ``measure``: the signed
        ``difference``, ``group`` less ``versus``, with an interval that holds for all attributes
        at once (``low``, ``high``), or for the attribute's pairs where ``familywise`` is false,
        and ``beyond_noise``, whether it excludes 0. In percentage points for c-index,
        concordance, Uno's c and AUC; as they are for the others. Of more than six groups each is
        compared with everybody.
    imparity : DataFrame
        The same for concordance by Algorithm B.1, whose rules for ties in time can make a
        difference of their own; and ``noise_floor``, the difference that a model without any shows
        on average in the most striking of the attribute's pairs, on as many patients as this pair
        has.
    slices : DataFrame
        The same for the worst groups that a search found, the worst first, judged on patients who
        took no part in it and compared with others who have like scores.
    notes : tuple of str
        What the reader should know first, such as scores that look reversed.
    horizon : float
        The time up to which risks are judged.
    familywise : bool
        Whether the intervals of differences hold for all attributes at once.
    smallest : int
        Groups with fewer patients are not shown.
    """

    name: str
    table: pd.DataFrame
    imparity: pd.DataFrame
    slices: pd.DataFrame
    _comparisons: pd.DataFrame = field(repr=False)
    notes: tuple[str, ...]
    horizon: float
    _predictions: Predictions = field(repr=False)
    _kinds: list[Family] = field(repr=False)
    _hidden: frozenset = field(repr=False)
    familywise: bool = True
    smallest: int = 0

    @property
    def ci(self) -> pd.DataFrame:
        """Deprecated name of ``imparity``, which is no confidence interval."""
        warn("Audit.ci is now called Audit.imparity", DeprecationWarning, stacklevel=2)
        return self.imparity

    @property
    def differences(self) -> pd.DataFrame:
        """Differences between groups, in all measures."""
        return self._comparisons.drop(columns="noise_floor")

    @property
    def sentence(self) -> str:
        """The finding in words, a line for each attribute and for each group found."""
        if self._predictions.backwards:
            return "\n".join(self.notes)
        found = (self.table, self._comparisons, self.slices, self.notes)
        return "\n".join(sentences(*found, self._predictions.of_risks))

    def __str__(self) -> str:
        lines = [textwrap.fill(line, 80) for line in self.sentence.splitlines()]
        second = "calibration" if self.table["calibration"].notna().any() else "slope"
        names = ["patients", "events"]
        for name in ("c_index", second):
            names += [name, f"{name}_low", f"{name}_high"]
        heads = ["patients", "events", "c-index", "low", "high"]
        heads += ["o/e" if second == "calibration" else second, "low", "high"]
        table = self.table[names].set_axis(heads, axis=1)
        for head in ("patients", "events"):
            table[head] = [f"{n:.0f}" if n == n else "hidden" for n in table[head]]
        table = table.set_axis(short_labels(self.table["group"]))

        def short(value: float) -> str:
            return number_text(value, 2 if abs(value) < 10 else 1)

        text = table.to_string(float_format=short, na_rep="")
        cautions = [textwrap.fill(line, 80) for line in self.cautions]
        return "\n".join([*lines, "", text, *cautions])

    def compare(self, other: "Audit") -> pd.DataFrame:
        """Differences of two models on the same patients, this one less the other.

        Parameters
        ----------
        other : Audit
            Of the same data.

        Returns
        -------
        DataFrame
            A row for each group and measure that both can answer: ``attribute``, ``group``,
            ``measure``, ``difference`` with an interval that is simultaneous over the groups of
            the attribute (``low``, ``high``), and ``beyond_noise``. Units as in ``differences``.
        """
        if not self._same_patients(other):
            raise ValueError("other must be an audit of the same data and groups")
        rows = []
        for family in self._kinds:
            for name in MEASURES:
                if name != "risk_observed":  # which no model changes
                    rows += self._compared(other, family, name)
        columns = [name for name in COMPARISON_COLUMNS if name not in ("versus", "noise_floor")]
        differences = pd.DataFrame(rows, columns=columns)
        place = {label: k for k, label in enumerate(self.table["group"])}
        return differences.sort_values(
            "group", key=lambda groups: groups.map(place), kind="stable", ignore_index=True
        )

    def _same_patients(self, other: "Audit") -> bool:
        """Whether another audit is of the same outcomes and groups."""
        mine, theirs = self._predictions.patients, other._predictions.patients
        same_time = np.array_equal(mine.time, theirs.time)
        same_event = np.array_equal(mine.event, theirs.event)
        labels = [family.labels for family in self._kinds]
        return same_time and same_event and labels == [family.labels for family in other._kinds]

    def _compared(self, other: "Audit", family: Family, name: str) -> list[dict]:
        """Rows of one attribute and measure: the groups that both audits judge."""
        mine = group_estimates(self._predictions, family, name, self._hidden)
        theirs = group_estimates(other._predictions, family, name, other._hidden)
        both = [label for label in mine if label in theirs]
        names = []
        differences = []
        for label in both:
            one, two = mine[label], theirs[label]
            names.append({"attribute": family.attribute, "group": label, "measure": name})
            differences.append(Estimate(one.value - two.value, one.without - two.without))
        return compare(names, differences, MEASURES[name].unit)

    @property
    def _many(self) -> list[str]:
        """Attributes with so many groups that each is compared with everybody."""
        crowded = [family for family in self._kinds if len(family.labels) > MOST_PAIRED]
        return [family.attribute for family in crowded if family.compared]

    def funnels(self) -> list[Funnel]:
        """For each attribute with many groups, their c-index by events and limits of chance.

        Returns
        -------
        list of Funnel
        """
        if self.table["c_index"].isna().all():
            return []
        funnels = []
        for family in self._kinds:
            if family.attribute in self._many:
                estimates = group_estimates(self._predictions, family, "c_index", self._hidden)
                funnels.append(funnel(family.attribute, self.table, self._comparisons, estimates))
        return funnels

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
            ``predicted`` and ``observed``; empty where no risks were predicted. Attributes with
            many groups are left out, and groups of which a part has too few patients, events or
            patients without an event to be shown: observed risks would tell their numbers.
        """
        patients = self._predictions.patients
        columns = ["attribute", "group", "patients", "events", "predicted", "observed"]
        curves = [pd.DataFrame(columns=columns)]
        for family in self._kinds:
            if patients.risk is None or not family.compared or family.attribute in self._many:
                continue
            for code, label in enumerate(family.labels):
                rows = family.codes == code
                if rows.sum() < 2 * bins or (family.attribute, label) in self._hidden:
                    continue
                risk, time, event = patients.risk[rows], patients.time[rows], patients.event[rows]
                curve = horizons.calibration_curve(risk, time, event, self.horizon, bins)
                if not small_counts(curve["patients"], curve["events"], self.smallest).any():
                    curves.append(curve.assign(attribute=family.attribute, group=label))
        return pd.concat(curves[1:] or curves, ignore_index=True)[columns]

    @property
    def cautions(self) -> list[str]:
        """What the page warns of: groups with few events, and who is not judged at all."""
        known = self.table[self.table["attribute"].isin([f.attribute for f in self._kinds[1:]])]
        lines = []
        none = known[known["events"] < FEWEST_EVENTS]
        few = known[(known["events"] >= FEWEST_EVENTS) & (known["events"] < FEW_EVENTS)]
        for rows, words in (
            (none, "Not judged, with fewer than {} events: {}.".format(FEWEST_EVENTS, "{}")),
            (few, FEW_EVENTS_NOTE),
        ):
            names = [f"{row.group} ({row.events:.0f})" for row in rows.itertuples()]
            if len(names) > MOST_NAMED:
                names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
            if names:
                lines.append(words.format(", ".join(names)))
        return lines

    def plot(self) -> object:
        """Draw c-index and calibration (or slope) of every group, with intervals.

        Of more than six groups of an attribute it is a funnel: the c-index by the number of
        events, around everybody's, with limits that hold 95 % of the groups by chance, and others
        that hold all of them.

        Returns
        -------
        matplotlib Figure
        """
        import matplotlib.pyplot as plt  # here: it chooses a backend, and only plots need one

        figure = plt.figure()
        if funnels := self.funnels():
            draw_funnels(figure, funnels)
        else:
            draw_groups(figure, self.table)
        return figure

    def plot_calibration(self, bins: int = 5) -> object:
        """Draw observed against predicted risk at the horizon, by group and fifth of the risk.

        Parameters
        ----------
        bins : int
            Parts of each group, of equal size.

        Returns
        -------
        matplotlib Figure
        """
        curves = self.calibration_curves(bins)
        if self._predictions.patients.risk is None:
            raise ValueError("no risks to draw; pass survival= with times=, or scores with train=")
        if curves.empty:
            raise ValueError("no group is large enough to be drawn in parts; lower bins")
        import matplotlib.pyplot as plt

        figure = plt.figure()
        draw_calibration(figure, curves)
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

    def _repr_html_(self) -> str:
        """The first lines and the table, in a notebook."""
        lead = "".join(
            f"<p>{jinja2.filters.escape(line)}</p>" for line in self.sentence.split("\n")
        )
        known = self.table.dropna(axis=1, how="all")
        return lead + known.to_html(index=False, float_format=number_text, na_rep="–")

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """The table as text with commas.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it.

        Returns
        -------
        str or None
            The text, where no path is given.
        """
        return self.table.to_csv(path, index=False)

    def to_markdown(self) -> str:
        """The sentence and the table in Markdown.

        Returns
        -------
        str
        """
        known = self.table.dropna(axis=1, how="all").drop(columns="attribute")
        lines = [*(f"- {line}" for line in self.sentence.splitlines()), ""]
        lines.append("| " + " | ".join(known.columns) + " |")
        lines.append("|" + "---|" * len(known.columns))
        for row in known.itertuples(index=False):
            cells = [number_text(v, 3) if isinstance(v, float) else str(v) for v in row]
            cells = [cell.replace("|", "\\|").replace("nan", "–") for cell in cells]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything that was found, for other programs.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it.

        Returns
        -------
        str
        """

        def records(frame: pd.DataFrame) -> list[dict]:
            return json.loads(frame.to_json(orient="records", double_precision=12))

        content = {
            "name": self.name,
            "drocox": __version__,
            "horizon": self.horizon,
            "sentence": self.sentence.splitlines(),
            "table": records(self.table),
            "differences": records(self.differences),
            "imparity": records(self.imparity),
            "slices": records(self.slices),
        }
        text = json.dumps(content, indent=1, ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text


def audit(
    data: SurvivalData,
    scores=None,
    *,
    survival=None,
    times=None,
    expected=None,
    horizon: float | None = None,
    folds=None,
    train: tuple | Mapping | None = None,
    smallest: int = 0,
    familywise: bool = True,
) -> Audit:
    r"""Judge how well predictions serve the groups of ``data``, with 95 % intervals.

    ``c_index`` is Harrell's, among the group's own patients, and ``uno_c`` the same weighted for
    censoring, up to the horizon. ``concordance`` is the fraction of Algorithm B.1, the group's
    patients compared with everybody; its differences between groups make up concordance imparity.
    ``calibration`` is observed by expected events,

    .. math:: \sum_{i \in g} \delta_i \Big/ \sum_{i \in g} \hat H_i(Y_i)

    (for survival at a single time, observed by predicted risk), ``slope`` the coefficient of a Cox
    regression on the log-hazards, and ``mean_risk`` the geometric mean of the hazards relative to
    everybody's. Up to the horizon, ``risk_observed`` is Kaplan and Meier's risk,
    ``risk_predicted`` the mean prediction, ``auc`` and ``brier`` compare the two patient by
    patient. What the predictions cannot answer is NaN: calibration needs survival, expected events
    or a training part. Groups with fewer than 5 events are counted, not judged; AUC and Brier
    score need 5 patients with an event up to the horizon and 5 who are observed longer.

    Intervals are those of the models at hand, for other patients like these. Where several models
    were cross-fitted, it is these that are judged: what another training would have given is not
    in the intervals. In simulations they hold as often as they promise; those of concordance a
    little less often where groups have few events.

    Parameters
    ----------
    data : SurvivalData
        With at least one attribute in ``groups``.
    scores : array of shape (n,), optional
        Log-hazards by a model that has not seen these patients; higher for earlier events. Scores
        on another scale are ranked, and a note says what they look like.
    survival : array of shape (n,) or (n, k), or n functions of time, optional
        Probabilities to survive, for a model of any kind.
    times : float or array of shape (k,), optional
        The time or times of ``survival``.
    expected : array of shape (n,), optional
        Expected events of each patient up to the observed time.
    horizon : float, optional
        Time up to which risks are judged; by default the time of ``survival`` if it has one, else
        the last event after which a tenth of the patients is still observed.
    folds : array of shape (n,), optional
        Which model scored each patient, where several did (cross-fitting): only patients of one
        fold are compared.
    train : (SurvivalData, array), or a mapping of fold to such pairs, optional
        Training part and its scores, for the baseline hazard.
    smallest : int
        Groups with fewer patients, events or patients without an event are not shown, nor are
        others from which their counts could be worked out exactly, by whatever sums and
        differences, nor how large the groups are that a search found.
    familywise : bool
        Whether the intervals of differences hold for all attributes at once. Those of c-index and
        calibration, which the sentence is about, then hold together: where no group differs, 5 %
        of all audits say that one does. Those of any other measure hold among themselves.
        Otherwise intervals hold for the groups of one attribute and one measure.

    Returns
    -------
    Audit
        With ``table``, ``differences``, ``imparity``, ``slices``, ``sentence``, ``compare(other)``,
        ``plot()``, ``plot_calibration()`` and ``to_html(path)``.

    Examples
    --------
    >>> from drocox import load_dataset
    >>> data = load_dataset("seer")
    >>> result = audit(data, data.X["nodes_positive"])
    >>> result.imparity[["group", "versus", "difference"]].round(1)
          group     versus  difference
    0  age > 65  age <= 65        -3.0
    1     white  non-white         1.6
    """
    smallest = _checks.whole_number(smallest, "smallest", least=0)
    # what does not exist is NaN
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        judged = predictions(
            data,
            scores,
            survival=survival,
            times=times,
            expected=expected,
            horizon=horizon,
            folds=folds,
            train=train,
        )
        kinds, note = families(data)
        hidden, others = hidden_groups(kinds, data.event, smallest)
        notes = [*judged.notes, note] if note else list(judged.notes)
        if hidden:
            notes.append(HIDDEN_NOTE.format(smallest, ALSO_HIDDEN.format(others) if others else ""))
        table, comparisons, imparity = judge(judged, kinds, hidden, familywise)
        slices = pd.DataFrame(columns=[*DIFFERENCE_COLUMNS, "patients", "events"])
        if judged.ranks and not judged.backwards:
            slices = find_slices(judged.patients, data.X)
        small = small_counts(slices["patients"], slices["events"], smallest).astype(bool)
        slices = slices[~small].reset_index(drop=True)
        if smallest:  # with counts of known groups, these could tell what is hidden
            slices = slices.assign(patients=np.nan, events=np.nan)
    return Audit(
        data.name,
        table,
        imparity,
        slices,
        comparisons,
        tuple(notes),
        judged.patients.until,
        judged,
        kinds,
        hidden,
        familywise,
        smallest,
    )


def page(
    audits: Mapping[str, Audit],
    facts: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """The audits of one or several models as a page, laid out by ``page.html`` beside this module.

    Parameters
    ----------
    audits : mapping of str to Audit
        By the name of the model, which may be empty. The second is compared with the first.
    facts : mapping of str to str, optional
        What else the page says about its making, such as the command.
    warnings : sequence of str
        What was said while the models were fitted, such as that a coefficient runs away.

    Returns
    -------
    str
        HTML without scripts, styles, fonts or pictures from elsewhere; names are escaped.
    """
    layout = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True)
    environment.filters["number_text"] = number_text
    about = {"Made on": date.today().isoformat(), "With": f"drocox {__version__}"}
    first = next(iter(audits.values()))
    compared = []
    for title, other in list(audits.items())[1:]:
        compared.append((title, other.compare(first)))
    numbers = count()
    titles = {name: measure.title for name, measure in MEASURES.items()}
    if first._predictions.of_risks:
        titles["calibration"] = "Observed / predicted risk"

    def drawn(draw: Callable, content: object) -> str:
        return as_svg(draw, content, salt=f"drocox {next(numbers)}")

    return environment.from_string(layout).render(
        audits=audits,
        facts=about | dict(facts or {}),
        titles=titles,
        of_risks=first._predictions.of_risks,
        compared=compared,
        base=next(iter(audits)),
        most=SHOWN_ROWS,
        at_horizon=FEWEST_AT_HORIZON,
        digits_for=digits_for,
        warnings=warnings,
        drawn=drawn,
        draw_groups=draw_groups,
        draw_funnels=draw_funnels,
        draw_calibration=draw_calibration,
    )
