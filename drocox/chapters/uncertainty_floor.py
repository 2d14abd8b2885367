"""The chapter *How sure are we?*: the noise floor of CI, which a model without any gap would have.

CI is the absolute value of a signed gap. Where the true gap is 0 and its standard error is σ, CI is
0.8 σ on average (:data:`FOLDED`). The bootstrap draws that give σ are those of
:mod:`drocox.chapters.uncertainty`.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.model_selection import StratifiedKFold

from drocox.bookstyle import guard, say
from drocox.chapters.sentences import WRITTEN
from drocox.chapters.uncertainty import chosen, pair_matrices
from drocox.paper import tables
from drocox.paper.claims import MAIN_PAIRS, PAIRS
from drocox.paper.prepare import Prepared

FOLDED = np.sqrt(2 / np.pi)  # mean of |Z| for a standard normal Z: the noise floor in units of σ


def gap_errors(
    ready: Prepared, all_scores: list[np.ndarray], rng: np.random.Generator, draws: int = 100
) -> pd.DataFrame:
    """SE of Δ of one model in five disjoint fifths of the data, by the bootstrap.

    Parameters
    ----------
    ready : Prepared
    all_scores : list of array
        The model's scores of training, validation and test part.
    rng : Generator
    draws : int

    Returns
    -------
    DataFrame
        Fifths × attributes.
    """
    parts = (ready.train, ready.val, ready.test)
    f = np.concatenate(all_scores)
    time = np.concatenate([part.time for part in parts])
    event = np.concatenate([part.event for part in parts])
    member = np.concatenate([part.group_matrix for part in parts])
    errors = []
    for _, i in StratifiedKFold(5, shuffle=True, random_state=0).split(f, event):
        w = rng.multinomial(len(i), np.full(len(i), 1 / len(i)), draws).astype("f4")
        points, pairs = pair_matrices(f[i], time[i], event[i])[2:]
        a = w * (w @ points.astype("f4"))
        b = w * (w @ pairs.astype("f4"))
        one = a @ member[i] / (b @ member[i])
        zero = a @ (1 - member[i]) / (b @ (1 - member[i]))
        errors.append(100 * (one - zero).std(axis=0, ddof=1))
    return pd.DataFrame(errors, columns=list(ready.test.groups))


def printed_ci() -> pd.DataFrame:
    """The published CIs, a line per table and method.

    Returns
    -------
    DataFrame
    """
    published = tables.published()
    return published[published["metric"] == "ci_percent"]


def ci_exhibits() -> dict[tuple[str, str], str]:
    """The exhibit tuned by CI of each pair of data set and attribute.

    Returns
    -------
    dict
    """
    exhibits = {}
    for exhibit, (dataset, attribute, tuned_by, *_) in tables.EXHIBITS.items():
        if tuned_by == "ci_percent":
            exhibits[dataset, attribute] = exhibit
    return exhibits


def ci_means(dataset: str, attribute: str) -> dict[str, pd.Series]:
    """Mean CI of the sixteen methods: printed (if it is), stated rule, corrected.

    Parameters
    ----------
    dataset, attribute : str

    Returns
    -------
    dict of str to Series
    """
    printed = printed_ci()
    table = tables.EXHIBIT_OF.get(ci_exhibits()[dataset, attribute])
    return {
        "printed": printed.loc[printed["table"] == table, "mean"],
        "stated": chosen(dataset, attribute, "ci_percent", "as_published").mean(),
        "corrected": chosen(dataset, attribute, "ci_percent", "corrected").mean(),
    }


def gap_error(boot: Mapping, dataset: str, attribute: str, method: str) -> float:
    """SE of Δ over the draws of the published test part.

    Parameters
    ----------
    boot : mapping of (dataset, method) to DataFrame
        Metrics of the draws.
    dataset, attribute, method : str

    Returns
    -------
    float
    """
    return boot[dataset, method][f"ci_signed_{attribute}"][1:].std()


def noise_floors(boot: Mapping, fifths: Mapping) -> pd.DataFrame:
    """The noise floor of CI, 0.8 σ, of each pair, beside the smallest means of CI.

    Parameters
    ----------
    boot : mapping of (dataset, method) to DataFrame
        Metrics of the draws of the published test part.
    fifths : mapping of str to DataFrame
        SE of Δ in five disjoint fifths of each data set, from :func:`gap_errors`.

    Returns
    -------
    DataFrame
        A line per pair of data set and attribute.
    """
    rows = []
    for dataset, attribute in PAIRS:
        sigma = gap_error(boot, dataset, attribute, "Cox")
        others = fifths[dataset][attribute]
        smallest = {view: means.min() for view, means in ci_means(dataset, attribute).items()}
        rows.append(
            {
                "": f"{WRITTEN[dataset]} {attribute}",
                "σ": sigma,
                "floor": FOLDED * sigma,
                "printed": smallest["printed"],
                "stated": smallest["stated"],
                "σ fifths": f"{others.min():.1f} to {others.max():.1f}",
                "its floor": FOLDED * others.mean(),
                "corrected": smallest["corrected"],
            }
        )
    return pd.DataFrame(rows).set_index("").rename_axis(None)


def below_floor(floors: pd.DataFrame) -> dict[str, list[bool]]:
    """Which means of CI are below their noise floor.

    Parameters
    ----------
    floors : DataFrame
        From :func:`noise_floors`.

    Returns
    -------
    dict of str to list of bool
        "printed", "stated" and "corrected", pair by pair, method by method.
    """
    below = {"printed": [], "stated": [], "corrected": []}
    for dataset, attribute in PAIRS:
        floor = floors.loc[f"{WRITTEN[dataset]} {attribute}"]
        for view, means in ci_means(dataset, attribute).items():
            bound = floor["its floor"] if view == "corrected" else floor["floor"]
            below[view] += list(means < bound)
    return below


def model_changes(boot: Mapping) -> list[float]:
    """By how much σ of DRO-COX differs from that of Cox, as a share, for each pair.

    Parameters
    ----------
    boot : mapping of (dataset, method) to DataFrame
        Metrics of the draws.

    Returns
    -------
    list of float
    """
    changes = []
    for dataset, attribute in PAIRS:
        of_dro = gap_error(boot, dataset, attribute, "DRO-COX")
        changes.append(of_dro / gap_error(boot, dataset, attribute, "Cox") - 1)
    return changes


def tell_floors(floors: pd.DataFrame, fifths: Mapping, boot: Mapping, ready: Prepared) -> None:
    """Section *The noise floor of CI*, and the room it leaves in the closing box.

    Parameters
    ----------
    floors : DataFrame
        From :func:`noise_floors`.
    fifths, boot : mapping
        As there.
    ready : Prepared
        SEER.
    """
    change = 100 * np.abs(model_changes(boot)).max()
    guard(change < 20, "the floor belongs to the test patients more than to the model")
    say("model-change", f"{change:.0f}")
    sigma = floors.loc["SEER race", "σ"]
    others = fifths["seer"]["race"]
    guard(sigma > others.max(), "on SEER (race) σ is larger in the published fifth")
    say("seer-sigma", f"{sigma:.1f}")
    say("seer-fifths", f"{others.min():.1f} to {others.max():.1f}")
    non_white = ready.test.groups["race"] == 0
    say("seer-race-deaths", int(ready.test.event[non_white].sum()))
    say("seer-race-n", int(non_white.sum()))
    _tell_kind_test_sets(floors)
    for name, pair in (("flc", "FLC age"), ("support", "SUPPORT gender"), ("seer", "SEER race")):
        say(f"room-{name}", f"{1.96 * floors.loc[pair, 'σ']:.1f}")
    printed = printed_ci()
    printed = printed[printed["table"] == tables.EXHIBIT_OF["t4"]].set_index("method")["mean"]
    say("seer-printed", f"{printed['DRO-COX']:.2f}")


def _tell_kind_test_sets(floors: pd.DataFrame) -> None:
    for dataset, attribute in (("flc", "age"), ("seer", "race")):
        stated = ci_means(dataset, attribute)["stated"]
        floor = floors.loc[f"{WRITTEN[dataset]} {attribute}", "floor"]
        guard(
            len(stated) == 16 and (stated < floor).all(),
            "all sixteen methods are below the floor on FLC (age) and on SEER (race)",
        )
    corrected = (floors["corrected"] / floors["its floor"]).min()
    stated = (floors["stated"] / floors["floor"]).min()
    guard(corrected > 0.5 and stated < 0.25, "corrected means are below within that scatter")
    say("lowest-corrected", f"{corrected:.1f}")
    say("lowest-stated", f"{stated:.1f}")
    scatter = np.sqrt((1 - 2 / np.pi) / 10) / FOLDED
    guard(abs(scatter - 0.25) < 0.02, "an SD of about a quarter of the floor")
    say("fair-below", f"{100 * (2 * stats.norm.cdf(FOLDED) - 1):.0f}")

    below = below_floor(floors)
    for view, lower in below.items():
        say(f"below-{view}", f"{sum(lower)} of {len(lower)}")
    by_pair = np.array(below["printed"]).reshape(3, 16).sum(axis=1)
    in_order = [pair for pair in PAIRS if pair in MAIN_PAIRS] == MAIN_PAIRS
    guard(
        in_order and by_pair[1] <= 2 and by_pair[[0, 2]].min() >= 15,
        "nearly all published means below the floor are on two test sets",
    )
