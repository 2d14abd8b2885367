"""The findings of an audit in words: alike, differ or cannot tell, for each attribute and measure.

Three measures get a word: the c-index; the c-index beside the one that the model's own predictions
lead one to expect, of which only a lower one counts; and observed over expected events, or risk.
Groups are *alike* if every interval of their differences lies inside the measure's margin, they
*differ* if one excludes 0, and otherwise the data *cannot tell*. The intervals are those of
``differences``, which hold together. A group that is not judged forbids *alike*.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from drocox.auditing.groupings import EVERYBODY
from drocox.auditing.measures import DECISIONS, MEASURES, WORDED, Measure, inside
from drocox.heldout.intervals import ALIKE, CANNOT_TELL, DIFFER

MOST_NAMED = 6  # groups in a sentence
NOT_ASKED = (
    "Whether another model would rank a group better was not asked, since no columns were named "
    "that it may use."
)
MOST_DIGITS = 4  # after the point


def sentences(
    table: pd.DataFrame,
    comparisons: pd.DataFrame,
    slices: pd.DataFrame,
    notes: tuple[str, ...],
    measures: Mapping[str, Measure] = MEASURES,
    of_risks: bool = False,
    features: Sequence[str] | None = (),
) -> list[str]:
    """A line for each note and attribute, for everybody, for other models and each group found.

    ``features`` are the columns that other models have used; without them nothing is said of these
    where it is None, and else that it was not asked.
    """
    lines = list(notes)
    for name in table["attribute"].unique():
        rows = comparisons[comparisons["attribute"] == name]
        if name and (len(rows) or " × " not in name):
            of_groups = table[table["attribute"] == name].set_index("group")
            lines.append(_Attribute(name, rows, of_groups, table.iloc[0], measures, of_risks).said)
    slopes = comparisons[comparisons["measure"] == "slope"]
    lines += _slopes(slopes, table)
    whole = _whole(table.iloc[0], of_risks, (slopes["says"] == DIFFER).any())
    lines += [whole] if whole else []
    if features:
        lines += _own_models(
            comparisons[comparisons["measure"] == "own_model_gain"], table, features
        )
    elif features is not None:
        lines.append(NOT_ASKED)
    worse = slices[slices["high"] < 0]
    for row in worse.itertuples():
        size = interval_text(-row.difference, -row.high, -row.low, 3)
        lines.append(f"Found by search: {row.group}, ranked worse than {row.versus} by {size}.")
    if len(slices) and worse.empty:
        lines.append("Found by search: no group whose interval says that it is ranked worse.")
    return lines


class _Attribute:
    """What is said of the groups of one attribute."""

    def __init__(
        self,
        name: str,
        rows: pd.DataFrame,
        of_groups: pd.DataFrame,
        everybody: pd.Series,
        measures: Mapping[str, Measure],
        of_risks: bool,
    ):
        self.name = name
        self.rows = {measure: rows[rows["measure"] == measure] for measure in WORDED}
        self.of_groups = of_groups
        self.everybody = everybody
        self.measures = measures
        self.unclear = False  # whether it was said of a measure that the data cannot tell
        self.ratio = "observed over expected events"
        if of_risks:
            self.ratio = "observed over predicted risks"
        judged = of_groups[["c_index", "calibration"]].notna().any(axis=1)
        few = of_groups.index[~judged & of_groups["events"].notna()]
        self.left_out = [f"{group} ({_events(of_groups.loc[group, 'events'])})" for group in few]

    @property
    def said(self) -> str:
        """The words for each measure, and the groups that are not judged."""
        told = [
            words for words in (self._c_index(), self._expected(), self._calibration()) if words
        ]
        if not told:
            told = ["nothing can be compared"]
        text = f"By {self.name}, {told[0]}."
        for words in told[1:]:
            text += f" {words[:1].upper()}{words[1:]}."
        hidden = self.of_groups["events"].isna()
        for groups, why in ((self.left_out, "judged"), (list(hidden.index[hidden]), "shown")):
            if groups:
                text += f" Not {why}: {_listed(groups)}."
        return text

    def word(self, measure: str) -> str:
        """Alike, differ or cannot tell, by the intervals of all differences; empty without any."""
        said = self._says(measure)
        if said.empty:
            return ""
        if (said == ALIKE).all():
            whole = not self.left_out and self.of_groups["events"].notna().all()
            return ALIKE if whole else CANNOT_TELL
        return DIFFER if (said == DIFFER).any() else CANNOT_TELL

    def _says(self, measure: str) -> pd.Series:
        """What each difference says; a group that is ranked better than expected is no finding."""
        rows = self.rows[measure]
        if self.measures[measure].versus:
            better = (rows["says"] == DIFFER) & (rows["low"] > 0)
            return rows["says"].mask(better, ALIKE)
        return rows["says"]

    def _row(self, measure: str) -> pd.Series:
        """The difference that is told: the largest, or the one that is known worst."""
        rows, word = self.rows[measure], self.word(measure)
        said = self._says(measure)
        if word == CANNOT_TELL and not (said == ALIKE).all():
            rows = rows[said == CANNOT_TELL]
            return rows.loc[self._needed(rows, measure).idxmax()]
        rows = rows[said == word] if word == DIFFER else rows
        return rows.loc[self._sizes(rows["difference"], measure).abs().idxmax()]

    def _sizes(self, values: pd.Series, measure: str) -> pd.Series:
        """Sizes of differences, on the scale on which that of none is 0."""
        return np.log(values) if self.measures[measure].ratio else values

    def _needed(self, rows: pd.DataFrame, measure: str) -> pd.Series:
        """How many times as many events would make the intervals as narrow as the margin.

        Where they are so narrow already, and yet on its edge: narrow enough for another word.
        """
        sizes = {name: self._sizes(rows[name], measure) for name in ("difference", "low", "high")}
        half = (sizes["high"] - sizes["low"]) / 2
        if self.measures[measure].versus:
            half = sizes["difference"] - sizes["low"]
        limit = inside(self.measures[measure])
        assert limit is not None
        margin = -limit[0] if self.measures[measure].versus else limit[1]
        margin = np.log(margin) if self.measures[measure].ratio else margin
        apart = sizes["difference"].abs()
        enough = np.where(half > margin, margin, np.maximum(apart, margin - apart))
        return np.maximum((half / enough) ** 2, 1)

    def _value(self, group: str, measure: str) -> float:
        if group == EVERYBODY:
            return self.everybody[measure]
        return self.of_groups.loc[group, measure]

    def _both(self, row: pd.Series, measure: str) -> str:
        """The values of both groups."""
        digits = self.measures[measure].digits
        values = []
        for one in (row["group"], row["versus"]):
            values.append(f"{number_text(self._value(one, measure), digits)} for {one}")
        return " and ".join(values)

    def _how_many(self, measure: str) -> str:
        """Of several groups, how many differ from everybody, before what is said of one of them."""
        rows = self.rows[measure]
        loud = int((rows["says"] == DIFFER).sum())
        if len(rows) == 1 or not (rows["versus"] == EVERYBODY).all():
            return ""
        return (
            f"{loud} of {len(rows)} groups {'differs' if loud == 1 else 'differ'} from everybody; "
        )

    def _why(self, measure: str, row: pd.Series, values: str) -> str:
        """Why the data cannot tell: few events, a wide interval, or groups that are not judged."""
        if (self._says(measure) == ALIKE).all():
            return f"not every group is judged; of the others, {values}"
        events = self.of_groups["events"]
        groups = [one for one in (row["group"], row["versus"]) if one in events.index]
        fewest = min(groups, key=lambda one: events[one])
        needed = _rounded(
            events[fewest] * self._needed(self.rows[measure].loc[[row.name]], measure).iloc[0]
        )
        limits = inside(self.measures[measure])
        assert limits is not None
        beyond = f"more than {number_text(limits[1], 2)}"
        none = "none"
        if self.measures[measure].ratio:
            none, beyond = "1", f"values beyond {number_text(limits[0], 2)} to {limits[1]:.2f}"
        elif self.measures[measure].versus:
            beyond = f"a shortfall of more than {number_text(-limits[0], 2)}"
        if self.unclear:  # said before, of another measure
            return f"{values}; about {needed} events in {fewest} would be needed"
        return (
            f"with {_events(events[fewest])} in {fewest}, {values}, compatible with {none} and "
            f"with {beyond}; about {needed} events would be needed"
        )

    def _cannot_tell(self, what: str, why: str) -> str:
        """That the data cannot tell; of a second measure in fewer words."""
        text = f"whether {what} cannot be told either: {why}"
        if not self.unclear:
            text = f"these data cannot tell whether {what}: {why}"
        self.unclear = True
        return text

    def _c_index(self) -> str:
        word = self.word("c_index")
        if not word:
            return ""
        row = self._row("c_index")
        size = _size(row, 3)
        values = f"{self._both(row, 'c_index')}, a difference of {size}"
        if word == DIFFER:
            text = f"the c-indices differ: {self._how_many('c_index')}{values}"
            return text + self._case_mix(row)
        if word == ALIKE:
            return f"the c-indices are alike: {values}{self._within('c_index', row)}"
        if (self._says("c_index") != ALIKE).any():
            values = f"the difference between {row['group']} and {row['versus']} is {size}"
        why = self._why("c_index", row, values)
        return self._cannot_tell("the c-indices differ", why)

    def _case_mix(self, row: pd.Series) -> str:
        """Whether the group with the lower c-index is ranked as well as expected."""
        rows = self.rows["c_minus_expected"].set_index("group")
        low = row["group"] if row["difference"] < 0 else row["versus"]
        if low not in rows.index:
            return ""
        other = row["versus"] if low == row["group"] else row["group"]
        expected, of_other = (self._value(one, "c_expected") for one in (low, other))
        margin = float(self.measures["c_minus_expected"].margin or 0)
        if rows.loc[low, "low"] > -margin and expected < of_other:
            return (
                f"; but {low} is ranked as well as expected ({number_text(expected, 3)}), where "
                "the model finds patients more alike"
            )
        return ""

    def _within(self, measure: str, row: pd.Series) -> str:
        """The margin, and a smaller difference that is not 0."""
        limits = inside(self.measures[measure])
        assert limits is not None
        small = ", small but not 0," if _excludes_none(row, self.measures[measure]) else ","
        if self.measures[measure].ratio:
            small = ", small but not 1," if len(small) > 1 else ","
            return f"{small} within {limits[0]:.2f} to {limits[1]:.2f}"
        return f"{small} within ±{number_text(limits[1], 2)}"

    def _expected(self) -> str:
        word = self.word("c_minus_expected")
        if not word:
            return ""
        row = self._row("c_minus_expected")
        group = row["group"]
        values = (
            f"the c-index is {number_text(self._value(group, 'c_index'), 3)} where "
            f"{number_text(self._value(group, 'c_expected'), 3)} is expected, a difference of "
            f"{_size(row, 3)}"
        )
        if word == DIFFER:
            worse = self.rows["c_minus_expected"]["group"][self._says("c_minus_expected") == DIFFER]
            which = "" if len(worse) == 1 else f"in {group} "
            return (
                "the ranking is worse than the model's own predictions lead one to expect in "
                f"{_listed(list(worse))}: {which}{values}"
            )
        if word == ALIKE:
            margin = number_text(float(self.measures["c_minus_expected"].margin or 0), 2)
            return (
                "every group is ranked as well as the model's own predictions lead one to expect, "
                f"to within {margin}{self._a_little_worse()}"
            )
        values = f"in {group} {values}" if self.unclear else values
        why = self._why("c_minus_expected", row, values)
        return self._cannot_tell("every group is ranked as well as expected", why)

    def _a_little_worse(self) -> str:
        """The group with the largest shortfall that is not 0 and lies within the margin."""
        rows = self.rows["c_minus_expected"]
        rows = rows[rows["high"] < 0]
        if rows.empty:
            return ""
        row = rows.loc[rows["difference"].idxmin()]
        return f"; in {row['group']} the difference is small but not 0, {_size(row, 3)}"

    def _calibration(self) -> str:
        word = self.word("calibration")
        if not word:
            return ""
        row = self._row("calibration")
        size = _size(row, 2, none=1)
        values = f"{self._both(row, 'calibration')}, a ratio of {size}"
        if word == DIFFER:
            return f"{self.ratio} differ: {self._how_many('calibration')}{values}"
        if word == ALIKE:
            return f"{self.ratio} are alike: {values}{self._within('calibration', row)}"
        why = self._why("calibration", row, values)
        return self._cannot_tell(f"{self.ratio} differ", why)


def _listed(names: Sequence[str]) -> str:
    """Names with commas between them, of many the first ones."""
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _events(number: float) -> str:
    return f"{number:,.0f} event{'' if number == 1 else 's'}"


def _rounded(number: float) -> str:
    """A number of events with two digits, rounded up."""
    if not np.isfinite(number):
        return "many more"
    unit = 10 ** max(0, math.floor(math.log10(max(number, 1))) - 1)
    return f"{math.ceil(number / unit - 1e-9) * unit:,}"


def _excludes_none(row: pd.Series, measure: Measure) -> bool:
    none = 1 if measure.ratio else 0
    return bool(row["low"] > none or row["high"] < none)


def interval_text(value: float, low: float, high: float, least: int, none: float = 0) -> str:
    """A value with its interval, neither end of which reads as none if that is outside."""
    digits = digits_for(low - none, high - none, least)
    value_text, low_text, high_text = (number_text(one, digits) for one in (value, low, high))
    return f"{value_text} ({low_text} to {high_text})"


def _size(row: pd.Series, least: int, none: float = 0) -> str:
    """A difference with its interval."""
    text = interval_text(row["difference"], row["low"], row["high"], least, none)
    return text.replace("(", "(95 % interval ", 1)


def _own_models(rows: pd.DataFrame, table: pd.DataFrame, features: Sequence[str]) -> list[str]:
    """Whether a ridge Cox model of the named columns ranks everybody, or a group, better."""
    everybody = table.iloc[0]
    gain, low, high = (everybody[f"own_model_gain{end}"] for end in ("", "_low", "_high"))
    better = rows[rows["low"] > 0]
    if rows.empty and math.isnan(gain):
        return []
    what = f"A ridge Cox model of {_listed(features)}"
    text = ""
    if low > 0:
        size = interval_text(gain, low, high, 3)
        text = f"{what} ranks patients in general better than this model, by {size}."
        if len(better):
            text += " Fitted to one group alone it gains"
    elif len(better):
        text = f"{what}, fitted to one group alone, ranks its patients better than this model, by"
    if len(better):
        sizes = []
        for row in better.itertuples():
            sizes.append(f"{interval_text(row.difference, row.low, row.high, 3)} for {row.group}")
        text = f"{text} {_listed(sizes)}."
    elif not text:
        text = f"{what}, fitted to one group alone, is not seen to rank any group better."
    single = table["attribute"].ne("") & ~table["attribute"].str.contains(" × ")
    untried = table["group"][single & table["events"].notna() & ~table["group"].isin(rows["group"])]
    return [f"{text} It was not tried in {_listed(list(untried))}." if len(untried) else text]


def number_text(value: float, digits: int = 2) -> str:
    """A number with some digits after the point; large ones by their power of ten."""
    if abs(value) >= 1000:
        return f"{value:.1e}"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if set(text) <= set("-0.") else text


def digits_for(low: float, high: float, least: int) -> int:
    """Digits with which the ends of an interval differ, and differ from 0 if it is outside."""
    smallest = 10 * (high - low)
    if low * high > 0:  # 0 is outside, and looks so
        smallest = min(smallest, 20 * min(abs(low), abs(high)))
    if not 0 < smallest < 1:
        return least
    return max(least, min(MOST_DIGITS, math.ceil(1 - math.log10(smallest))))


def _slopes(rows: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """Two groups whose calibration slopes differ, the farthest apart; nothing if none do."""
    rows = rows[rows["says"] == DIFFER]
    if rows.empty:
        return []
    row = rows.loc[rows["difference"].abs().idxmax()]
    values = []
    for name in (row["group"], row["versus"]):
        value = table.loc[table["group"] == name, "slope"].iloc[0]
        values.append(f"{number_text(value)} for {name}")
    return [
        f"The calibration slopes differ: {' and '.join(values)}, a difference of {_size(row, 2)}. "
        "Where a slope is below 1, differences between patients are smaller than predicted."
    ]


def _whole(everybody: pd.Series, of_risks: bool, slopes_differ: bool) -> str:
    """Miscalibration of all patients together; a slope only if it is the same for all groups."""
    parts = []
    low, high = everybody["calibration_low"], everybody["calibration_high"]
    if low > 1 or high < 1:
        words = "risks are too low" if low > 1 else "risks are too high"
        digits = digits_for(low - 1, high - 1, 2)
        ratio = number_text(everybody["calibration"], digits)
        what = f"{ratio} events are observed for each expected"
        if of_risks:
            what = f"the observed risk is {ratio} times the predicted one"
        ends = f"{number_text(low, digits)} to {number_text(high, digits)}"
        parts.append(f"{what} ({ends}): {words}")
    low, high = everybody["slope_low"], everybody["slope_high"]
    if (low > 1 or high < 1) and not slopes_differ:
        words = "not extreme enough" if low > 1 else "too extreme"
        digits = digits_for(low - 1, high - 1, 2)
        ends = f"{number_text(low, digits)} to {number_text(high, digits)}"
        slope = number_text(everybody["slope"], digits)
        parts.append(f"the slope is {slope} ({ends}): predictions are {words}")
    if not parts:
        return ""
    return f"On the whole, {', and '.join(parts)}."


def model_sentences(
    table: pd.DataFrame, paired: pd.DataFrame, backwards: Sequence[str] = ()
) -> list[str]:
    """How models differ on the same patients, a line for each but the first."""
    everybody = table[table["group"] == EVERYBODY].set_index("model")
    base, *others = everybody.index
    lines = []
    for model in others:
        wrong = [name for name in (model, base) if name in backwards]
        if wrong:
            named = " and by ".join(wrong)
            lines.append(f"{model} and {base} are not compared: by {named}, ranking is backwards.")
            continue
        mine = paired[paired["model"] == model]
        parts = []
        for measure, title, digits in (("c_index", "c-index", 3), ("brier", "Brier score", 3)):
            of_all = mine[(mine["measure"] == measure) & (mine["group"] == EVERYBODY)]
            if len(of_all):
                size = _size(of_all.iloc[0], digits)
                values = [number_text(everybody[measure][name], digits) for name in (model, base)]
                parts.append(f"{title} {values[0]} against {values[1]}, a difference of {size}")
        if not parts:
            lines.append(f"{model} and {base}: neither ranks patients, nor predicts risks.")
            continue
        lines.append(f"{model} against {base}: {'; '.join(parts)}. {_groups_of_models(mine)}")
    return lines


def _groups_of_models(rows: pd.DataFrame) -> str:
    """For which groups two models differ in ranking."""
    rows = rows[(rows["measure"] == "c_index") & (rows["group"] != EVERYBODY)]
    if rows.empty:
        return ""
    loud = rows[(rows["low"] > 0) | (rows["high"] < 0)]
    if loud.empty:
        return f"In none of {len(rows)} groups does the interval of this difference exclude 0."
    named = [f"{row.group} ({row.difference:+.3f})" for row in loud.itertuples()]
    if len(named) > MOST_NAMED:
        named = [*named[:MOST_NAMED], f"{len(named) - MOST_NAMED} more"]
    verb = "differs" if len(loud) == 1 else "differ"
    return f"{len(loud)} of {len(rows)} groups {verb}: {', '.join(named)}."


def decision_sentence(
    table: pd.DataFrame, differences: pd.DataFrame, threshold: float, horizon: float
) -> str:
    """What the threshold does to everybody, and where groups differ."""
    everybody = table[table["group"] == EVERYBODY].iloc[0]
    values = []
    for name in DECISIONS[1:]:
        title, digits = MEASURES[name].title, MEASURES[name].digits
        short = title if title.isupper() else title.lower()
        values.append(f"{short} {number_text(everybody[name], digits).replace('nan', 'unknown')}")
    text = (
        f"At a threshold of {threshold:.3g} for the risk up to time {horizon:.4g}, "
        f"{100 * everybody['flagged']:.0f} % of the patients are flagged: {', '.join(values)}."
    )
    rows = differences[differences["measure"].isin(DECISIONS)]
    for attribute in rows["attribute"].unique():
        mine = rows[rows["attribute"] == attribute]
        differ = [_largest(mine[mine["measure"] == name]) for name in DECISIONS]
        differ = [words for words in differ if words]
        text += f" By {attribute}, "
        text += ("; ".join(differ) if differ else "no interval of a difference excludes 0") + "."
    return text


def _largest(rows: pd.DataFrame) -> str:
    """The largest difference of a measure whose interval excludes 0, if there is one."""
    rows = rows[rows["says"] == DIFFER]
    if rows.empty:
        return ""
    row = rows.loc[rows["difference"].abs().idxmax()]
    title = MEASURES[row["measure"]].title
    return f"{title} differs ({row['group']} minus {row['versus']}: {_size(row, 2)})"
