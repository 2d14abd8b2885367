"""Values for the sentences on T16 and T17 against plain computations; guards that can fail."""

from functools import cache

import numpy as np
import pandas as pd
from perturbed import check, rescaled, shuffled, told

from drocox.chapters import split_experiments as chapter
from drocox.chapters.sentences import ALL_VIEWS, interval_width
from drocox.paper import claims, protocol, selection, store, tables


@cache
def exhibit(name, view):
    return tables.exhibit_table(name, **ALL_VIEWS[view])


@cache
def flc():
    runs = store.load_runs("corrected")
    return selection.add_f_a(runs[runs["dataset"] == "flc"], "age")


def test_tables_and_their_distances():
    shares = {view: exhibit("t16", view) for view in tables.VIEWS}
    sides = {view: exhibit("t17", view) for view in tables.VIEWS}
    assert len(told(chapter, "keep_tables", shares, sides).values) == 6
    published = shares["as published"], sides["as published"]
    values = check(
        chapter, "tell_fit", *published, variants=[(shuffled(published[0], 0), published[1])]
    )
    cells = published[0][published[0]["model"] == "linear"]
    within = [abs(row.mean - row.paper_mean) <= row.paper_std for row in cells.itertuples()]
    assert values["t16-within-linear"] == str(sum(within))
    assert values["t16-of-linear"] == "45"


def test_verdicts():
    values = told(chapter, "tell_claims").values
    count = claims.JUDGES["C13"]("corrected")
    assert values["C13-corrected"] == f"{count.value} of {count.of}"
    assert values["C13-corrected-where"] == count.where


def sensitivity(table):
    """Literally: range of the means over pooled SD."""
    ranges = {}
    for (model, metric), part in table.groupby(["model", "metric"]):
        pooled = np.sqrt(np.mean(part["std"] ** 2))
        ranges.setdefault(metric, {})[model] = (part["mean"].max() - part["mean"].min()) / pooled
    return pd.DataFrame(ranges)[list(tables.METRICS)]


def test_ranges_and_their_figure():
    ranges = {view: sensitivity(exhibit("t16", view)) for view in ALL_VIEWS}
    ranges["printed"] = sensitivity(
        exhibit("t16", "as published").assign(
            mean=lambda t: t["paper_mean"], std=lambda t: t["paper_std"]
        )
    )
    of_package = chapter.ranges_over_shares()
    assert set(of_package) == set(ranges)
    assert all(np.allclose(of_package[view], table) for view, table in ranges.items())
    table = exhibit("t16", "corrected")
    narrow = table.assign(std=0.1 * table["std"])
    others = [(rescaled(ranges, 9), narrow), (rescaled(ranges, 0), narrow)]
    values = check(chapter, "tell_ranges", ranges, table, variants=others)
    assert values["range-corrected"] == f"{ranges['corrected'].max().max():.1f}"
    assert len(chapter.draw_ranges(ranges).axes) == 2


def test_small_shares():
    gap = chapter.c_of_networks(flc())
    assert gap.shape == (10, len(protocol.ALPHAS))
    check(chapter, "tell_small_share", gap, variants=[(-gap,), (gap * 0,)])


def advantage(view):
    """Literally: both sides minus one, in pooled SDs, positive where both are better."""
    found = {}
    for model, part in exhibit("t17", view).groupby("model"):
        one = part[part["method"].str.contains("ONE SIDE")].set_index("metric")
        both = part[~part["method"].str.contains("ONE SIDE")].set_index("metric")
        for metric, (_, higher) in tables.METRICS.items():
            pooled = np.sqrt((one.loc[metric, "std"] ** 2 + both.loc[metric, "std"] ** 2) / 2)
            gap = (both.loc[metric, "mean"] - one.loc[metric, "mean"]) / pooled
            found.setdefault(metric, {})[model] = gap if higher else -gap
    return pd.DataFrame(found)


def test_sides_and_their_figure():
    ahead = {view: advantage(view) for view in tables.VIEWS}
    ahead["printed"] = ahead["as published"]
    published = exhibit("t17", "as published")
    others = [(-9 * ahead["corrected"] + 1, shuffled(published, 0))]
    values = check(chapter, "tell_sides", ahead["corrected"], published, variants=others)
    assert float(values["ahead-most"]) < 1
    assert len(chapter.draw_sides(ahead).axes) == 2


def test_chosen_settings():
    other = flc().assign(test_f_a=-flc()["test_f_a"])
    values = check(chapter, "tell_chosen_settings", flc(), variants=[(other,)])
    assert int(values["same-setting"]) + int(values["other-setting"]) == 10


def test_fixed_sides():
    by_model = {}
    for model in protocol.MODELS:
        rows = flc().query("n2_share == 0.5 and learning_rate == 0.01")
        rows = rows[rows["method"] == protocol.SPLIT[model]]
        c = rows.pivot(index="repeat", columns=["sides", "alpha"], values="test_c_index")
        d = c[2] - c[1]
        by_model[model] = pd.DataFrame(
            {"mean": d.mean(), "±": interval_width() * d.std(), "repeats > 0": (d > 0).sum()}
        )
    fixed = pd.concat(by_model, axis=1)
    wider = fixed.copy()
    wider.loc[:, (slice(None), "±")] = 0.0
    larger = fixed.iloc[::-1] + 0.01
    check(chapter, "tell_fixed_sides", fixed, variants=[(-fixed,), (wider,), (larger,)])


def test_scored_alike():
    index = pd.MultiIndex.from_product([protocol.MODELS, ["one side", "both sides"]])
    columns = {"as published": [0.1, 0.12] * 2, "scored alike": [0.1, 0.1001] * 2}
    ibs = pd.DataFrame(columns, index)
    assert check(chapter, "tell_ibs", ibs, variants=[(-99 * ibs,)])["ibs-alike-linear"] == "0.0001"


def test_fixed_shares():
    rows = flc().query("method == 'DRO-COX (SPLIT)' and sides == 2 and learning_rate == 0.01")
    columns = [f"test_{metric}" for metric in tables.METRICS]
    found = {}
    for alpha, part in rows.groupby("alpha"):
        by_share = part.groupby("n2_share")[columns]
        pooled = np.sqrt((by_share.std(ddof=0) ** 2).mean())
        found[alpha] = (by_share.mean().max() - by_share.mean().min()) / pooled
    found["chosen"] = sensitivity(exhibit("t16", "corrected")).loc["linear"].set_axis(columns)
    table = pd.DataFrame(found).set_axis(list(tables.METRICS))
    c = rows.pivot(index="repeat", columns=["alpha", "n2_share"], values="test_c_index")
    drop = {alpha: c[alpha][0.5] - c[alpha][0.1] for alpha in (0.1, 0.5)}
    swapped = {0.1: drop[0.5], 0.5: drop[0.1]}
    others = [(9 * table, swapped), (table[table.columns[::-1]].set_axis(
        table.columns, axis=1), swapped)]  # fmt: skip
    values = check(chapter, "tell_fixed_shares", table, drop, variants=others)
    assert values["fixed-drop"] == f"{drop[0.1].mean():.3f}"
