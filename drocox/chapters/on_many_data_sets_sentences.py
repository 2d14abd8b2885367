"""The chapter *On many data sets*: values of its sentences, and guards that they hold.

Drawings and tables are in :mod:`drocox.chapters.on_many_data_sets`.
"""

import hashlib

import numpy as np
import pandas as pd

from drocox.beyond import control_evidence, evidence, learning, survset
from drocox.beyond.many import REGISTERED
from drocox.bookstyle import guard, say
from drocox.chapters.on_many_data_sets import (
    interval_text,
    mean_and_interval,
    registered_file,
    signed,
)

# where the preregistration was committed, before the first run
COMMIT = "296de5dca0d3bbe6e499feb34e373fcfac92f83e"
COMMITTED = "17 November 2026, 00:39 UTC"
SHA256 = {
    "preregistration.md": "bae3c93b5588c1fcc550f25bb45e4cd2d748075f1c706a88bef1978de3d0f35f",
    "preregistration.toml": "76373c1716e1915da338638637dc09727dd8a134325602c97b2d4e151921a9db",
}
DEVIATIONS: tuple[str, ...] = ()


def tell_flow(flow: pd.DataFrame) -> None:
    """Numbers of the flow; the data sets are those that were registered.

    Parameters
    ----------
    flow : DataFrame
        Of :func:`drocox.beyond.survset.flow`.
    """
    included = flow[flow["step"] == "included"]
    beside = flow[flow["step"] == "beside"]
    guard(set(included.index) == set(REGISTERED["included"]), "the data sets that were registered")
    guard(set(beside.index) == set(REGISTERED["beside"]), "FLC and SUPPORT are shown beside")
    for name, facts in (REGISTERED["included"] | REGISTERED["beside"]).items():
        guard(flow.loc[name, "patients"] == facts["patients"], "with the registered patients")
        guard(survset.TABLE[name]["sha256"] == facts["sha256"], "and the registered files")
    say("many-all", len(flow))
    say("many-included", len(included))
    say("many-patients", f"{included['patients'].sum():,}")
    say("many-events", f"{included['events'].sum():,}")
    for attribute in survset.ATTRIBUTES:
        say(f"many-{attribute}", int(included[attribute].sum()))
    say("many-labelled", int((included["sex"] | included["age"]).sum()))
    say("many-smallest", f"{included['patients'].min():,}")
    say("many-largest", f"{included['patients'].max():,}")


def tell_registration() -> None:
    """Commit, time and deviations; the files are those that were committed."""
    for name, digest in SHA256.items():
        of_file = hashlib.sha256(registered_file(name).read_bytes()).hexdigest()
        guard(of_file == digest, "the preregistration is as it was committed")
    say("many-commit", COMMIT[:12])
    say("many-committed", COMMITTED)
    say("many-deviations", " ".join(DEVIATIONS) or "none.")


def _say_row(key: str, row: pd.Series) -> None:
    """Mean, interval and prediction interval of one row."""
    say(f"{key}-mean", signed(row["mean"]))
    say(f"{key}-interval", interval_text(row))
    say(f"{key}-next", interval_text(row, "predicted_low", "predicted_high"))


def tell_answer(runs: pd.DataFrame, table: pd.DataFrame) -> None:
    """The primary outcomes, their claims, and what stands beside them.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.
    table : DataFrame
        Of :func:`drocox.beyond.evidence.primary_table`.
    """
    claims = evidence.claims(runs)
    keys = {"c": "c", "closing": "closing", "worst": "worst", "guard": "guard"}
    for name, key in (keys | {"worst of DRO-COX": "worst-dro"}).items():
        _say_row(f"many-{key}", table.loc[name])
    say("many-p", f"{table.loc['c', 'p_holm']:.3f}")
    say("many-bound", f"{claims.bound:.2f}")
    c = table.loc["c"]
    guard(claims.c_differs and 0 < c["mean"], "the c-index is higher, beyond noise")
    guard(c["high"] < 0.2 * c["margin"], "by less than a fifth of the margin")
    guard(not (claims.closes or claims.moves), "the gap does not close")
    guard(not claims.worst_gains, "the worst group gains nothing")
    guard(claims.harmless, "it is harmless")
    for name in evidence.PRIMARIES:
        guard(bool(table.loc[name, "equivalent"]), "all three lie within their margins")
    for name in ("closing", "worst"):
        row = table.loc[name]
        within = max(-row["low"], row["high"]) < 0.1 * row["margin"]
        guard(within, "the intervals of gap and worst group lie within a tenth of a point")
    guard(table.loc["guard", "low"] > 0, "the gaps are there")
    say("many-shared-gap", f"{table.loc['guard', 'mean'] / 2:.1f}")
    share = evidence.share_of_gap(runs)
    say("many-share", f"{100 * share.value:.0f}")
    say("many-share-interval", f"{100 * share.low:.0f} to {100 * share.high:.0f}")
    guard(share.low < 0 < share.high, "no share of the gap is known to close")
    _tell_left_out(runs)
    _tell_weights(runs)
    _tell_beside(runs)


