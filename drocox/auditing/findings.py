"""The findings of an audit in words: alike, differ or cannot tell, for each attribute and measure.

Three measures get a word: the c-index; the c-index beside the one that the model's own predictions
lead one to expect, of which only a lower one counts; and observed over expected events, or risk.
Groups are *alike* if every interval of their differences lies inside the measure's margin, they
*differ* if one excludes 0, and otherwise the data *cannot tell*. The intervals are those of
``differences``, which hold together. A group that is not judged forbids *alike*.
"""

import math
import re
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
SAYS_LITTLE = ("yes", "no", "true", "false")  # values that need the name of their attribute
NUMBER = re.compile(r"[\d.,+-]*$")
INTERVAL = re.compile(r"\((-?[\d.]+ to )")


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
        lines.append("Found by search: no group that is ranked worse, by an interval without 0.")
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
        self.ratio = f"observed over {'predicted risks' if of_risks else 'expected events'}"
        judged = of_groups[["c_index", "calibration"]].notna().any(axis=1)
        few = of_groups.index[~judged & of_groups["events"].notna()]
        self.left_out = [
            f"{self._short(group)} ({_events(of_groups.loc[group, 'events'])})" for group in few
        ]

    @property
    def said(self) -> str:
        """The words for each measure, and the groups that are not judged."""
        told = [words for words in map(self._told, WORDED) if words]
        if not told:
            told = ["nothing can be compared"]
        text = f"By {self.name}, {told[0]}."
        for words in told[1:]:
            text += f" {words[:1].upper()}{words[1:]}."
        hidden = self.of_groups["events"].isna()
        unseen = [self._short(group) for group in hidden.index[hidden]]
        for groups, why in ((self.left_out, "judged"), (unseen, "shown")):
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

    def _told(self, measure: str) -> str:
        """The word for a measure, and the difference that it rests on."""
        word = self.word(measure)
        if not word:
            return ""
        row = self._row(measure, word)
        values = self._values(measure, row)
        what = "the c-indices" if measure == "c_index" else self.ratio
        versus = self.measures[measure].versus
        if word == CANNOT_TELL:
            asked = (
                "every group is ranked as well as expected" if versus else f"{what} differ or not"
            )
            return self._cannot_tell(measure, asked, row, values)
        if word == ALIKE:
            if versus:
                margin = number_text(-self._margin(measure)[0])
                return (
                    "every group is ranked as well as the model's own predictions lead one to "
                    f"expect, to within {margin}: {values}"
                )
            return f"{what} are alike: {values}{self._within(measure, row)}"
        if versus:
            groups = self.rows[measure]["group"][self._says(measure) == DIFFER]
            worse = _listed([self._short(group) for group in groups])
            return (
                "the ranking is worse than the model's own predictions lead one to expect in "
                f"{worse}: {values}"
            )
        mix = self._case_mix(row) if measure == "c_index" else ""
        return f"{what} differ: {self._how_many(measure)}{values}{mix}"

    def _row(self, measure: str, word: str) -> pd.Series:
        """The difference that is told: the largest, or the one that is known worst."""
        rows, said = self.rows[measure], self._says(measure)
        if (said == word).any():
            rows = rows[said == word]
        if self.measures[measure].versus:
            return rows.loc[rows["low"].idxmin()]
        sizes = self._sizes(rows["difference"], measure).abs()
        if word == CANNOT_TELL:
            sizes = self._sizes(rows["high"], measure) - self._sizes(rows["low"], measure)
        return rows.loc[sizes.idxmax()]

    def _sizes(self, values: pd.Series, measure: str) -> pd.Series:
        """Sizes of differences, on the scale on which that of none is 0."""
        return np.log(values) if self.measures[measure].ratio else values

    def _needed(self, row: pd.Series, measure: str) -> float:
        """How many times as many events would make the interval as narrow as the margin."""
        low, value, high = self._sizes(row[["low", "difference", "high"]].astype(float), measure)
        half = value - low if self.measures[measure].versus else (high - low) / 2
        margin = self._sizes(pd.Series(self._margin(measure)[:1]), measure).abs()[0]
        return (half / margin) ** 2

    def _margin(self, measure: str) -> tuple[float, float]:
        limits = inside(self.measures[measure])
        assert limits is not None
        return limits

    def _short(self, group: str) -> str:
        return _short(group, self.name)

    def _value(self, group: str, measure: str) -> str:
        row = self.everybody if group == EVERYBODY else self.of_groups.loc[group]
        return number_text(row[measure], self.measures[measure].digits)

    def _values(self, measure: str, row: pd.Series) -> str:
        """The values of both groups, or of one beside its expected value, and their difference."""
        group, versus = row["group"], row["versus"]
        if self.measures[measure].versus:
            values = f"{self._value(group, 'c_index')} for {self._short(group)}, where "
            values += f"{self._value(group, 'c_expected')} is expected"
        else:
            values = f"{self._value(group, measure)} for {self._short(group)} and "
            values += f"{self._value(versus, measure)} for {self._short(versus)}"
        if self.measures[measure].ratio:
            return f"{values}, a ratio of {_size(row, 2, none=1)}"
        return f"{values}, a difference of {_size(row, 3)}"

    def _how_many(self, measure: str) -> str:
        """Of several groups, how many differ from everybody, before what is said of one of them."""
        rows = self.rows[measure]
        loud = int((rows["says"] == DIFFER).sum())
        if len(rows) == 1 or not (rows["versus"] == EVERYBODY).all():
            return ""
        return (
            f"{loud} of {len(rows)} groups {'differs' if loud == 1 else 'differ'} from everybody; "
        )

    def _cannot_tell(self, measure: str, asked: str, row: pd.Series, values: str) -> str:
        """That the data cannot tell, and why; of a second measure in fewer words."""
        first, self.unclear = not self.unclear, True
        text = f"these data cannot tell whether {asked}: "
        if not first:
            text = f"whether {asked} cannot be told either: "
        if (self._says(measure) == ALIKE).all():
            return f"{text}not every group is judged; of the others, {values}"
        low, high = self._margin(measure)
        kind = "shortfall" if self.measures[measure].versus else "difference"
        compatible = f"no {kind} and with one of more than {number_text(-low)}"
        if self.measures[measure].ratio:
            compatible = f"1 and with values beyond {low:.2f} to {high:.2f}"
        text += f"{values}, compatible with {compatible}" if first else values
        times = self._needed(row, measure)
        if times <= 1:  # the interval lies on the edge of the margin
            return text
        needed = f"; to narrow it to {low:.2f} to {-low if np.isinf(high) else high:.2f}, about "
        needed += f"{_rounded(self.everybody['events'] * times)} events would be needed"
        there_are = f" in all, and there are {self.everybody['events']:,.0f}" if first else ""
        return text + needed + there_are

    def _case_mix(self, row: pd.Series) -> str:
        """How much of a difference the model itself expects, where some groups are more alike."""
        groups = [row["group"], row["versus"]]
        if not set(groups) <= set(self.rows["c_minus_expected"]["group"]):
            return ""
        one, other = self.of_groups.loc[groups, "c_expected"]
        size = number_text(one - other, self.measures["c_index"].digits)
        return f", of which {size} is expected from how alike the model finds their patients"

    def _within(self, measure: str, row: pd.Series) -> str:
        """The margin, and a smaller difference that is not 0."""
        low, high = self._margin(measure)
        none = 1 if self.measures[measure].ratio else 0
        small = f", small but not {none}," if _excludes(row, none) else ","
        if self.measures[measure].ratio:
            return f"{small} within {low:.2f} to {high:.2f}"
        return f"{small} within ±{number_text(high)}"


