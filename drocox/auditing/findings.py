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
from drocox.auditing.measures import DECISIONS, MEASURES, Measure
from drocox.heldout.intervals import ALIKE, CANNOT_TELL, DIFFER
from drocox.terminal import listed

MOST_TIMES = 100  # as many events that are still worth a number
MOST_NAMED = 6  # groups in a sentence
MOST_TOLD = 3  # groups with their c-indices and expected ones
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
    decided: tuple[float, float] | None = None,
) -> list[str]:
    """The findings: notes, attributes with a line a measure, everybody, models, groups found.

    ``features`` are the columns that other models have used; without them nothing is said of these
    where it is None, and else that it was not asked. ``decided`` is the threshold of risk from
    which patients are flagged, and the horizon.
    """
    lines = list(notes)
    for name in table["attribute"].unique():
        rows = comparisons[comparisons["attribute"] == name]
        if name and (len(rows) or " × " not in name):
            lines += _attribute(name, rows, table, measures)
    if decided is not None:
        lines.append(_decided(table.iloc[0], *decided))
    slopes = comparisons["says"][comparisons["measure"] == "slope"]
    lines += _whole(table.iloc[0], measures["calibration"], not (slopes == DIFFER).any())
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
            "Found by search: no group of these columns that is ranked worse than others with like "
            "scores, among patients kept out of the search; a small one would be missed."
        )
    return lines


def _attribute(
    name: str, rows: pd.DataFrame, table: pd.DataFrame, measures: Mapping[str, Measure]
) -> list[str]:
    """The attribute, a line for each measure, and the groups that are not judged or shown."""
    values = table[table["attribute"].isin(["", name])].set_index("group")
    hidden = values["events"].isna()
    few = ~hidden & values[["c_index", "calibration"]].isna().all(axis=1)
    few[EVERYBODY] = False
    lines = []
    not_by = []
    short = values.index.map(lambda group: _short(group, name))
    for one, measure in measures.items():
        mine = rows[rows["measure"] == one]
        if measure.worded:
            lacks = values[one].isna() & ~few & ~hidden
            if lacks.any() and values[one].notna().any():
                lacking = listed(list(short[lacks]), MOST_NAMED)
                not_by.append(f"- Not judged by {_in_a_sentence(measure.title)}: {lacking}.")
            if len(mine):
                lines.append(_compared(measure, mine, values, not (few | hidden | lacks).any()))
        elif len(mine) and (
            one in DECISIONS
            or (one == "slope" and ((mine["says"] == DIFFER).any() or len(_not_1(values, one))))
        ):
            lines.append(_compared(measure, mine, values))
    not_judged = [
        f"{short[at]} ({_events(values['events'].iloc[at])})" for at in np.flatnonzero(few)
    ]
    for groups, why in ((not_judged, "judged"), (list(short[hidden]), "shown")):
        if groups:
            lines.append(f"- Not {why}: {listed(groups, MOST_NAMED)}.")
    return [
        f"By {name}, with 95 % intervals:" if len(rows) else f"By {name}, nothing can be compared.",
        *lines,
        *not_by,
    ]


def _compared(
    measure: Measure, rows: pd.DataFrame, values: pd.DataFrame, whole: bool = False
) -> str:
    """The word for a measure's differences between groups, and the difference that decides.

    ``values`` is the table of these groups and of everybody; ``whole`` says that all are judged.
    """
    word, row, widest = _chosen(measure, rows, whole)
    margin = measure.margin or np.inf
    tell = _against_expected if measure.versus else _against_others
    verdict, text = tell(measure, word, row, rows, values)
    if word == ALIKE:
        text += _within(measure, margin, row)
    elif word == CANNOT_TELL and measure.worded:
        text += (
            ", but not every group is judged"
            if (rows["says"] == ALIKE).all()
            else _open(measure, margin, row["low"], row["high"])
        )
        text += _would_decide(measure, margin, widest, values)
    if word == DIFFER and row["measure"] == "c_index":
        text += _case_mix(values["c_expected"], row)
    if row["measure"] in ("calibration", "slope"):
        off = _not_1(values, row["measure"])
        alone = [f"{size} for {_short(group, row['attribute'])}" for group, size in off.items()]
        text += ". By intervals that hold alone, 1 is excluded: " if alone else ""
        text += listed(alone, MOST_NAMED)
    return f"- {measure.said or measure.title}: {verdict}. {text}."


