"""Values for the sentences of the answer against plain computations; guards that can fail."""

import numpy as np
import pandas as pd
import pytest
from perturbed import check, rescaled, told

import drocox
from drocox.chapters import should_you_use_it as chapter
from drocox.paper import claims, protocol, signed, tables
from drocox.paper.prepare import prepare


def test_what_alpha_protects():
    ladder = {a: drocox.dual_constant(a, rule="paper") ** -2 for a in protocol.ALPHAS}
    sharp = {a: drocox.dual_constant(a, rule="sharp") ** -2 for a in protocol.ALPHAS}
    values = check(chapter, "tell_ladder", ladder, variants=[(sharp,)])
    assert values["share-0.1"] == "0.6"


@pytest.mark.slow
def test_evidence():
    leads = chapter.all_leads()
    mirrored = rescaled(leads, -1)
    sure = {key: lead.assign(half=1e-9) for key, lead in leads.items()}
    variants = [(mirrored,), (sure,), (rescaled(sure, -1),)]
    values = check(chapter, "tell_evidence", leads, variants=variants)
    ibs = leads["corrected", "ibs"]["mean"]
    assert values["ibs-behind"] == str(sum(mean < 0 for mean in ibs))


def test_gaps():
    views = ("corrected", "corrected, one setting")
    gaps = {view: signed.gaps(view) for view in views}
    nothing = {v: t.assign(alone=signed.UNDECIDED, together=signed.UNDECIDED, difference_p=0.5)
               for v, t in gaps.items()}  # fmt: skip
    exact = {v: t.assign(difference_error=1e-3, sum_error=1e-3) for v, t in gaps.items()}
    values = check(chapter, "tell_gaps", gaps, variants=[(nothing,), (exact,)])
    assert values["firm-difference"] == "-1.96 ± 0.53"
    assert [values["firm-p"], values["firm-sum-p"]] == ["1.5", "0.04"]
    assert values["detectable"] == "1.0 to 3.3"
    assert values["needed"] == "4 to 43"


def test_groups_of_support():
    groups = chapter.groups_of_support()
    values = check(
        chapter, "tell_groups", groups, variants=[(-groups,), (groups.assign(half=0.0),)]
    )
    assert values == {"younger-change": "−2.6 ± 1.0", "older-change": "−0.6 ± 1.0"}
    gap = signed.gaps("corrected").loc[chapter.FIRM]
    of_cox = groups.loc["over 65", "Cox"] - groups.loc["65 or younger", "Cox"]
    assert of_cox == pytest.approx(gap["theirs"])


def test_leads_are_differences_of_tables():
    lead = chapter.against_cox("corrected", "c_index", claims.MAIN_PAIRS)
    table = tables.main_table("support", "gender", protocol="corrected")
    c = table[table["metric"] == "c_index"].set_index("method")["mean"]
    assert lead.loc["support gender linear", "mean"] == pytest.approx(c["DRO-COX"] - c["Cox"])
    values = told(chapter, "tell_support", table).values
    assert values == {"c-cox": f"{c['Cox']:.3f}", "c-dro": f"{c['DRO-COX']:.3f}"}


def test_rivals_and_planted_groups():
    beyond = drocox.load_runs("beyond")
    runs = beyond.query("study == 'rivals'").set_index(["dataset", "attribute", "method"])
    runs = runs.sort_index()
    fair = runs.assign(ci_diff=9.0, ci_sum=-9.0, c_diff=9.0)
    unsure = runs.assign(ci_diff_se=99.0, c_diff_se=99.0)
    values = check(chapter, "tell_rivals", runs, variants=[(fair,), (unsure,)])
    assert values["rivals-compared"] == "131"
    rows = beyond.query("study == 'groups' and share == 0.2 and n == 4000 and marker == 1")
    c = rows.pivot_table("c_minority", "design", "method")
    check(chapter, "tell_planted", c, variants=[(-c,)])


def test_shrunken_cox():
    shrunk = pd.DataFrame({"scale": [0.1], "c, Cox": [0.7], "c, DRO-COX": [0.7]})
    other = pd.DataFrame({"scale": [1.1], "c, Cox": [0.6], "c, DRO-COX": [0.7]})
    check(chapter, "tell_shrunk", shrunk, variants=[(other,)])


def test_few_events():
    test = prepare("corrected", "seer", 1).test
    events = sum(bool(e) for e, race in zip(test.event, test.groups["race"], strict=True) if not
                 race)  # fmt: skip
    assert told(chapter, "tell_few_events", test).values == {"few-events": str(events)}


@pytest.mark.slow
def test_the_forest_plot_has_the_intervals_of_its_tables():
    lead = chapter.against_cox("corrected", "c_index", claims.PAIRS)
    panel = chapter.draw_leads({"c-index": lead, "the same": lead}).axes[0]
    marks = [container.lines[0].get_xdata() for container in panel.containers]
    assert sorted(np.concatenate(marks)) == pytest.approx(sorted(lead["mean"]))
    is_sure = lead["mean"].abs() > lead["half"]
    assert [len(mark) for mark in marks] == [sum(~is_sure), sum(is_sure)]
    assert len(panel.get_yticks()) == len(lead)