def _short(group: str, attribute: str) -> str:
    """A group without its attribute, with which the sentence begins, if this says enough."""
    value = group.removeprefix(f"{attribute} = ")
    return group if value.lower() in SAYS_LITTLE or NUMBER.match(value) else value


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


def _excludes(row: pd.Series, none: float) -> bool:
    return bool(row["low"] > none or row["high"] < none)


def interval_text(value: float, low: float, high: float, least: int, none: float = 0) -> str:
    """A value with its interval, neither end of which reads as none if that is outside."""
    digits = digits_for(low - none, high - none, least)
    value_text, low_text, high_text = (number_text(one, digits) for one in (value, low, high))
    return f"{value_text} ({low_text} to {high_text})"


def _size(row: pd.Series, least: int, none: float = 0) -> str:
    """A difference with its interval."""
    return interval_text(row["difference"], row["low"], row["high"], least, none)


def paragraphs(lines: Sequence[str]) -> str:
    """The lines as one text, which says once in each what the numbers in brackets are."""
    return "\n".join(INTERVAL.sub(r"(95 % interval \1", line, count=1) for line in lines)


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
        small = ", less than the margin" if high < (MEASURES["c_index"].margin or 0) else ""
        text = f"{what} ranks patients in general better than this model, by {size}{small}."
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
        row = rows.loc[rows["high"].idxmax()]
        size = interval_text(row["difference"], row["low"], row["high"], 3)
        text = f"{what}, fitted to one group alone, is not seen to rank any group better; in "
        text += f"{row['group']}, which leaves most room, its gain is {size}."
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
    return [
        f"The calibration slopes differ: {_two_values(row, table)}. "
        "Where a slope is below 1, differences between patients are smaller than predicted."
    ]


