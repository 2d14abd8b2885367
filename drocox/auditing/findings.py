"""The findings of an audit in words: differences in ranking and calibration, by attribute."""

import math
from collections.abc import Sequence

import pandas as pd

from drocox.auditing.groupings import EVERYBODY
from drocox.heldout import FEWEST_EVENTS

MOST_NAMED = 6  # groups in a sentence about models
MOST_DIGITS = 4  # after the point


def sentences(
    table: pd.DataFrame,
    comparisons: pd.DataFrame,
    slices: pd.DataFrame,
    notes: tuple[str, ...],
    of_risks: bool = False,
) -> list[str]:
    """A line for each note, attribute and group found, and one for everybody."""
    lines = list(notes)
    for name in table["attribute"].unique():
        rows = comparisons[comparisons["attribute"] == name]
        compared = name in comparisons["attribute"].values or " × " not in name
        if name and compared:
            of_groups = table[table["attribute"] == name].set_index("group")
            lines.append(_attribute(name, rows, of_groups, table.iloc[0], of_risks))
    whole = _whole(table.iloc[0], of_risks)
    if whole:
        lines.append(whole)
    for row in slices[slices["high"] < 0].itertuples():
        lines.append(
            f"Found by search: {row.group}, ranked worse than {row.versus} by "
            f"{-row.difference:.1f} points ({-row.high:.1f} to {-row.low:.1f})."
        )
    return lines


def number_text(value: float, digits: int = 2) -> str:
    """A number with some digits after the point; large ones by their power of ten."""
    if abs(value) >= 1000:
        return f"{value:.1e}"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if set(text) <= set("-0.") else text


def digits_for(low: float, high: float, least: int) -> int:
    """Digits with which the ends of an interval differ, and differ from 0 if it is outside."""
    smallest = high - low
    if low * high > 0:  # 0 is outside, and looks so
        smallest = min(smallest, 20 * min(abs(low), abs(high)))
    if not 0 < smallest < 1:
        return least
    return max(least, min(MOST_DIGITS, math.ceil(1 - math.log10(smallest))))


def _attribute(
    name: str, rows: pd.DataFrame, of_groups: pd.DataFrame, everybody: pd.Series, of_risks: bool
) -> str:
    """Differences between the groups of one attribute, with numbers."""
    parts = {}
    for word, measure in (("ranking", "c_index"), ("calibration", "calibration")):
        mine = rows[rows["measure"] == measure]
        if len(mine):
            parts[word] = mine
    if not parts and of_groups["patients"].isna().any():
        return f"By {name}, nothing to compare: too few groups are shown."
    if not parts:
        return f"By {name}, nothing to compare: too few groups with {FEWEST_EVENTS} events."
    off = [word for word, mine in parts.items() if mine["beyond_noise"].any()]
    if len(off) == 2:
        what = "ranking and calibration differ beyond noise"
    elif off:
        what = f"{off[0]} differs beyond noise"
    elif len(parts) == 2:
        what = "neither ranking nor calibration differs beyond noise"
    else:
        what = f"{next(iter(parts))} does not differ beyond noise"
    text = f"By {name}, {what}."
    if "ranking" in parts:
        text += " " + _ranking(parts["ranking"], of_groups, everybody)
    if "calibration" in parts:
        text += " " + _calibration(parts["calibration"], of_groups, everybody, of_risks)
    return text


def _most_striking(rows: pd.DataFrame) -> pd.Series:
    """The largest difference, of those beyond noise if there are any."""
    candidates = rows[rows["beyond_noise"] == rows["beyond_noise"].any()]
    row = candidates.loc[candidates["difference"].abs().idxmax()].copy()
    if row["difference"] < 0:  # the better group first
        row["group"], row["versus"] = row["versus"], row["group"]
        row["low"], row["high"] = -row["high"], -row["low"]
        row["difference"] = -row["difference"]
    return row


def _value(name: str, measure: str, of_groups: pd.DataFrame, everybody: pd.Series) -> float:
    return everybody[measure] if name == EVERYBODY else of_groups.loc[name, measure]


def _ends(row: pd.Series, least: int) -> tuple[str, str]:
    """The ends of an interval; one that is not 0 does not look so where 0 is outside."""
    ends = row["low"], row["high"]
    digits = least
    if row["beyond_noise"]:
        digits = digits_for(*ends, least)
    return number_text(ends[0], digits), number_text(ends[1], digits)