def _chosen(measure: Measure, rows: pd.DataFrame, whole: bool) -> tuple[str, pd.Series, float]:
    """The word, the difference that decides, and half the widest interval of those with the word.

    Of groups that differ or are alike the largest difference decides, else the widest interval;
    beside what is expected it is the one that may be lowest. Ratios are taken as logarithms.
    """
    says = rows["says"]
    word = CANNOT_TELL
    if (says == DIFFER).any():
        word = DIFFER
    elif whole and (says == ALIKE).all():
        word = ALIKE
    sizes = rows[["difference", "low", "high"]]
    sizes = np.log(sizes) if measure.ratio else sizes  # without a difference, 0
    half = (sizes["high"] - sizes["low"]) / 2
    order = half if word == CANNOT_TELL else sizes["difference"].abs()
    if measure.versus:
        half = sizes["difference"] - sizes["low"]
        order = -sizes["low"]
    row = rows.loc[order[(says == word) | (says != word).all()].idxmax()]
    return word, row, half[says == word].max()


def _against_expected(
    measure: Measure, word: str, row: pd.Series, rows: pd.DataFrame, values: pd.DataFrame
) -> tuple[str, str]:
    """The verdict on c-indices beside those that are expected, and all of them if they are few."""
    verdict = word
    if word == DIFFER:
        worse = rows["group"][rows["says"] == DIFFER]
        names = [_short(group, row["attribute"]) for group in worse]
        verdict = f"worse for {listed(names, MOST_NAMED)}"
    elif word == ALIKE:
        verdict = "as expected"
    told = rows if len(rows) <= MOST_TOLD else row.to_frame().T
    each = []
    for one in told.sort_values("difference").to_dict("records"):
        c_index, expected = values.loc[one["group"], ["c_index", "c_expected"]]
        each.append(
            f"{number_text(c_index, measure.digits)} for {_short(one['group'], one['attribute'])}, "
            f"where {number_text(expected, measure.digits)} is expected, a difference of "
            f"{_size(one, measure.digits)}"
        )
    return verdict, f"The c-index is {'; '.join(each)}"


def _against_others(
    measure: Measure, word: str, row: pd.Series, rows: pd.DataFrame, values: pd.DataFrame
) -> tuple[str, str]:
    """The verdict on differences between groups, and the values of the two that decide it."""
    differ = rows["group"][rows["says"] == DIFFER]
    verdict = f"{word}s" if len(differ) else word
    if len(differ) and measure.needs == "threshold":
        verdict += ", which need not be a fault"
    both = []
    for group in row[["group", "versus"]]:
        value = number_text(values.loc[group, row["measure"]], measure.digits)
        both.append(f"{value} for {_short(group, row['attribute'])}")
    size = _size(row, measure.digits, 1 if measure.ratio else 0)
    text = f"It is {' and '.join(both)}, a {'ratio' if measure.ratio else 'difference'} of {size}"
    if len(differ) and len(rows) > 1 and row["versus"] == EVERYBODY:
        count = f"{len(differ)} of {len(rows)} groups {_differ(differ)} from everybody"
        text = f"{count}. {text}"
    return verdict, text


def _within(measure: Measure, margin: float, row: pd.Series) -> str:
    """The margin in which all differences are."""
    if measure.versus:
        return f"; no group is worse by more than {number_text(margin)}"
    none = 1 if measure.ratio else 0
    small = row["low"] > none or row["high"] < none
    inside = f"{1 / margin:.2f} to {margin:.2f}" if measure.ratio else f"±{number_text(margin)}"
    return f"{f', small but not {none},' if small else ','} within {inside}"


