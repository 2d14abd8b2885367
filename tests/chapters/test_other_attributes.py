"""Values for the sentences on T5 to T8 against plain computations; guards that can fail."""

import pandas as pd
import pytest
from perturbed import check, failed, rescaled, shuffled, told

from drocox.chapters import other_attributes as chapter
from drocox.chapters import sentences
from drocox.paper import claims, protocol, signed, tables

OTHERS = [pair for pair in claims.PAIRS if pair not in claims.MAIN_PAIRS]


def test_observations_are_those_of_the_ledger():
    rows = chapter.observations("corrected", claims.MAIN_PAIRS)
    assert len(rows) == 6
    judges = {"C7": "plain: accurate, unfair", "C8": "no baseline fair throughout"}
    for name, column in judges.items():
        assert rows[column].sum() == claims.JUDGES[name]("corrected").value
    assert chapter.counted(rows).iloc[2].endswith(" of 54")


def test_the_shares_of_models_that_stay():
    same = pd.DataFrame({"corrected": [0.2, 0.4]})
    values = check(chapter, "tell_same_model", same, ["a", "b"], variants=[(2 * same, [])])
    assert values == {"same-low": "20", "same-high": "40", "n-chosen": "2"}


@pytest.mark.slow
def test_findings():
    counts = {
        (view, name): chapter.counted(chapter.observations(view, pairs))
        for view in chapter.VIEWS
        for name, pairs in (("main", claims.MAIN_PAIRS), ("T5–T8", OTHERS))
    }
    other = pd.DataFrame(counts).map(lambda text: text.replace("of 8", "of 9"))
    values = check(chapter, "tell_findings", pd.DataFrame(counts), variants=[(other,)])
    assert values["kept"] == counts["corrected", "T5–T8"].iloc[1]


def test_tables_with_printed_numbers_are_not_called_unpublished():
    table = tables.main_table("flc", "gender", **tables.VIEWS["corrected"])
    result = told(sentences, "keep_unpublished", "t5", "corrected", table)
    printed = table.assign(paper_mean=1.0)
    assert failed(sentences, "keep_unpublished", ("t5", "corrected", printed)) == set(result.held)


def lowest_ci():
    lowest = {}
    for dataset, attribute in OTHERS:
        for view in ("stated rule", "corrected"):
            table = tables.main_table(dataset, attribute, **tables.VIEWS[view])
            for model in protocol.MODELS:
                ci = chapter.by_method(table[table["model"] == model], "ci_percent")
                lowest.setdefault(view, {})[f"{dataset} {attribute} {model}"] = ci.idxmin()
    return pd.DataFrame(lowest)


def test_lowest():
    lowest = lowest_ci()
    others = [pair for pair in claims.PAIRS if pair not in claims.MAIN_PAIRS]
    table = signed.gaps("corrected", pairs=others)
    nobody = lowest.replace({"DRO-COX": "Cox_I(Keya)"})
    nothing = table.assign(alone=signed.UNDECIDED)
    values = check(chapter, "tell_lowest", lowest, table, variants=[(nobody, nothing)])
    assert values["decided"] == "1"
    shown = chapter.show_lowest(lowest, table)
    assert shown.loc["SUPPORT age, linear", "DRO-COX"] == signed.CLOSER


def test_race_and_price():
    race = [tables.main_table("support", "race", **tables.VIEWS[v]) for v in ("stated rule",
            "corrected")]  # fmt: skip
    values = check(chapter, "tell_race", *race, variants=[race[::-1]])
    assert values["race-stated-cox"] == f"{chapter.by_method(race[0], 'ci_percent')['Cox']:.2f}"
    table = tables.main_table("support", "age", protocol="corrected")
    check(chapter, "tell_price", table, variants=[(rescaled(table, -1),)])


def judged_by():
    values = {}
    for dataset, tuned in claims.PAIRS:
        runs = tables.chosen_runs(dataset, tuned, "ci_percent", "corrected", "stated")
        for method in ("Cox", "DRO-COX", "DeepSurv", "Deep DRO-COX"):
            of_method = runs[runs["method"] == method]
            for by in protocol.ATTRIBUTES[dataset]:
                mean = of_method[f"test_ci_percent_{by}"].mean()
                values[method, dataset, by, tuned] = mean
    return pd.Series(values).sort_index()


def test_tuning_and_its_figure():
    series = judged_by()
    wins = {"DRO-COX": 2, "Deep DRO-COX": 3}
    other = series.copy()
    other["DRO-COX", "support", "age", "age"] = 0.0
    more = {"DRO-COX": 4, "Deep DRO-COX": 4}
    values = check(
        chapter, "tell_tuning", series, wins, variants=[(other, more), (series.pow(0), more)]
    )
    assert values["wins-chance"] == "3"
    figure = chapter.draw_tuned(series)
    assert len(figure.axes) == 2
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    attributes = [len(protocol.ATTRIBUTES[dataset]) for dataset, _ in claims.PAIRS]
    assert len(dots) == sum(attributes)


def test_correlations():
    real = dict.fromkeys(("DRO-COX", "Deep DRO-COX"), (0.05, -0.02, 0.45))
    other = dict.fromkeys(real, (0.5, 0.1, 0.2))
    assert check(chapter, "tell_correlations", real, variants=[(other,)])["negative-deep"] == "45"


def test_tables_without_printed_numbers():
    shown = told(chapter, "keep_tables").values
    assert len(shown) == 12
    assert "tuned by CI" in shown["t5-corrected"].caption


def test_shuffled_numbers_stay_the_same_numbers():
    series = pd.Series([1.0, 2.0, 3.0])
    assert sorted(shuffled(series, 0)) == [1, 2, 3]