def _how_many(rows: pd.DataFrame) -> str:
    """Of many groups, how many differ from everybody, before what is said of one of them."""
    if not (rows["versus"] == EVERYBODY).all():
        return ""
    loud = rows["beyond_noise"].sum()
    if not loud:
        return f"none of {len(rows)} groups differs from everybody; "
    return f"{loud} of {len(rows)} groups {'differs' if loud == 1 else 'differ'} from everybody; "


def _ranking(rows: pd.DataFrame, of_groups: pd.DataFrame, everybody: pd.Series) -> str:
    row = _most_striking(rows)
    better = f"{_value(row['group'], 'c_index', of_groups, everybody):.2f}"
    worse = f"{_value(row['versus'], 'c_index', of_groups, everybody):.2f}"
    low, high = _ends(row, 1)
    size = f"{row['difference']:.1f} points (95 % interval {low} to {high})"
    text = _how_many(rows)
    if not row["beyond_noise"]:
        text += f"the c-index is {better} for {row['group']} and {worse} for {row['versus']}"
        return f"{_capital(text)}, a difference of {size}."
    text += "most of all " if text else ""
    text += f"{row['group']} is ranked better than {row['versus']}, c-index {better} against "
    return f"{_capital(text) if text.startswith('most') else text}{worse}: {size}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _calibration(
    rows: pd.DataFrame, of_groups: pd.DataFrame, everybody: pd.Series, of_risks: bool
) -> str:
    row = _most_striking(rows)
    what = "Observed / predicted risk" if of_risks else "Observed / expected events"
    more = _value(row["group"], "calibration", of_groups, everybody)
    fewer = _value(row["versus"], "calibration", of_groups, everybody)
    low, high = _ends(row, 2)
    return (
        f"{what}: {_how_many(rows)}{number_text(more)} for {row['group']}, "
        f"{number_text(fewer)} for {row['versus']} (difference "
        f"{number_text(row['difference'])}, {low} to {high})."
    )


def _digits_beside_1(low: float, high: float) -> int:
    """Digits, two or more, with which neither end of an interval that excludes 1 reads as 1."""
    digits = 2
    while 1 in (float(f"{low:.{digits}f}"), float(f"{high:.{digits}f}")):
        digits += 1
    return digits


def _whole(everybody: pd.Series, of_risks: bool) -> str:
    """Miscalibration of all patients together, if there is any."""
    parts = []
    low, high = everybody["calibration_low"], everybody["calibration_high"]
    if low > 1 or high < 1:
        words = "risks are too low" if low > 1 else "risks are too high"
        digits = _digits_beside_1(low, high)
        ratio = number_text(everybody["calibration"], digits)
        what = f"{ratio} events are observed for each expected"
        if of_risks:
            what = f"the observed risk is {ratio} times the predicted one"
        ends = f"{number_text(low, digits)} to {number_text(high, digits)}"
        parts.append(f"{what} ({ends}): {words}")
    low, high = everybody["slope_low"], everybody["slope_high"]
    if low > 1 or high < 1:
        words = "not extreme enough" if low > 1 else "too extreme"
        digits = _digits_beside_1(low, high)
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
        for measure, title, digits in (("c_index", "c-index", 2), ("brier", "Brier score", 3)):
            of_all = mine[(mine["measure"] == measure) & (mine["group"] == EVERYBODY)]
            if len(of_all):
                row = of_all.iloc[0]
                points = measure == "c_index"
                apart = digits_for(row["low"], row["high"], 1 if points else digits)
                size, low, high = (
                    number_text(row[k], apart) for k in ("difference", "low", "high")
                )
                values = [number_text(everybody[measure][name], digits) for name in (model, base)]
                unit = " points" if points else ""
                noise = "beyond noise" if row["beyond_noise"] else "not beyond noise"
                parts.append(
                    f"{title} {values[0]} against {values[1]}, a difference of {size}{unit} "
                    f"(95 % interval {low} to {high}), {noise}"
                )
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
    loud = rows[rows["beyond_noise"]]
    if loud.empty:
        return f"For none of {len(rows)} groups does ranking differ beyond noise."
    named = [f"{row.group} ({row.difference:+.1f})" for row in loud.itertuples()]
    if len(named) > MOST_NAMED:
        named = [*named[:MOST_NAMED], f"{len(named) - MOST_NAMED} more"]
    return (
        f"Ranking differs beyond noise for {len(loud)} of {len(rows)} groups: {', '.join(named)}."
    )