def _whole(everybody: pd.Series, of_risks: bool, slopes_differ: bool) -> str:
    """Miscalibration of all patients together; a slope only if it is the same for all groups."""
    parts = []
    low, high = everybody["c_index_low"], everybody["c_index_high"]
    if low <= 0.5 <= high:
        index = interval_text(everybody["c_index"], low, high, 3)
        parts.append(f"the c-index is {index}: ranking is not seen to be better than chance")
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
    table: pd.DataFrame,
    paired: pd.DataFrame,
    titles: Mapping[str, str],
    backwards: Sequence[str] = (),
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
        parts, by_group = [], ""
        for measure in ("c_index", "brier", "calibration"):
            rows = mine[mine["measure"] == measure]
            of_all = rows["group"] == EVERYBODY
            if of_all.any():
                digits = MEASURES[measure].digits
                values = [number_text(everybody[measure][name], digits) for name in (model, base)]
                size = _size(rows[of_all].iloc[0], digits)
                title = _in_a_sentence(titles[measure])
                parts.append(f"{title} {values[0]} against {values[1]}, a difference of {size}")
                if measure != "brier":
                    by_group += _groups_of_models(rows[~of_all], title)
        if not parts:
            lines.append(f"{model} and {base}: neither ranks patients, nor predicts risks.")
            continue
        lines.append(f"{model} against {base}: {'; '.join(parts)}.{by_group}")
    return lines


def _groups_of_models(rows: pd.DataFrame, title: str) -> str:
    """For which groups two models differ in a measure."""
    if rows.empty:
        return ""
    loud = rows[(rows["low"] > 0) | (rows["high"] < 0)]
    if loud.empty:
        return f" In {title}, the interval contains 0 in each of {len(rows)} groups."
    named = [f"{row.group} ({row.difference:+.3f})" for row in loud.itertuples()]
    verb = "differs" if len(loud) == 1 else "differ"
    return f" In {title}, {len(loud)} of {len(rows)} groups {verb}: {_listed(named)}."


def _in_a_sentence(title: str) -> str:
    named = title.isupper() or title.startswith("Brier")
    return title if named else title[:1].lower() + title[1:]


def decision_sentence(
    table: pd.DataFrame, differences: pd.DataFrame, threshold: float, horizon: float
) -> str:
    """What the threshold does to everybody, and where groups differ."""
    everybody = table[table["group"] == EVERYBODY].iloc[0]
    values = []
    for name in DECISIONS[1:]:
        short, digits = _in_a_sentence(MEASURES[name].title), MEASURES[name].digits
        values.append(f"{short} {number_text(everybody[name], digits).replace('nan', 'unknown')}")
    text = (
        f"At a threshold of {threshold:.3g} for the risk up to time {horizon:.4g}, "
        f"{100 * everybody['flagged']:.0f} % of the patients are flagged: {', '.join(values)}."
    )
    rows = differences[differences["measure"].isin(DECISIONS)]
    for attribute in rows["attribute"].unique():
        mine = rows[rows["attribute"] == attribute]
        told, open_ = [], []
        for name in (name for name in DECISIONS if (mine["measure"] == name).any()):
            title = _in_a_sentence(MEASURES[name].title)
            loud = mine[(mine["measure"] == name) & (mine["says"] == DIFFER)]
            if loud.empty:
                open_.append(title)
                continue
            row = loud.loc[loud["difference"].abs().idxmax()]
            told.append(f"{title} is {_two_values(row, table, attribute)}")
        if open_:
            told.append(f"whether {_listed(open_)} differ{'s' * (len(open_) == 1)} cannot be told")
        text += f" By {attribute}, {'; '.join(told)}."
    if (rows["says"] == DIFFER).any():
        text += " Where risks differ between groups, so do these shares, even if all risks are "
        text += "right."
    return text


def _two_values(row: pd.Series, table: pd.DataFrame, within: str = "") -> str:
    """The values of two groups, and their difference, in a sentence about an attribute."""
    values = []
    for group in (row["group"], row["versus"]):
        value = table.loc[table["group"] == group, row["measure"]].iloc[0]
        values.append(f"{number_text(value)} for {_short(group, within)}")
    return f"{' and '.join(values)}, a difference of {_size(row, 2)}"
