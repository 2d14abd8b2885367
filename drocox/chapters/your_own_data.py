"""The chapter *Your own data*: values of its sentences on ``heart.csv``, and their guards."""

from drocox.bookstyle import guard, say
from drocox.report import Audit
from drocox.tuning import Choice


def tell_audit(found: Audit) -> None:
    """Sections *Scores for patients the model has not seen* and *Is that a lot?*

    Parameters
    ----------
    found : Audit
        The audit of Cox on ``heart.csv``.
    """
    row = found.ci.set_index("attribute").loc["gender"]
    guard(row["group"] == "gender = women", "the signed difference, women less men")
    guard(row["high"] < 0 and row["beyond_noise"], "there is a difference, and it is not noise")
    say("gap", f"{row['difference']:.1f}")
    say("gap-low", f"{row['low']:.1f}")
    say("gap-high", f"{row['high']:.1f}")
    say("floor", f"{row['noise_floor']:.1f}")
    by_group = found.table.set_index("group")
    for name in ("men", "women"):
        group = by_group.loc[f"gender = {name}"]
        say(f"c-{name}", f"{group['c_index']:.2f}")
        say(f"oe-{name}", f"{group['calibration']:.2f}")
        contains_one = group["calibration_low"] < 1 < group["calibration_high"]
        guard(contains_one, "expected numbers of deaths are about right for both")
    c = by_group["c_index"]
    guard(c["gender = men"] > c["gender = women"], "the model is less sure who of the women dies")


def tell_choice(chosen: Choice) -> None:
    """Section *Which α?*

    Parameters
    ----------
    chosen : Choice
        For the attribute gender.
    """
    table = chosen.table
    guard(chosen.alpha == 1, "plain Cox is the choice")
    robust = table.iloc[1:]
    best = robust.loc[robust["ci_percent"].idxmin()]
    guard(best["ci_low"] <= 0 <= best["ci_high"], "the interval of the difference contains 0")
    guard((table["ci_high"] >= 0).all(), "no α is fairer beyond noise")
    eligible = table.loc[table["eligible"], "ci_percent"]
    guard((eligible > 2).all(), "none of the robust models removes the gap")
    say("alpha", f"{best.name:g}")
    say("best-ci", f"{best['ci_percent']:.1f}")
    say("cox-ci", f"{table['ci_percent'].iloc[0]:.1f}")


def guard_search(found: Audit) -> None:
    """Section *Groups nobody named*: only large failures can be seen; none is.

    Parameters
    ----------
    found : Audit
    """
    guard(not found.slices["beyond_noise"].any(), "only large failures can be seen; none is")


def guard_page(status: int, page: str) -> None:
    """Section *All of it in one line*: the command's page.

    Parameters
    ----------
    status : int
        What the command returned.
    page : str
        The page that it wrote.
    """
    guard(status == 0 and "beyond noise" in page, "a plain sentence first")
    guard("http" not in page, "no other file")