def _tell_left_out(runs: pd.DataFrame) -> None:
    """Which data sets lack an outcome, and that no model is left out."""
    certified = runs["certificate"].max()
    guard(certified <= evidence.LARGEST_CERTIFICATE, "no model had to be left out")
    say("many-certificate", f"{certified:.0e}")
    everywhere = evidence.effects(runs, "c_diff").index
    without = sorted(set(everywhere) - set(evidence.effects(runs, "joint_closing").index))
    say("many-unlabelled", " and ".join(without))
    guard(len(without) == 2, "two data sets have neither sex nor age")
    worst = evidence.effects(runs, "worst_own_diff").index
    guard(set(worst) == set(everywhere), "every data set has a worst group")


def _tell_weights(runs: pd.DataFrame) -> None:
    """What changes when every data set counts the same."""
    for name, outcome in evidence.PRIMARIES.items():
        mean, low, high = evidence.equal_weights(runs, outcome.column)
        say(f"many-equal-{name}", f"{signed(mean)} ({signed(low)} to {signed(high)})")
        guard(low < 0 < high, "with equal weights all three intervals contain 0")
        inside = -outcome.margin < low and high < outcome.margin
        guard(inside, "with equal weights all three lie within their margins")
    weights = [evidence.largest_weight(runs, one.column) for one in evidence.PRIMARIES.values()]
    say("many-weight", f"{100 * max(weights):.0f}")
    rows = evidence.effects(runs, "c_diff")
    say("many-c-up", int((rows["effect"] > 0).sum()))
    say("many-c-largest", f"{rows['effect'].max():+.1f}")
    say("many-c-smallest", f"{rows['effect'].min():+.1f}")


def _tell_beside(runs: pd.DataFrame) -> None:
    """SUPPORT and FLC, which do not count."""
    rows = evidence.of_model(runs).set_index(["dataset", "attribute"])
    age = rows.loc[("support2", "age")]
    for name in ("closing", "guard"):
        half = 1.96 * age[f"{name}_se"]
        say(f"many-support-{name}", f"{age[name]:+.2f} ± {half:.2f}")
        guard(age[name] > half, "on SUPPORT the gap by age closes here, too")
    c = evidence.effects(runs, "c_diff", which="beside").loc["support2"]
    say("many-support-c", f"{c['effect']:+.2f} ± {1.96 * c['se']:.2f}")
    closing = evidence.effects(runs, "joint_closing")
    beyond_noise = int((closing["effect"].abs() > 1.96 * closing["se"]).sum())
    guard(beyond_noise == 0, "on none of the others does the gap move beyond its own noise")
    say("many-closing-sets", len(closing))
    flc = evidence.effects(runs, "joint_closing", which="beside").loc["flchain"]
    guard(abs(flc["effect"]) < 1.96 * flc["se"], "on FLC nothing moves")


