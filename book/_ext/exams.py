"""The numbers of an exam: questions, answers and marks are filled from a file of a few lines.

``book/teaching/sheets/exam.toml`` is that of the exam on the site. :func:`filled` puts the computed
values in the places ``{=name}`` of ``exam.md``.
"""

import math
import re
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

NAMES = "ABCDEF"
PLACE = re.compile(r"\{=(\w+)\}")


# What a file must have, table by table.
KEYS = {
    "patients": ("month", "died", "feature"),
    "asked": ("dies_instead", "changed"),
    "step": ("patients", "alpha"),
    "ball": ("alpha",),
    "weights": ("alpha",),
}


def read(path: Path) -> dict:
    """The numbers of a file; a ValueError says what does not make an exam."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf8"))
        for says in problems(given):
            raise ValueError(says)
    except ValueError as problem:  # also of tomllib
        raise ValueError(f"{path.name}: {problem}") from None
    return given


def problems(given: dict) -> Iterator[str]:
    """What is wrong with the numbers of an exam, in words; later checks rely on earlier ones."""
    if not isinstance(given.get("title"), str):
        yield 'title is missing: write title = "..." above the first table'
    for table, keys in KEYS.items():
        for key in keys:
            if key not in given.get(table, {}):
                yield f"[{table}] {key} is missing"
    for key in KEYS["patients"]:
        row = given["patients"][key]
        if not isinstance(row, list) or len(row) != 6 or not all(map(is_number, row)):
            yield f"[patients] {key}: six numbers, one for each patient"
    month, died = given["patients"]["month"], given["patients"]["died"]
    if sorted(set(month)) != month or month[0] <= 0:
        yield "[patients] month: six different ones above 0, in their order"
    left = [name for name, dead in zip(NAMES, died, strict=True) if not dead]
    if not set(died) <= {0, 1} or len(left) != 2 or not died[-1]:
        yield "[patients] died: 1 or 0; two of the first five left, and the last one died"
    if given["asked"]["dies_instead"] not in left:
        yield f"[asked] dies_instead: one of {' and '.join(left)}, who left"
    if given["asked"]["changed"] not in set(NAMES[:5]) - set(left):
        yield "[asked] changed: one of the first five who died"
    people = given["step"]["patients"]
    if not isinstance(people, int) or people < 1:
        yield "[step] patients: a whole number above 0"
    for table in ("step", "ball", "weights"):
        alpha = given[table]["alpha"]
        if not is_number(alpha) or not 0 < alpha < 1:
            yield f"[{table}] alpha: a share, above 0 and below 1, and not {alpha}"


def is_number(value: object) -> bool:
    """Whether a value of a file is a number."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def filled(text: str, given: dict) -> str:
    """The Markdown of the exam with the values of its numbers."""
    values = computed(given)
    unknown = set(PLACE.findall(text)) - set(values)
    if unknown:
        raise LookupError(f"the exam has places for {unknown}, which exams.py does not compute")
    return PLACE.sub(lambda found: values[found[1]], text)


def computed(given: dict) -> dict[str, str]:
    """All values by name."""
    patients, asked = given["patients"], given["asked"]
    month, died = patients["month"], patients["died"]
    hazards = 2.0 ** np.array(patients["feature"], float)
    values = {"title": given["title"], "head": table(month, died, patients["feature"], hazards)}
    values |= curve(month, died, asked["dies_instead"])
    values |= losses(month, died, hazards, asked["changed"])
    values |= step(**given["step"])
    alpha = given["ball"]["alpha"]
    square = constant(alpha, "paper")
    values |= {"ball_alpha": f"{alpha:g}", "ball_square": f"{square:.3f}".rstrip("0").rstrip(".")}
    values |= {"ball_share": three(1 / square), "ball_percent": f"{100 / square:.1f}"}
    values["ball_wrong"] = f"{100 * alpha:g} %"
    return values | weights(month, died, hazards, given["weights"]["alpha"])


