"""Values for the sentences on T2 to T4 against plain computations; guards that can fail."""

from functools import cache

import pandas as pd
import pytest
from perturbed import check, failed, shuffled, told

from drocox.chapters import main_tables as chapter
from drocox.chapters import main_tables_observations as observations
from drocox.chapters.sentences import ALL_VIEWS, by_method
from drocox.paper import claims, protocol, selection, signed, tables


@cache
def found():
    return {
        (exhibit, view): tables.main_table(*tables.EXHIBITS[exhibit][:2], **options)
        for exhibit in chapter.MAIN_EXHIBITS
        for view, options in ALL_VIEWS.items()
    }


@cache
def counts():
    names = ["C2", "C3", "C5", "C6", "C7", "C8", "C14"]
    return pd.DataFrame(
        {view: {name: claims.JUDGES[name](view) for name in names} for view in claims.IN_ORDER}
    )


@cache
def every():
    return observations.other_tables()


def with_small_deviations():
    """All means spread out, and the deviations of the corrected runs made small."""
    changed = {}
    for (exhibit, view), table in found().items():
        std = table["std"] / 100 if "corrected" in view else table["std"]
        changed[exhibit, view] = table.assign(mean=100 * table["mean"], std=std)
    return changed


def test_rows_within_one_sd_are_counted_one_by_one():
    close = 0
    for _, row in found()["t2", "stated rule"].groupby(["model", "method"]):
        cells = zip(row["mean"], row["paper_mean"], row["paper_std"], strict=True)
        distances = [abs(mean - printed) / std for mean, printed, std in cells]
        close += sum(distances) / 9 <= 1
    variants = [(shuffled(found(), 0),), (with_small_deviations(),)]
    values = check(chapter, "tell_tables", found(), variants=variants)
    assert values["t2-close-stated"] == str(close)


def test_sentences_on_t2_and_t3():
    runs = tables.chosen_runs(*tables.EXHIBITS["t2"], "corrected", "stated")
    table = found()["t2", "corrected"]
    others = [(shuffled(table, seed), shuffled(runs, seed)) for seed in range(3)]
    check(chapter, "tell_flc", table, runs, variants=others)
    values = check(chapter, "tell_support", found(), variants=[(shuffled(found(), 0),)])
    c = by_method(found()["t3", "corrected"], "c_index")
    share = (c["Cox"] - c["DRO-COX"]) / (c["Cox"] - 0.5)
    assert values["t3-given"] == f"{100 * share:.0f} %"


def test_groups_are_those_of_the_data():
    values = told(chapter, "tell_groups").values
    assert values["t4-share"].endswith(" %")
    assert int(values["t4-few-events"]) < int(values["t4-few"])


def test_main_comparisons():
    wide = observations.wide_means(found())
    gaps = observations.ci_of_dro_and_baseline(wide)
    views = ("stated rule", "corrected", "corrected, one setting")
    moved = {view: signed.gaps(view, **observations.AGAINST_BEST) for view in views}
    other = {view: table.assign(alone=signed.FARTHER) for view, table in moved.items()}
    assert observations.show_gaps(gaps).data.count("<tr>") == 7

    def mixed(seed):
        wide_of_others = shuffled(wide, seed)
        return observations.ci_of_dro_and_baseline(wide_of_others), other

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "rule_of", lambda *_: "test CI")
        by_rule = failed(observations, "tell_lowest_ci", (gaps, moved))
    sentences = set(told(observations, "tell_lowest_ci", gaps, moved).held)
    assert by_rule | failed(observations, "tell_lowest_ci", mixed(0), mixed(1)) == sentences
    printed = tables.published_table("t2").query("method == 'DRO-COX' and metric == 'ci_percent'")
    assert gaps["printed"]["FLC (age), linear"][0] == printed["mean"].item()


