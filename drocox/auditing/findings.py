"""The findings of an audit in words, a verdict by attribute: promises of ranking, and calibration.

The first question is whether each group is ranked as its predictions promise, the second whether
another model would rank it better. A low c-index is no fault by itself: a group's patients may be
alike. Differences of the c-index stand beside the promised values.
"""

import math
from collections.abc import Sequence

import pandas as pd

from drocox.auditing.groupings import EVERYBODY
from drocox.auditing.measures import DECISIONS, MEASURES
from drocox.heldout import FEWEST_EVENTS

MOST_NAMED = 6  # groups in a sentence about models
MOST_IN_TURN = 2  # groups of which a sentence each is said
UNTOLD = "Whether another model would rank a group better cannot be told without features."
NO_HEADROOM = "No group is seen to be ranked better by a model of its own, beyond noise."
NO_FAULT = " A low c-index is no fault where little is promised."
NO_MERIT = (
    " Above its promise is no merit: the audit's one scale for everybody promises too little there."
)
MOST_DIGITS = 4  # after the point


def sentences(
    table: pd.DataFrame,
    comparisons: pd.DataFrame,
    slices: pd.DataFrame,
    notes: tuple[str, ...],
    of_risks: bool = False,
    features: bool = True,
) -> list[str]:
    """A line for each note, attribute and group found, and one for everybody."""
    lines = list(notes)
    for name in table["attribute"].unique():
        rows = comparisons[comparisons["attribute"] == name]
        compared = name in comparisons["attribute"].values or " × " not in name
        if name and compared:
            of_groups = table[table["attribute"] == name].set_index("group")
            lines.append(_attribute(name, rows, of_groups, table.iloc[0], of_risks))
    slopes = comparisons[comparisons["measure"] == "slope"]
    differ = bool(((slopes["low"] > 0) | (slopes["high"] < 0)).any())
    whole = _whole(table.iloc[0], of_risks, differ)
    if whole:
        lines.append(whole)
    own = comparisons[comparisons["measure"] == "headroom"]
    if not features:
        lines.append(UNTOLD)
    elif len(own) and not (own["low"] > 0).any():
        lines.append(NO_HEADROOM)
    worse = slices[slices["high"] < 0]
    for row in worse.itertuples():
        lines.append(
            f"Found by search: {row.group}, ranked worse than {row.versus} by "
            f"{-row.difference:.1f} points ({-row.high:.1f} to {-row.low:.1f})."
        )
    if len(slices) and worse.empty:
        lines.append("Found by search: no group that is ranked worse, beyond noise.")
    return lines


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


def _attribute(
    name: str, rows: pd.DataFrame, of_groups: pd.DataFrame, everybody: pd.Series, of_risks: bool
) -> str:
    """What is found in the groups of one attribute: a verdict, and then its numbers."""
    by_measure = dict(iter(rows.groupby("measure")))
    promise = by_measure.get("c_minus_promised", by_measure.get("auc_minus_promised"))
    ranking = by_measure.get("c_index")
    loud = {measure for measure, one in by_measure.items() if one["beyond_noise"].any()}
    broken = promise is not None and bool(promise["beyond_noise"].any())
    own = by_measure.get("headroom", rows[:0])
    better = own[own["low"] > 0]
    ratios = f"the ratios of observed to {'predicted risk' if of_risks else 'expected events'}"
    compared = {"calibration": ratios, "slope": "the calibration slopes"}
    compared = {measure: words for measure, words in compared.items() if measure in by_measure}

    verdict = ""
    if broken or len(better) or loud & set(compared):
        verdict = "faults are seen: "
    elif promise is not None:
        verdict = "no fault is seen: "
    found = []
    if promise is not None:
        found.append(_kept(promise))
    elif ranking is not None:
        differs = "differs" if "c_index" in loud else "does not differ"
        found.append(f"the c-index {differs} beyond noise")
    found += _headroom(better)
    differ = [words for measure, words in compared.items() if measure in loud]
    alike = [words for measure, words in compared.items() if measure not in loud]
    if differ:
        found.append(f"{' and '.join(differ)} differ beyond noise")
    if len(alike) == 2:
        found.append("calibration does not differ beyond noise")
    elif alike:
        found.append(f"{alike[0]} do not differ beyond noise")
    if ranking is None and "calibration" not in by_measure:
        few = f"too few groups with {FEWEST_EVENTS} events"
        if of_groups["patients"].isna().any():
            few = "too few groups are shown"
        found.insert(0, f"nothing to compare: {few}")
        verdict = ""
    text = f"By {name}, {verdict}{'; '.join(found)}."

    if promise is not None:
        text += _apart_from_promise(promise, of_groups)
    if ranking is not None and not broken:
        text += " " + _ranking(ranking, of_groups, everybody, "c_minus_promised" in by_measure)
    if "calibration" in loud:
        text += " " + _calibration(by_measure["calibration"], of_groups, everybody, of_risks)
    if "slope" in loud:
        text += " " + _slopes(by_measure["slope"], of_groups, everybody)
    return text


