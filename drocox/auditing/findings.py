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
from drocox.auditing.measures import DECISIONS, MEASURES, Measure, inside
from drocox.heldout.intervals import ALIKE, CANNOT_TELL, DIFFER
from drocox.terminal import listed

MOST_TIMES = 100  # as many events that are still worth a number
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
            lines.append(_attribute(name, rows, table, measures))
    slopes = comparisons[(comparisons["measure"] == "slope") & (comparisons["says"] == DIFFER)]
    lines += _slopes(slopes, table)
    lines += _whole(table.iloc[0], measures["calibration"], slopes.empty)
    if features:
        gains = comparisons[comparisons["measure"] == "own_model_gain"]
        lines += _own_models(gains, table, features)
    elif features is not None:
        lines.append(NOT_ASKED)
    worse = slices[slices["high"] < 0]
    for row in worse.itertuples():
        size = interval_text(-row.difference, -row.high, -row.low, 3)
        lines.append(f"Found by search: {row.group}, ranked worse than {row.versus} by {size}.")
    if len(slices) and worse.empty:
        lines.append(
            "Found by search: no group that is ranked worse, by an interval without 0, of patients "
            "who took no part in the search."
        )
    return lines


def _attribute(
    name: str, rows: pd.DataFrame, table: pd.DataFrame, measures: Mapping[str, Measure]
) -> str:
    """The words for each measure, and the groups of an attribute that are not judged or shown."""
    values = table[table["attribute"].isin(["", name])].set_index("group")
    hidden = values["events"].isna()
    few = ~hidden & values[["c_index", "calibration"]].isna().all(axis=1)
    few[EVERYBODY] = False
    compared: dict[str, _Compared] = {}
    not_by = ""
    short = values.index.map(lambda group: _short(group, name))
    for one in (one for one in measures if measures[one].worded):
        mine = rows[rows["measure"] == one]
        lacks = values[one].isna() & ~few & ~hidden
        if lacks.any() and values[one].notna().any():
            title = _in_a_sentence(measures[one].title)
            not_by += f" Not judged by {title}: {listed(list(short[lacks]), MOST_NAMED)}."
        if len(mine):
            compared[one] = _Compared(measures[one], mine, values, not (few | hidden | lacks).any())
    sure = [found.verdict() for found in compared.values() if found.word != CANNOT_TELL]
    open_ = [found.verdict() for found in compared.values() if found.word == CANNOT_TELL]
    if open_:
        sure.append(f"these data cannot tell {listed(open_, MOST_NAMED, ' or ')}")
    text = f"By {name}, {'; '.join(sure) or 'nothing can be compared'}."
    first = True  # of what the data cannot tell
    for one, found in compared.items():
        text += f" {found.evidence(first)}"
        if one == "c_index" and found.word == DIFFER and "c_minus_expected" in compared:
            text += _case_mix(found)
        text += "."
        first &= found.word != CANNOT_TELL
    not_judged = [
        f"{short[at]} ({_events(values['events'].iloc[at])})" for at in np.flatnonzero(few)
    ]
    for groups, why in ((not_judged, "judged"), (list(short[hidden]), "shown")):
        if groups:
            text += f" Not {why}: {listed(groups, MOST_NAMED)}."
    return text + not_by