def tell_models(runs: pd.DataFrame, models: pd.DataFrame, accuracy: pd.DataFrame) -> None:
    """What the other models do.

    Parameters
    ----------
    runs : DataFrame
        Rows of the study.
    models, accuracy : DataFrame
        Of :func:`drocox.beyond.evidence.all_models` and ``accuracy_table``.
    """
    closing = models.xs("closing", level=1)
    guard(((closing["low"] < 0) & (closing["high"] > 0)).all(), "no model closes the gap")
    worst = models.xs("worst", level=1)
    guard((worst["low"] < 0).all(), "no model serves the worst group better")
    c = models.xs("c", level=1)
    strong = "DRO-COX, paper, α = 0.2"
    tuned = "DRO-COX, paper, α tuned"
    for key, model in (("strong", strong), ("tuned", tuned)):
        guard(c.loc[model, "high"] < -0.5, "the paper's constant and its rule cost c-index")
        guard(worst.loc[model, "high"] < -0.5, "and the worst group loses, too")
        _say_row(f"many-{key}-c", c.loc[model])
        say(f"many-{key}-c-loss", f"{-c.loc[model, 'mean']:.1f}")
        say(f"many-{key}-worst-loss", f"{-worst.loc[model, 'mean']:.1f}")
        guard(accuracy.loc[model, "low"] > 0, "and so does the Brier score")
    others = c.drop(index=[strong, tuned])
    guard(others["mean"].abs().max() < 0.1, "all others are within a tenth of a point of Cox")
    gentle = evidence.label(evidence.DRO)
    ridge = "ridge Cox, penalty 0.1"
    guard(abs(c.loc[ridge, "mean"] - c.loc[gentle, "mean"]) < 0.02, "ridge Cox gains as much")
    _say_row("many-ridge-c", c.loc[ridge])
    slope = accuracy["slope"]
    say("many-slope-cox", f"{slope['Cox']:.2f}")
    say("many-slope-dro", f"{slope[gentle]:.2f}")
    say("many-slope-ridge", f"{slope[ridge]:.2f}")
    say("many-slope-strong", f"{slope[strong]:.1f}")
    guard(slope["Cox"] < 0.9 < slope[ridge] < 1.1, "Cox's scores are too large on halves")
    guard(0.9 < slope[gentle] < 1.2, "gentle DRO-COX draws them in")
    guard(slope[strong] > 3, "the paper's constant far too much")
    low, high = accuracy.loc[gentle, ["low", "high"]]
    guard(low < 0 < high, "Brier score: no difference beyond noise")
    chosen = evidence.of_model(runs, learning.TUNED).drop_duplicates("dataset")["alpha"]
    say("many-chosen", f"{chosen.mean():.2f}")
    attributes = evidence.by_attribute(runs)
    for attribute in ("sex", "age"):
        row = attributes.loc[(attribute, "closing")]
        say(f"many-alone-{attribute}", mean_and_interval(row))
        guard(row["low"] < 0 < row["high"], "neither by sex nor by age alone")


def tell_controls(power: pd.DataFrame, coverage: pd.DataFrame) -> None:
    """What the controls say.

    Parameters
    ----------
    power, coverage : DataFrame
        Of :func:`drocox.beyond.control_evidence.power_table` and ``coverage_table``.
    """
    for name, row in power.iterrows():
        say(f"many-null-{name}", f"{100 * row[0.0]:.1f}")
        guard(row[0.5] > 0.99, "half a point on all data sets would have been found for sure")
    error = 1.96 * np.sqrt(0.05 * 0.95 / control_evidence.SWAPS)
    say("many-binomial", f"{100 * (0.05 - error):.0f} to {100 * (0.05 + error):.0f}")
    guard(abs(power.loc["c", 0.0] - 0.05) <= error, "for c rejections are within binomial error")
    for name in ("closing", "worst"):
        guard(power.loc[name, 0.0] < 0.05 - error, "for gap and worst group they are too rare")
    say("many-covered-least", f"{100 * coverage['covered'].min():.0f}")
    say("many-covered-most", f"{100 * coverage['covered'].max():.0f}")
    covered = coverage["covered"].astype(float)
    lowest = ("large", "closing")
    guard(covered[lowest] < 0.95 - error, "closing in the large design is covered too rarely")
    others = covered.drop(lowest)
    guard(others.min() > 0.95 - error, "all other intervals cover at least 95 times in 100")
    for name in evidence.PRIMARIES:
        ratio = coverage.xs(name, level=1)["ratio"]
        say(f"many-ratio-{name}", f"{ratio.min():.1f} to {ratio.max():.1f}")


def tell_moderators(table: pd.DataFrame) -> None:
    """What goes with larger effects.

    Parameters
    ----------
    table : DataFrame
        Of :func:`drocox.beyond.evidence.moderator_table`.
    """
    beyond = ((table["low"] > 0) | (table["high"] < 0)).sum()
    guard(beyond == 0, "none of the moderators")
    say("many-moderators", len(table))
    say("many-moderator-most", f"{table[['low', 'high']].abs().to_numpy().max():.2f}")