@pytest.mark.slow
def test_counts_are_told():
    values = told(observations, "tell_counts", counts()).values
    count = claims.JUDGES["C2"]("corrected")
    assert values["C2-corrected"] == f"{count.value} of {count.of}"
    one_sided = counts().map(lambda c: c._replace(where="DRO-COX better in 50, SPLIT in 4"))
    assert failed(observations, "tell_counts", (one_sided,))


@pytest.mark.slow
def test_kept_accuracy_and_penalties():
    fewer = counts().map(lambda c: c._replace(value=c.value + 1))
    others = [(shuffled(every(), seed), fewer) for seed in range(2)]
    values = check(observations, "tell_kept", every(), counts(), variants=others)
    means = by_method(every()[("support", "race"), "corrected"], "c_index")
    share = means["Deep DRO-COX"] / means["DeepSurv"]
    kept = observations.kept_c_index(every(), "corrected")
    assert kept["support", "race", "nonlinear"] == pytest.approx(share)
    assert values["kept-corrected"] == f"{100 * kept.min():.1f} %"
    assert values["kept-corrected-one"] == "93.0 %"

    wide = observations.wide_means(found())
    result = told(observations, "tell_penalties", wide, counts())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "MODELS", ("linear",))
        of_half = failed(observations, "tell_penalties", (wide, counts()))
    assert of_half | failed(observations, "tell_penalties", (wide, fewer)) == set(result.held)
    assert 0 <= int(result.values["own-ci"]) <= int(result.values["own-better"]) <= 30


@pytest.mark.slow
def test_winners():
    result = told(observations, "tell_winners", every())
    values = result.values
    page = values["winners-ci_percent"].data
    assert page.count('<td class="win">') == sum(
        claims.best(view, metric="ci_percent", pairs=claims.PAIRS).value
        for view in claims.IN_ORDER[2:]
    )
    assert values["wins-f_a-14-printed"] == "–"
    nobody = claims.best("corrected", metric="f_a", pairs=claims.PAIRS)._replace(value=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "best", lambda *arguments, **options: nobody)
        assert failed(observations, "tell_winners", (every(),)) == set(result.held)


def test_ranks_front_and_luck():
    metrics = ["c_index", "lpl", "ibs", "f_a", "ci_percent"]
    names = [
        f"{title}, {model}" for title in chapter.MAIN_EXHIBITS.values() for model in protocol.MODELS
    ]
    ranks = pd.DataFrame([[2, 1, 1, 6, 1]] * 6, names, metrics)
    check(observations, "tell_ranks", ranks, variants=[(ranks + 2,), (5 - ranks,)])
    methods = claims.BASELINES["linear"] + claims.DRO["linear"]
    times = pd.Series([3, 6, 6, 2, 1, 4, 2, 5], methods)
    values = check(observations, "tell_front", times, variants=[(times - 1,)])
    assert values["front-dro"] == "2 and 5"
    table = signed.gaps("corrected", **observations.AGAINST_BEST).assign(printed=0.1)
    wider = table.assign(difference=30.0, printed=30.0)
    check(observations, "tell_luck", table, names, variants=[(wider, names[::-1])])


def test_the_figure_follows_every_method_from_view_to_view():
    figure = chapter.draw_views(found())
    assert len(figure.axes) == 6
    titles = [ax.get_title() for ax in figure.axes[:3]]
    assert titles == list(chapter.MAIN_EXHIBITS.values())
    table = found()["t3", "corrected"].query("metric == 'ci_percent'")
    for panel, model in zip(figure.axes[1::3], protocol.MODELS, strict=True):
        lines = [line.get_ydata() for line in panel.lines if len(line.get_ydata()) == 3]
        ends = sorted(heights[-1] for heights in lines)
        wanted = sorted(table.loc[table["model"] == model, "mean"])
        assert ends == pytest.approx(wanted)


def test_what_the_figure_shows():
    turned = {key: table.assign(mean=-table["mean"]) for key, table in found().items()}
    check(chapter, "tell_figure", found(), variants=[(turned,)])