class _Compared:
    """The differences of one measure between the groups of an attribute, and their word.

    ``values`` is the table of these groups and of everybody; ``whole`` says that all are judged.
    """

    def __init__(self, measure: Measure, rows: pd.DataFrame, values: pd.DataFrame, whole: bool):
        self.measure = measure
        self.rows = rows
        self.values = values
        self.none = 1 if measure.ratio else 0
        self.margins = inside(measure) or (-np.inf, np.inf)
        says = rows["says"]
        self.differ = rows["group"][says == DIFFER]
        self.all_alike = bool((says == ALIKE).all())
        self.word = CANNOT_TELL
        if len(self.differ) or (self.all_alike and whole):
            self.word = DIFFER if len(self.differ) else ALIKE
        sizes = self._sizes(rows)
        if measure.versus:  # the lowest, the widest or the largest
            order = -sizes["low"]
        elif self.word == CANNOT_TELL:
            order = sizes["high"] - sizes["low"]
        else:
            order = sizes["difference"].abs()
        self.row = rows.loc[order[(says == self.word) | (says != self.word).all()].idxmax()]

    def _sizes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Differences with their limits, on the scale on which that of none is 0."""
        sizes = rows[["difference", "low", "high"]]
        return np.log(sizes) if self.measure.ratio else sizes

    def text_of(self, name: str, group: str) -> str:
        """A value of a group, with the group's name."""
        short = _short(group, self.row["attribute"])
        return f"{number_text(self.values.loc[group, name], self.measure.digits)} for {short}"

    def verdict(self) -> str:
        """The word in a clause, or the question that these data leave open."""
        clause = f"{self.measure.said} {'are alike' if self.word == ALIKE else 'differ'}"
        if self.measure.versus:
            clause = "every group is ranked as well as"
            if self.word == DIFFER:
                worse = [_short(one, self.row["attribute"]) for one in self.differ]
                clause = f"{listed(worse, MOST_NAMED)} {'is' if len(worse) == 1 else 'are'}"
                clause += " ranked worse than"
            clause += " the model's own predictions lead one to expect"
        return f"whether {clause}" if self.word == CANNOT_TELL else clause

    def evidence(self, first: bool) -> str:
        """The difference that decides; where it is open, what is possible and would be needed.

        ``first``: of the measures of an attribute about which the data cannot tell.
        """
        measure, row = self.measure, self.row
        if measure.versus:
            expected = number_text(self.values.loc[row["group"], "c_expected"], measure.digits)
            values = f"{self.text_of('c_index', row['group'])}, where {expected} is expected on "
            values += "everybody's scale"
        else:
            both = [self.text_of(row["measure"], group) for group in (row["group"], row["versus"])]
            values = self._how_many() + " and ".join(both)
        title, kind = measure.title, "ratio" if measure.ratio else "difference"
        text = f"{title[:1].upper()}{title[1:]}: {values}, a {kind} of "
        text += _size(row, measure.digits, self.none)
        if self.word == ALIKE and measure.versus:
            text += f", which excludes a shortfall of more than {number_text(-self.margins[0])}"
        elif self.word == ALIKE:
            small = row["low"] > self.none or row["high"] < self.none
            text += f"{f', small but not {self.none},' if small else ','} within {self._margin()}"
        if self.word == CANNOT_TELL:
            text += self._open(first)
        return text + self._off()

    def _off(self) -> str:
        """The groups in which the ratio itself is not 1, by intervals that hold alone."""
        if not self.measure.ratio:
            return ""
        name = self.row["measure"]
        groups = self.values.drop(EVERYBODY)
        off = groups[(groups[f"{name}_low"] > 1) | (groups[f"{name}_high"] < 1)]
        named = []
        for group, row in off.iterrows():
            ends = (row[name], row[f"{name}_low"], row[f"{name}_high"])
            text = interval_text(*ends, self.measure.digits, self.none)
            named.append(f"{text} for {_short(str(group), self.row['attribute'])}")
        alone = ". By intervals that hold alone it is not 1: "
        return f"{alone}{listed(named, MOST_NAMED)}" if named else ""

    def _margin(self) -> str:
        """The values that do not matter."""
        low, high = self.margins
        return f"{low:.2f} to {high:.2f}" if self.measure.ratio else f"±{number_text(high)}"

    def _how_many(self) -> str:
        """Of several groups, how many differ from everybody, before what is said of one of them."""
        if self.word != DIFFER or len(self.rows) == 1 or self.row["versus"] != EVERYBODY:
            return ""
        verb = _differ(self.differ)
        return f"{len(self.differ)} of {len(self.rows)} groups {verb} from everybody; "

    def _open(self, first: bool) -> str:
        """What the difference may be, and how many events would decide whatever it is."""
        if self.all_alike:
            return ", but not every group is judged"
        low, high = self.margins
        text = ""
        if first:
            beyond = f"none and with more than {number_text(high)}"
            if self.measure.ratio:
                beyond = f"1 and with values beyond {self._margin()}"
            elif self.measure.versus:
                beyond = f"none and with a shortfall of more than {number_text(-low)}"
            text = f", compatible with {beyond}"
        sizes = self._sizes(self.row.to_frame().T.infer_objects()).iloc[0]
        half = (sizes["high"] - sizes["low"]) / 2
        if self.measure.versus:
            half = sizes["difference"] - sizes["low"]
        margin = np.log(high) if self.measure.ratio else -low
        times = (2 * half / margin) ** 2  # until the interval is as long as the margin
        if 1 < times < MOST_TIMES:
            whole = self.measure.whole_follow_up
            events = self.values.loc[EVERYBODY, "events" if whole else "events_by_horizon"]
            instead = f" instead of {events:,.0f}" if first or not whole else ""
            by_then = "" if whole else " by the horizon"
            text += f"; about {_rounded(events * times)} events{by_then}{instead} would decide"
        return text


def _case_mix(c_index: _Compared) -> str:
    """How much of a difference the model itself expects, where some groups are more alike."""
    one, other = c_index.values["c_expected"].loc[[c_index.row["group"], c_index.row["versus"]]]
    size = number_text(one - other, c_index.measure.digits)
    return f", of which {size} is expected from how alike the model finds their patients"


def _short(group: str, attribute: str) -> str:
    """A group without its attribute, with which the sentence begins, if this says enough."""
    value = group.removeprefix(f"{attribute} = ")
    return group if value.lower() in SAYS_LITTLE or NUMBER.match(value) else value


def _events(number: float) -> str:
    return f"{number:,.0f} event{'' if number == 1 else 's'}"


