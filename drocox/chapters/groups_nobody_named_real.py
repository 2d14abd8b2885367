"""The chapter *Groups nobody named*: real patients, in groups that were found and not planted.

Rows come from :mod:`drocox.beyond.groups`: own c-index, LPL and calibration of every model in every
group, with errors. What happens to planted minorities is in
:mod:`drocox.chapters.groups_nobody_named`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

import drocox
from drocox.beyond import groups
from drocox.bookstyle import guard, say
from drocox.evaluation import scaled_features
from drocox.heldout import assign_folds
from drocox.solver import minimise

DATASETS = ("flc", "support", "seer")


def with_models(real: pd.DataFrame) -> pd.DataFrame:
    """Rows of real patients with a name for each model: method and, where it has one, alpha.

    Parameters
    ----------
    real : DataFrame

    Returns
    -------
    DataFrame
        With a column ``model``: "Cox", "DRO-COX 0.1", "regret, leaves", ...
    """
    has_alpha = real["alpha"].notna() & (real["method"] != "Cox")
    suffix = real["alpha"].map(" {:g}".format).where(has_alpha, "")
    return real.assign(model=real["method"] + suffix)


def verdicts(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """In how many groups a model is better or worse than Cox beyond noise.

    Parameters
    ----------
    rows : DataFrame
        Of groups of real patients, with models.
    metric : {"c_index", "lpl"}

    Returns
    -------
    DataFrame
        Models × (data set, "better" or "worse").
    """
    models = [model for model in rows["model"].unique() if model != "Cox"]
    better = rows[f"{metric}_gain_low"] > 0
    worse = rows[f"{metric}_gain_high"] < 0
    signs = pd.DataFrame({"better": better, "worse": worse})
    counts = signs.groupby([rows["model"], rows["dataset"]]).sum().unstack("dataset")
    return counts.loc[models].swaplevel(axis=1).sort_index(axis=1)


def draw_real(told: pd.DataFrame) -> Figure:
    """What each model gains in c-index over Cox in groups of real patients.

    Parameters
    ----------
    told : DataFrame
        Rows of found groups with models, without Cox's.

    Returns
    -------
    Figure
    """
    rows = {f"DRO-COX, α {alpha:g}": [f"DRO-COX {alpha:g}"] for alpha in groups.REAL_ALPHAS}
    for alpha in groups.REAL_ALPHAS:
        rows[f"paper's C, α {alpha:g}"] = [f"DRO-COX, paper's C {alpha:g}"]
    for kind in ("regret", "own"):
        rows[f"{kind}, own family"] = [f"{kind}, {family}" for family in groups.TOLD_FAMILIES]
    shared = {"sharey": True, "sharex": True, "layout": "constrained"}
    figure, axes = plt.subplots(1, 3, figsize=(7.8, 4.2), **shared)
    for panel, dataset in zip(axes, DATASETS, strict=True):
        for k, names in enumerate(rows.values()):
            some = told[(told["dataset"] == dataset) & told["model"].isin(names)]
            if len(names) > 1:  # methods that were told a family are judged in its groups
                pairs = zip(some["method"], some["family"], strict=True)
                some = some[[method.endswith(family) for method, family in pairs]]
            decided = (some["c_index_gain_low"] > 0) | (some["c_index_gain_high"] < 0)
            heights = -k + np.linspace(-0.25, 0.25, len(some))
            colour = f"C{k // 3}"
            fill = np.where(decided, colour, "none")
            style = {"s": 16, "facecolors": fill, "edgecolors": colour}
            panel.scatter(some["c_index_gain"], heights, **style)
        panel.axvline(0, color="0.5", lw=1)
        panel.set(title=dataset.upper(), xlabel="gain in c-index")
    axes[0].set_yticks(-np.arange(len(rows)), list(rows))
    return figure


def tell_real(told: pd.DataFrame, ranks: pd.DataFrame, likelihoods: pd.DataFrame) -> None:
    """Section *Real patients*: groups that a model serves better or worse than Cox.

    Parameters
    ----------
    told : DataFrame
        Rows of found groups with models, without Cox's.
    ranks, likelihoods : DataFrame
        Counts of groups by c-index and by likelihood, from :func:`verdicts`.
    """
    of_one_model = told[told["model"] == "DRO-COX 0.1"]
    sizes = of_one_model.groupby("dataset").size()
    judged = int(sizes.sum())
    families = len(of_one_model.drop_duplicates(["dataset", "third", "family"]))
    say("hidden-groups", judged)
    say("hidden-families", families)
    say("hidden-by-luck", f"{0.05 * families:.1f}")
    say("hidden-n-support", int(sizes["support"]))
    say("hidden-tests", 3 * judged)
    total = ranks.T.groupby(level=1).sum().T
    likelihood = likelihoods.T.groupby(level=1).sum().T
    for name, short in (("DRO-COX", "dro"), ("DRO-COX, paper's C", "paper")):
        for alpha in groups.REAL_ALPHAS:
            model = f"{name} {alpha:g}"
            say(f"hidden-better-{short}-{alpha:g}", int(total.loc[model, "better"]))
            say(f"hidden-worse-{short}-{alpha:g}", int(total.loc[model, "worse"]))
            say(f"hidden-lpl-{short}-{alpha:g}", int(likelihood.loc[model, "worse"]))
    for kind in ("regret", "own"):
        answers = [name for name in total.index if name.startswith(kind)]
        better = total.loc[answers, "better"].sum()
        say(f"hidden-better-{kind}", int(better))
        say(f"hidden-worse-{kind}", int(total.loc[answers, "worse"].sum()))
        guard(better <= 0.05 * len(answers) * judged, "the constructive answers find no disease")
    _hold_real(total, judged, ranks)
    _tell_widths(told)


def _hold_real(total: pd.DataFrame, judged: int, ranks: pd.DataFrame) -> None:
    worse = total["worse"]
    say("hidden-dro-support", int(ranks.loc["DRO-COX 0.1", ("support", "worse")]))
    most = ranks.loc["DRO-COX 0.1", ("support", "worse")] > worse["DRO-COX 0.1"] / 2
    guard(most, "at alpha = 0.1 most of those it ranks worse are on SUPPORT")
    guard(worse["DRO-COX, paper's C 0.1"] > judged / 3, "with the paper's constant more are worse")
    falls = worse["DRO-COX 0.1"] >= worse["DRO-COX 0.2"] > worse["DRO-COX 0.5"]
    guard(falls, "the larger alpha, the fewer groups are ranked worse")
    gentle = worse["DRO-COX 0.5"] <= 0.05 * judged
    guard(gentle, "with the sharp constant and alpha = 0.5 hardly any group is ranked worse")
    better = ranks.loc["DRO-COX 0.5"].xs("better", level=1)
    on_support = better["support"] == better.sum() > 0
    guard(on_support, "the few that are ranked better at 0.5 are on SUPPORT")
    dro = [f"DRO-COX {alpha:g}" for alpha in groups.REAL_ALPHAS]
    rarely = total.loc[dro, "better"].max() <= 0.1 * judged
    guard(rarely, "and no alpha served more than a tenth better")


def tell_sides(sides: pd.DataFrame) -> None:
    """Groups of each named attribute: own c-index at the sharp constant, and who gains.

    Parameters
    ----------
    sides : DataFrame
        Rows of the family "attributes" with models.
    """
    gentle = sides[sides["model"] == "DRO-COX 0.5"]
    better = gentle[gentle["c_index_gain_low"] > 0]
    worse = gentle[gentle["c_index_gain_high"] < 0]
    say("sides-n", len(gentle))
    say("sides-better", len(better))
    say("sides-worse", len(worse))
    harsh = sides[sides["model"] == "DRO-COX, paper's C 0.1"]
    harsh_worse = int((harsh["c_index_gain_high"] < 0).sum())
    say("sides-paper-worse", harsh_worse)
    guard(harsh_worse > len(harsh) / 3, "with the paper's constant many sides are ranked worse")
    guard(len(worse) <= 0.1 * len(gentle), "sharp at 0.5, hardly any side is ranked worse")
    old = gentle[(gentle["dataset"] == "support") & (gentle["group"] == "age > 65")]
    say("sides-support-old", f"{100 * old['c_index_gain'].mean():+.1f}")
    guard((old["c_index_gain"] > 0).all(), "SUPPORT's over-65s gain at alpha = 0.5")


def _tell_widths(told: pd.DataFrame) -> None:
    own = told[told["method"].str.startswith("own")]
    half = (own["c_index_gain_high"] - own["c_index_gain_low"]) / 2
    width = half.groupby(own["dataset"]).median()
    guard(
        width.min() > 0.005 and width.max() < 0.09,
        "half of the planted harm (0.09) would have been seen, a hundredth mostly not",
    )
    for dataset in width.index:
        say(f"hidden-width-{dataset}", f"{width[dataset]:.3f}")


def tell_calibration(found: pd.DataFrame, oe: pd.DataFrame) -> None:
    """Section *Real patients*, calibration: groups off beyond noise, by model.

    Parameters
    ----------
    found : DataFrame
        Rows of found groups with models, "tells" and "off": whether the interval of observed by
        expected events says enough, and whether it then excludes 1.
    oe : DataFrame
        The chapter's summary, by model and data set.
    """
    shorts = {"Cox": "cox", "DRO-COX 0.1": "dro", "DRO-COX 0.5": "gentle"}
    for name, short in shorts.items():
        for end in ("low", "high"):
            say(f"hidden-oe-{short}-{end}", f"{oe.loc[(name, 'flc'), end]:.2f}")
        say(f"hidden-off-{short}", int(oe["off"][name].sum()))
        say(f"hidden-tells-{short}", int(oe["tells"][name].sum()))
    sizes = found[found["model"] == "DRO-COX 0.1"].groupby("dataset").size()
    uncounted = sizes - oe["tells"]["Cox"]
    guard(uncounted["flc"] > 0, "some groups on FLC are not counted")
    guard(uncounted.drop("flc").max() == 0, "elsewhere all are counted")
    say("hidden-wide", int(uncounted["flc"]))

    by_group = found.set_index(["dataset", "third", "family", "group"])
    of_cox = by_group[by_group["model"] == "Cox"]
    of_dro = by_group[by_group["model"] == "DRO-COX 0.1"]
    both = of_dro.loc[of_cox.index[of_cox["tells"]]]
    guard(oe["off"]["Cox"].sum() == 0, "beyond noise Cox is off in none")
    guard(both["off"].mean() > 0.4, "of these, DRO-COX is off in many")
    fewer = oe["off"]["DRO-COX 0.5"].sum() < oe["off"]["DRO-COX 0.1"].sum()
    guard(fewer, "at alpha = 0.5 it is off in fewer")
    say("hidden-off-both", int(both["off"].sum()))
    silent_thirds = of_cox.index[~of_cox["tells"]].unique("third")
    _tell_one_man(silent_thirds)


def expected_deaths(data: drocox.SurvivalData, fold: np.ndarray) -> np.ndarray:
    """Deaths that Cox, fitted to the other folds, expects of each patient until he left.

    Parameters
    ----------
    data : SurvivalData
    fold : int array

    Returns
    -------
    array
        :math:`-\\log \\hat S(Y_i \\mid x_i)`.
    """
    deaths = np.empty(len(data))
    for k in np.unique(fold):
        train = data.subset(fold != k)
        test = data.subset(fold == k)
        X, Z = scaled_features(train, test)
        coef = minimise(X, drocox.risk_sets(train.time, train.event), 1).coef
        scores = torch.from_numpy(X @ coef)
        others = torch.from_numpy(Z @ coef)
        survival = drocox.breslow_survival(scores, train.time, train.event, others, test.time)
        deaths[fold == k] = -np.log(survival.numpy().diagonal())
    return deaths


def _tell_one_man(silent_thirds: pd.Index) -> None:
    """The man of FLC of whom Cox expects most deaths, in the first third's cross-fit."""
    flc = drocox.load_dataset("flc")
    third = assign_folds(flc.event, 3, seed=0)
    rest = flc.subset(third != 0)
    deaths = expected_deaths(rest, assign_folds(rest.event, 5, seed=0))
    who = deaths.argmax()
    man = rest.X.iloc[who]
    guard(not rest.event[who], "he is alive")
    guard(deaths[who] > 5 * np.sort(deaths)[-2], "of nobody else nearly as many are expected")
    most = flc.X["kappa"].max()
    guard(man["kappa"] == most, "he has more κ light chains than anybody else")
    finds_him = 1 + third[flc.X["kappa"].argmax()]  # a third that finds groups does not judge
    guard(finds_him not in silent_thirds, "the groups not counted are judged by him among others")
    say("hidden-him-age", f"{man['age']:.0f}")
    say("hidden-him-kappa", f"{man['kappa']:.1f}")
    say("hidden-him-years", f"{rest.time[who] / 365.25:.0f}")
    say("hidden-him-deaths", f"{deaths[who]:.0f}")