def _open(measure: Measure, margin: float, low: float, high: float) -> str:
    """What the difference may be, by an interval with these ends."""
    if measure.versus:
        return f": as expected is possible, and so is worse by more than {number_text(margin)}"
    none, least, most = (1, 1 / margin, margin) if measure.ratio else (0, -margin, margin)
    below, above = f"below {number_text(least)}", f"above {number_text(most)}"
    sides = [side for side, beyond in ((below, low <= least), (above, high >= most)) if beyond]
    return f": {none} is possible, and so are values {' or '.join(sides)}"


def _would_decide(measure: Measure, margin: float, half: float, values: pd.DataFrame) -> str:
    """How many events would decide, whatever the differences are.

    Then the widest interval, of this ``half`` width, is as long as the margin.
    """
    times = (2 * half / (np.log(margin) if measure.ratio else margin)) ** 2
    if not 1 < times < MOST_TIMES:
        return ""
    name, by_then = "events", ""
    if not measure.whole_follow_up:
        name, by_then = "events_by_horizon", " up to the horizon"
    events = values.loc[EVERYBODY, name]
    needed = f"{_rounded(events * times)} instead of {events:,.0f}"
    digits = 0 if times > 10 else 1
    return f". About {times:.{digits}f} times as many events{by_then}, {needed}, would decide"


def _case_mix(expected: pd.Series, row: pd.Series) -> str:
    """How much of a difference the model itself expects, where some groups are more alike."""
    size = expected[row["group"]] - expected[row["versus"]]
    if math.isnan(size):
        return ""
    more = "more" if size < 0 else "less"
    return (
        f". A difference of {number_text(size, 3)} is expected, since the hazards predicted for "
        f"{_short(row['group'], row['attribute'])} are relatively {more} alike"
    )


def _not_1(values: pd.DataFrame, name: str) -> dict[str, str]:
    """The groups in which a measure itself is not 1, by intervals that hold alone."""
    groups = values.drop(EVERYBODY)
    off = groups[(groups[f"{name}_low"] > 1) | (groups[f"{name}_high"] < 1)]
    return {str(group): _with_interval(row, name, 2, 1) for group, row in off.iterrows()}


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


def _with_interval(row: pd.Series, name: str, least: int, none: float = 0) -> str:
    """A measure of a group with its interval, which holds alone."""
    return interval_text(row[name], row[f"{name}_low"], row[f"{name}_high"], least, none)


def _size(row: pd.Series | dict, least: int, none: float = 0) -> str:
    """A difference with its interval."""
    return interval_text(row["difference"], row["low"], row["high"], least, none)


def paragraphs(lines: Sequence[str]) -> str:
    """The lines as one text, which says once in each paragraph what the numbers in brackets are."""
    return "\n".join(
        line if line.startswith("- ") else INTERVAL.sub(r"(95 % interval \1", line, count=1)
        for line in lines
    )


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
            f"{what}, fitted to one group alone, is not seen to rank any group better: in "
            f"{row['group']}, where it may gain most, the c-index changes by {_size(row, 3)}. "
            "Other models were not tried."
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


def _decided(everybody: pd.Series, threshold: float, horizon: float) -> str:
    """What the threshold does to everybody."""
    values = []
    for name in (name for name in DECISIONS if MEASURES[name].compared):
        size = _with_interval(everybody, name, MEASURES[name].digits)
        values.append(
            f"{_in_a_sentence(MEASURES[name].title)} {size}".replace("nan (nan to nan)", "unknown")
        )
    return (
        f"At a threshold of {threshold:.3g} for the risk up to time {horizon:.4g}, of everybody: "
        f"{', '.join(values)}."
    )


def _differ(named: Sequence[str]) -> str:
    return "differs" if len(named) == 1 else "differ"