def _kept(rows: pd.DataFrame) -> str:
    """Which groups are ranked below their promise, or better, or that all are as promised."""
    below = rows.loc[rows["high"] < 0, "group"]
    above = rows.loc[rows["low"] > 0, "group"]
    parts = []
    if len(below):
        parts.append(f"{_groups(below, len(rows))} ranked below {_its(below)} promise")
    if len(above):
        parts.append(f"{_groups(above, len(rows))} ranked above {_its(above)} promise")
    if not parts:
        who = rows["group"].iloc[0] if len(rows) == 1 else "every group"
        return f"{who} is ranked as promised, within noise"
    return " and ".join(parts)


def _groups(names: pd.Series, of: int) -> str:
    """Some of the groups, as the subject of a sentence."""
    if len(names) > MOST_IN_TURN:
        return f"{len(names)} of {of} groups are"
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _its(names: pd.Series) -> str:
    return "its" if len(names) == 1 else "their"


def _apart_from_promise(rows: pd.DataFrame, of_groups: pd.DataFrame) -> str:
    """The groups that are not ranked as promised, those below their promise first."""
    text = ""
    loud = rows[rows["beyond_noise"]].sort_values("difference")
    for _, row in loud.iloc[:MOST_IN_TURN].iterrows():
        measure = row["measure"].removesuffix("_minus_promised")
        of_group = of_groups.loc[row["group"]]
        title, column = ("AUC", "auc") if measure == "auc" else ("c-index", "c_index")
        low, high = _ends(row, 1)
        text += (
            f" For {row['group']} the {title} is {of_group[column]:.3f} where "
            f"{of_group[f'{measure}_promised']:.3f} is promised, a difference of "
            f"{number_text(row['difference'], 1)} points (95 % interval {low} to {high})."
        )
    return text + (NO_MERIT if (rows["low"] > 0).any() else "")


def _headroom(rows: pd.DataFrame) -> list[str]:
    """Groups that a model of their own ranks better."""
    found = []
    for _, row in rows.iterrows():
        low, high = _ends(row, 1)
        size = f"{number_text(row['difference'], 1)} points ({low} to {high})"
        found.append(f"a model of its own ranks {row['group']} better, by {size}")
    return found


def _most_striking(rows: pd.DataFrame) -> pd.Series:
    """The largest difference, of those beyond noise if there are any."""
    candidates = rows[rows["beyond_noise"] == rows["beyond_noise"].any()]
    return candidates.loc[candidates["difference"].abs().idxmax()]


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


