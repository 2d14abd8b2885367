"""Values for the sentences on the ledger against plain computations; guards that can fail."""

from functools import cache

import pandas as pd
import pytest
from perturbed import check, told

from drocox.chapters import claims as chapter
from drocox.paper import claims, signed

pytestmark = pytest.mark.slow  # the ledger needs all tables in all views


@cache
def ledger():
    return claims.ledger().replace({"view": {new: old for old, new in claims.OLD.items()}})


def test_every_claim_is_shown():
    marks = chapter.show_marks(ledger()).data
    experiments = [n for n, claim in claims.claims().items() if claim["kind"] == "experiment"]
    assert marks.count("<tr><th><a ") == len(experiments)
    undecided = ledger()[(ledger()["view"] != claims.CHECKED)]["undecided"].sum()
    assert marks.count(", undecided") == undecided
    for kind, views in (("experiment", 6), ("mathematics", 1)):
        page = chapter.show_claims(ledger(), kind).data
        number = [claim["kind"] for claim in claims.claims().values()].count(kind)
        assert page.count("<tr id=") == number
        assert page.count("data-view=") == number * views


def test_numbers():
    values = told(chapter, "tell_numbers", ledger()).values
    assert int(values["experiments"]) + int(values["mathematics"]) == 20
    corrected = [row.verdict for row in ledger().itertuples() if row.view == "corrected"]
    three = [corrected.count(word) for word in ("reproduced", "partly", "not")]
    assert values["corrected-counts"] == "{} / {} / {}".format(*three)
    assert told(chapter, "tell_errors").values["nadeau-error"] == "0.59"


def test_readings_and_exceptions():
    wide = chapter.of_experiments(ledger())
    all_open = wide | {"undecided": wide["undecided"] | True}
    values = check(chapter, "tell_readings", wide, variants=[(all_open,)])
    row = ledger().query("id == 'C4' and view == 'corrected'").iloc[0]
    assert values["C4-corrected"] == f"{row['value']:.0f} of {row['of']}"
    other = wide | {
        "verdict": wide["verdict"].map(lambda _: "reproduced"),
        "where": wide["where"].map(lambda text: f"{text}, ci_percent"),
    }
    check(chapter, "tell_exceptions", wide, variants=[(other,)])


def test_words():
    counts = {view: signed.gaps(view)["alone"].value_counts() for view in claims.IN_ORDER[2:]}
    rows = pd.DataFrame(counts).T.reindex(columns=signed.WORDS).fillna(0).astype(int)
    one_sided = rows.assign(**{signed.FARTHER: 0})
    mirrored = rows.assign(**{signed.UNDECIDED: 14 - rows[signed.UNDECIDED]})
    values = check(chapter, "tell_words", rows, variants=[(one_sided,), (mirrored,)])
    assert values == {"undecided": "13", "undecided-one": "13"}


def test_every_claim_has_a_name_of_about_five_words():
    assert list(chapter.NAMES) == list(claims.claims())
    assert all(len(words.split()) <= 6 for words in chapter.NAMES.values())


@pytest.mark.slow
def test_the_bars_have_all_claims_about_experiments():
    (panel,) = chapter.draw_verdicts(ledger()).axes
    lengths = [bar.get_width() for bar in panel.patches]
    experiments = [c for c in claims.claims().values() if c["kind"] == "experiment"]
    assert sum(lengths) == len(experiments) * len(chapter.SHOWN_VIEWS)