def _rounded(number: float) -> str:
    """A number of events with two digits, rounded up."""
    unit = 10 ** max(0, math.floor(math.log10(max(number, 1))) - 1)
    return f"{math.ceil(number / unit - 1e-9) * unit:,}"


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
    what = f"A ridge Cox model of {listed(features, MOST_NAMED)}"
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
        text = f"{text} {listed(sizes, MOST_NAMED)}."
    elif not text:
        row = rows.loc[rows["high"].idxmax()]
        text = (
            f"{what}, fitted to one group alone, is not seen to rank any group better: its gain is "
            f"{_size(row, 3)} in {row['group']}, and no group leaves more room for one."
        )
    single = table["attribute"].ne("") & ~table["attribute"].str.contains(" × ")
    untried = table["group"][single & table["events"].notna() & ~table["group"].isin(rows["group"])]
    return [
        f"{text} It was not tried in {listed(list(untried), MOST_NAMED)}." if len(untried) else text
    ]


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
    if rows.empty:
        return []
    row = rows.loc[rows["difference"].abs().idxmax()]
    return [
        f"The calibration slopes differ: {_two_values(row, table)}. "
        "Where a slope is below 1, differences between patients are smaller than predicted."
    ]


def _whole(everybody: pd.Series, calibration: Measure, slopes_alike: bool) -> list[str]:
    """Miscalibration of all patients together; a slope only if it is the same for all groups."""
    observed = "{} events are observed for each expected {}: risks are too"
    if calibration.method:
        observed = "the observed risk is {} times the predicted one {}: risks are too"
    parts = []
    low, high = everybody["c_index_low"], everybody["c_index_high"]
    if low <= 0.5 <= high:
        index = interval_text(everybody["c_index"], low, high, 3)
        parts.append(f"the c-index is {index}: ranking is not seen to be better than chance")
    for name, words, above, below in (
        ("calibration", observed, "low", "high"),
        ("slope", "the slope is {} {}: predictions are", "not extreme enough", "too extreme"),
    ):
        low, high = everybody[f"{name}_low"], everybody[f"{name}_high"]
        if (low > 1 or high < 1) and (name != "slope" or slopes_alike):
            said = words.format(*interval_text(everybody[name], low, high, 2, 1).split(" ", 1))
            parts.append(f"{said} {above if low > 1 else below}")
    return [f"On the whole, {', and '.join(parts)}."] if parts else []


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
    verb = _differ(named)
    return (
        f" In {title}, {len(loud)} of {len(rows)} groups {verb}: {listed(named, MOST_NAMED, ', ')}."
    )


def _in_a_sentence(title: str) -> str:
    named = title.isupper() or title.startswith("Brier")
    return title if named else title[:1].lower() + title[1:]


def decision_sentences(
    table: pd.DataFrame, differences: pd.DataFrame, threshold: float, horizon: float
) -> list[str]:
    """What the threshold does to everybody, and for each attribute where groups differ."""
    everybody = table[table["group"] == EVERYBODY].iloc[0]
    values = []
    for name in DECISIONS:
        title, digits = _in_a_sentence(MEASURES[name].title), MEASURES[name].digits
        values.append(f"{title} {number_text(everybody[name], digits).replace('nan', 'unknown')}")
    lines = [
        f"At a threshold of {threshold:.3g} for the risk up to time {horizon:.4g}: "
        f"{', '.join(values)}."
    ]
    rows = differences[differences["measure"].isin(DECISIONS)]
    for attribute in rows["attribute"].unique():
        mine = rows[rows["attribute"] == attribute]
        differ, open_, evidence = [], [], ""
        for name in (name for name in DECISIONS if (mine["measure"] == name).any()):
            title = MEASURES[name].title
            loud = mine[(mine["measure"] == name) & (mine["says"] == DIFFER)]
            if loud.empty:
                open_.append(_in_a_sentence(title))
                continue
            differ.append(_in_a_sentence(title))
            row = loud.loc[loud["difference"].abs().idxmax()]
            evidence += f" {title}: {_two_values(row, table, attribute)}."
        told = [f"{listed(differ, MOST_NAMED)} {_differ(differ)}"] if differ else []
        if open_:
            told.append(f"whether {listed(open_, MOST_NAMED)} {_differ(open_)} cannot be told")
        lines.append(f"At this threshold, by {attribute}, {'; '.join(told)}.{evidence}")
    if (rows["says"] == DIFFER).any():
        lines[-1] += " Where risks differ between groups, so do these shares, even if all risks are"
        lines[-1] += " right."
    return lines


def _differ(named: Sequence[str]) -> str:
    return "differs" if len(named) == 1 else "differ"


def _two_values(row: pd.Series, table: pd.DataFrame, within: str = "") -> str:
    """The values of two groups, and their difference, in a sentence about an attribute."""
    values = []
    for group in (row["group"], row["versus"]):
        value = table.loc[table["group"] == group, row["measure"]].iloc[0]
        values.append(f"{number_text(value)} for {_short(group, within)}")
    return f"{' and '.join(values)}, a difference of {_size(row, 2)}"