def table(month: list, died: list, feature: list, hazards: np.ndarray) -> str:
    """The six patients."""
    rows = [
        ["patient", *NAMES],
        ["---"] * 7,
        ["month $Y_i$", *map(str, month)],
        ["died $\\delta_i$", *map(str, died)],
        ["feature $x_i$", *(f"{x:g}".replace("-", "−") for x in feature)],
        ["relative hazard $2^{x_i}$", *map(plainly, hazards)],
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def curve(month: list, died: list, who: str) -> dict[str, str]:
    """Kaplan-Meier steps if one of those who left had died, and as the data are."""
    place = NAMES.index(who)
    instead = [dead or k == place for k, dead in enumerate(died)]
    steps, before = [], []
    for events, found in ((instead, steps), (died, before)):
        alive = Fraction(1)
        for k in range(6):
            if events[k]:
                alive *= 1 - Fraction(1, 6 - k)
                found.append((k, alive))
    lines = [
        f"Month {month[k]}: {6 - k} at risk, {alive} = {three(alive)}."
        if alive
        else f"Month {month[k]}: {6 - k} at risk, 0."
        for k, alive in steps
    ]
    return {
        "who": who,
        "who_month": str(month[place]),
        "km": " ".join(lines),
        "km_months": listed([str(month[k]) for k, _ in steps[:-1]]),
        "km_before": listed([three(alive) for k, alive in before[:-1]]),
        "last_month": str(month[-1]),
    }


def losses(month: list, died: list, hazards: np.ndarray, changed: str) -> dict[str, str]:
    """Losses with one hazard doubled, and with equal ones."""
    place = NAMES.index(changed)
    other = hazards.copy()
    other[place] *= 2
    dying = [k for k in range(5) if died[k]]
    left = [NAMES[k] for k in range(5) if not died[k]]
    doubled, equal, why = [], [], []
    for k in dying:
        total, own, at_risk = other[k:].sum(), other[k], 6 - k
        fraction = rf"$\log \frac{{{plainly(total)}}}{{{plainly(own)}}}$"
        doubled.append(f"{NAMES[k]} {fraction} = {three(math.log(total / own))}")
        equal.append(rf"{NAMES[k]} $\log {at_risk}$ = {three(math.log(at_risk))}")
        mean = f"{plainly(total)}/{at_risk}"
        if math.isclose(own * at_risk, total):
            raise ValueError(f"{NAMES[k]}'s loss is the same in both parts of question 2: change x")
        smaller = own * at_risk > total
        why.append(
            f"{NAMES[k]}'s is {'smaller' if smaller else 'larger'} in (a): its hazard "
            f"{plainly(own)} is {'above' if smaller else 'below'} the mean {mean} of those at risk"
        )
    return {
        "changed": changed,
        "hazard_new": plainly(other[place]),
        "hazard_old": plainly(hazards[place]),
        "dying": listed([NAMES[k] for k in dying]),
        "left": listed(left),
        "losses_changed": ", ".join(doubled),
        "losses_equal": ", ".join(equal),
        "losses_why": "; ".join(why),
    }


def step(patients: int, alpha: float) -> dict[str, str]:
    """What a training step is worth."""
    found = {"step_n": f"{patients:,}", "step_alpha": f"{alpha:g}"}
    for rule in ("sharp", "paper"):
        square = constant(alpha, rule)
        worth = patients / square
        found[f"step_{rule}_square"] = plainly(square)
        found[f"step_{rule}"] = f"{worth:.1f}".removesuffix(".0")
    return found


def constant(alpha: float, rule: str) -> float:
    """The square of the constant of the ball."""
    return 1 / alpha if rule == "sharp" else 2 * (1 / alpha - 1) ** 2 + 1


def weights(month: list, died: list, hazards: np.ndarray, alpha: float) -> dict[str, str]:
    """Worst-case weights of the losses, with all numbers as rounded in the question."""
    found = np.array([died[k] * math.log(hazards[k:].sum() / hazards[k]) for k in range(6)])
    square = 1 / alpha
    active = found
    while len(active) * square > 6:
        level = active.mean() - active.std() / math.sqrt(square * len(active) / 6 - 1)
        if (active > level).all():
            break
        active = active[active > level]
    if len(active) * square <= 6 or level <= 0 or not 2 <= len(active) <= 4:
        raise ValueError(f"weights alpha = {alpha}: choose one at which two to four have weight")
    eta = round(level, 3)
    excess = np.maximum(found.round(3) - eta, 0)
    shares = excess / excess.sum()
    having = [k for k in range(6) if excess[k] > 0]
    return {
        "weights_losses": ", ".join(three(loss) if loss else "0" for loss in found),
        "weights_alpha": f"{alpha:g}",
        "weights_eta": three(eta),
        "weights_excess": ", ".join(f"{three(excess[k])} ({NAMES[k]})" for k in having),
        "weights_total": three(excess.sum()),
        "weights": ", ".join(f"{NAMES[k]} {three(shares[k])}" for k in having),
        "weights_risk": three(shares @ found),
        "weights_square": three(square),
        "weights_check": three(6 * (shares.round(3) ** 2).sum()),
    }


def three(value: float) -> str:
    """A number with three decimals."""
    return f"{float(value):.3f}".replace("-", "−")


def plainly(value: float) -> str:
    """A number as short as it is."""
    return f"{value:g}".replace("-", "−")


def listed(words: list[str]) -> str:
    """Words as in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
