"""Values for the sentences on alpha against plain computations; guards that can fail."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from perturbed import check, failed, shuffled, told
from scipy.stats import spearmanr
from scipy.stats import t as student

from drocox.chapters import alpha as chapter
from drocox.chapters import alpha_scale as scale
from drocox.paper import claims, protocol, signed, store, tables

EXTRA = {"as_published": 1 / 10, "corrected": 1 / 10 + 0.2 / 0.8}  # Nadeau and Bengio
RANGES = {"flc": (0.1, 0.3), "support": (0.3, 0.5), "seer": (0.1, 0.3)}


@cache
def alpha():
    parts = [
        tables.alpha_table(dataset, protocol=name).assign(dataset=dataset, protocol=name)
        for name in protocol.PROTOCOLS
        for dataset in chapter.DATASETS
    ]
    return pd.concat(parts, ignore_index=True)


def mixed(seed):
    """The table with its means at other places."""
    mean = shuffled(alpha()["mean"], seed)
    return alpha().assign(mean=mean, paper_mean=shuffled(alpha()["paper_mean"].fillna(0), seed))


def repeats(name, dataset, column, method="DRO-COX"):
    runs = store.load_runs(name)
    rows = runs[(runs["dataset"] == dataset) & (runs["learning_rate"] == 0.01)]
    rows = rows[rows["method"] == method]
    return rows.pivot(index="repeat", columns="alpha", values=column)


def changes(column, ranges):
    rows = {}
    for name in protocol.PROTOCOLS:
        for dataset, (low, high) in ranges.items():
            values = repeats(name, dataset, column)
            d = values[high] - values[low]
            rows[name.replace("_", " "), dataset] = {
                "change": d.mean(), "SE": d.std() * EXTRA[name] ** 0.5, "repeats > 0": (d > 0).sum()
            }  # fmt: skip
    return pd.DataFrame(rows).T


def test_points_of_the_figure():
    values = check(
        chapter, "tell_points", alpha(), variants=[(shuffled(alpha(), 0),), (alpha()[1:],)]
    )
    points = chapter.published_points(alpha())
    row = points.iloc[0]
    assert row["distance"] == abs(row["mean"] - row["paper_mean"]) / row["paper_std"]
    shown = values["f1-table-as-published"]
    assert shown.shape == (18, 12)
    first = alpha().query("dataset == 'flc' and alpha == 0.1 and metric == 'f_a'")["mean"].iloc[0]
    assert shown.loc["FLC, α = 0.1", ("F_A", "mean")] == f"{first:.4f}"


@pytest.mark.slow
def test_six_figures():
    shown = told(chapter, "keep_figures").values
    assert len(shown) == 6
    assert all(len(figure.axes) == 6 for figure in shown.values())


def test_claims_and_gains():
    values = told(chapter, "tell_claims").values
    assert values["C9-corrected"] == f"{claims.JUDGES['C9']('corrected').value} of 3"
    gains = changes("test_c_index", RANGES)
    falling = gains.assign(change=-gains["change"], **{"repeats > 0": 0})
    others = [(mixed(seed), falling) for seed in range(3)]
    values = check(chapter, "tell_gains", alpha(), gains, variants=others)
    assert values["gains-in-errors"] == "3.3, 8.6, 4.0"
    naive = gains.assign(SE=gains["SE"] * 2)
    assert failed(chapter, "tell_gains", (alpha(), naive))


def correlations():
    found = {}
    for _, name, column, _, _, view in chapter.SERIES:
        of_protocol = alpha()[alpha()["protocol"] == name]
        for dataset in chapter.DATASETS:
            wide = of_protocol[of_protocol["dataset"] == dataset]
            wide = wide.pivot(index="alpha", columns="metric", values=column)
            for metric in claims.FAIR:
                if wide[metric].notna().all():
                    rho = spearmanr(wide.index, wide[metric])[0]
                    found.setdefault((view, metric), {})[dataset] = rho
    return pd.DataFrame(found).reindex(chapter.DATASETS)


def test_fairness():
    rho = correlations()
    imparity = changes("test_ci_percent_age", dict.fromkeys(chapter.DATASETS, (0.1, 0.5)))
    check(
        chapter, "tell_fairness", rho, imparity, variants=[(-rho, -imparity), (0 * rho, imparity)]
    )
    of_flc = repeats("corrected", "flc", "test_ci_percent_age")
    runs = store.load_runs("as_published")
    others = [(runs.assign(moved=0), of_flc * 0 + of_flc.columns)]
    check(chapter, "tell_test_sets", runs, of_flc, variants=others)


def test_trade_off():
    variants = [(mixed(seed),) for seed in range(3)]
    values = check(chapter, "tell_trade_off", alpha(), variants=variants)
    assert values["trade-paper-flc"] == "0.49"
    assert len(chapter.draw_trade_off(alpha()).axes) == 3


def test_learned():
    runs = store.load_runs("corrected")
    learned = pd.DataFrame(
        [[0.01] * 3, [0.5] * 3, [1.0, 0.2, 1.0]], [0.1, 0.3, 0.5], chapter.DATASETS
    )
    learned.loc[0.3, "support"] = 0.1
    other = learned[::-1].set_axis(learned.index)
    values = check(scale, "tell_learned", alpha(), runs, learned, variants=[(alpha(), runs, other),
                   (alpha(), runs, 3 * learned)])  # fmt: skip
    assert values["learned-support-half"] == "20.0"


def test_shrunk():
    first = scale.first_repeat(store.load_runs("corrected"))
    assert len(first) == 18
    scales = np.geomspace(1e-4, 1e4, 5)
    control = {d: {"f_a": scales, "c_index": 0.9, "ci_percent": 1.0} for d in chapter.DATASETS}
    low = {d: {"f_a": scales * 1e9, "c_index": 0.1} for d in chapter.DATASETS}
    values = check(scale, "tell_shrunk", first, control, variants=[(first, low)])
    assert values["shrunk-ahead"] == "0"
    assert len(scale.draw_shrunk(first, control).axes) == 6


def test_test_parts():
    constant = dict.fromkeys([(dataset, 1) for dataset in chapter.DATASETS], 0.0)
    assert failed(scale, "tell_test_parts", (constant,))


def test_against_cox():
    width = student.ppf(0.975, 9) * EXTRA["corrected"] ** 0.5
    runs = store.load_runs("corrected").query("method == 'Cox' and learning_rate == 0.01")
    gaps = {}
    for dataset in chapter.DATASETS:
        cox = runs[runs["dataset"] == dataset].set_index("repeat")["test_c_index"]
        d = repeats("corrected", dataset, "test_c_index").sub(cox, axis=0)
        gaps[dataset, "c_index"] = pd.DataFrame({"mean": d.mean(), "half": width * d.std()})
    sure = {key: gap.assign(mean=9.0, half=1e-9) for key, gap in gaps.items()}
    check(scale, "tell_against_cox", gaps, variants=[(sure,)])


def test_gaps_by_alpha():
    table = scale.gaps_by_alpha(store.load_runs("corrected"))
    robust = repeats("corrected", "support", "test_ci_signed_age")[0.5]
    assert table.loc["support 0.5", "ours"] == pytest.approx(robust.mean())
    nothing = table.assign(alone=signed.UNDECIDED, together=signed.UNDECIDED, ours=-1.0)
    values = check(scale, "tell_gaps_by_alpha", table, variants=[(nothing,)])
    assert values["support-half-difference"] == "1.99 ± 0.55"
    assert len(scale.draw_gaps_by_alpha(table).axes) == 3
    assert scale.show_gaps_by_alpha(table).loc["SUPPORT, α = 0.5", "alone"] == signed.CLOSER


def test_a_model_that_has_barely_started():
    runs = store.load_runs("corrected")
    trained = runs[runs["learning_rate"] == 0.01].assign(learning_rate=0.0001)
    check(scale, "tell_stopped", runs, variants=[(trained,)])