def _ranking(
    rows: pd.DataFrame, of_groups: pd.DataFrame, everybody: pd.Series, promised: bool
) -> str:
    """The most striking difference of the c-index, beside what is promised if that is known."""
    row = _most_striking(rows)
    values = []
    for name in (row["group"], row["versus"]):
        value = f"{_value(name, 'c_index', of_groups, everybody):.3f} for {name}"
        if promised:
            value += f" (promised {_value(name, 'c_promised', of_groups, everybody):.3f})"
        values.append(value)
    low, high = _ends(row, 1)
    size = f"{number_text(row['difference'], 1)} points (95 % interval {low} to {high})"
    noise = "" if row["beyond_noise"] else ", not beyond noise"
    text = f"{_how_many(rows)}the c-index is {' and '.join(values)}, a difference of {size}{noise}."
    if promised and row["beyond_noise"]:
        first, second = (
            _value(row[one], "c_promised", of_groups, everybody) for one in ("group", "versus")
        )
        if (first - second) * row["difference"] > 0:
            text += NO_FAULT
    return _capital(text)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _calibration(
    rows: pd.DataFrame, of_groups: pd.DataFrame, everybody: pd.Series, of_risks: bool
) -> str:
    row = _most_striking(rows)
    what = "Observed / predicted risk" if of_risks else "Observed / expected events"
    values = [_value(row[one], "calibration", of_groups, everybody) for one in ("group", "versus")]
    first, second = map(number_text, values)
    low, high = _ends(row, 2)
    return (
        f"{what}: {_how_many(rows)}{first} for {row['group']}, "
        f"{second} for {row['versus']} (difference "
        f"{number_text(row['difference'])}, {low} to {high})."
    )


def _digits_beside_1(low: float, high: float) -> int:
    """Digits, two or more, with which neither end of an interval that excludes 1 reads as 1."""
    digits = 2
    while 1 in (float(f"{low:.{digits}f}"), float(f"{high:.{digits}f}")):
        digits += 1
    return digits


def _slopes(rows: pd.DataFrame, of_groups: pd.DataFrame, everybody: pd.Series) -> str:
    """Two groups whose calibration slopes differ beyond noise."""
    row = _most_striking(rows)
    values = [_value(row[one], "slope", of_groups, everybody) for one in ("group", "versus")]
    first, second = map(number_text, values)
    low, high = _ends(row, 2)
    return (
        f"The calibration slope, 1 where predictions are right, is {first} for {row['group']} and "
        f"{second} for {row['versus']} (difference {number_text(row['difference'])}, {low} to "
        f"{high}): one scale of risks does not fit both."
    )


def _whole(everybody: pd.Series, of_risks: bool, slopes_differ: bool) -> str:
    """Miscalibration of all patients together; a slope only if it is the same for all groups."""
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
    if (low > 1 or high < 1) and not slopes_differ:
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
        for measure, title, digits in (("c_index", "c-index", 3), ("brier", "Brier score", 3)):
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


def decision_sentence(
    table: pd.DataFrame, differences: pd.DataFrame, threshold: float, horizon: float
) -> str:
    """What the threshold does to everybody, and where groups differ beyond noise."""
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
        loud = [_largest_loud(mine[mine["measure"] == name]) for name in DECISIONS]
        loud = [words for words in loud if words]
        text += f" By {attribute}, " + ("; ".join(loud) if loud else "none of these differs")
        text += " beyond noise."
    return text


def _largest_loud(rows: pd.DataFrame) -> str:
    """The largest difference of a measure that is beyond noise, if there is one."""
    if not rows["beyond_noise"].any():
        return ""
    row = _most_striking(rows)
    measure = MEASURES[row["measure"]]
    digits = digits_for(row["low"], row["high"], 1 if measure.unit == 100 else measure.digits)
    size, low, high = (number_text(row[name], digits) for name in ("difference", "low", "high"))
    unit = " points" if measure.unit == 100 else ""
    return (
        f"{measure.title} differs ({row['group']} minus {row['versus']}: {size}{unit}, {low} to "
        f"{high})"
    )
