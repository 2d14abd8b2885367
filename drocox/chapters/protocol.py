"""The protocol: values for sentences, guards, the flow of one repeat, and two drawings.

``cells``, ``by_rule`` and ``fit`` are what the chapter computes of the published rows: every rule
against every published cell, the mean distance of each row by rule, and of four selections.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.paper import protocol, selection, sweep, tables

ROW = ["exhibit", "model", "method"]
TUNED = {"lam": "λ", "alpha": "α", "learning_rate": "learning rates"}
LOSSES = {"cox": "cox", "dro": "DRO", "split": "DRO, split"}
PAPER_RULES = ["stated CI", "stated CI, 2 decimals", "one setting CI"]


def percent(share: float) -> str:
    """A share in whole percent.

    Parameters
    ----------
    share : float

    Returns
    -------
    str
    """
    return f"{100 * share:.0f} %"


def tell_example(printed: pd.DataFrame) -> None:
    """For the number that the chapter begins with: linear DRO-COX's CI in Table 2.

    Parameters
    ----------
    printed : DataFrame
        The published cells.
    """
    of_table = printed[printed["table"] == tables.EXHIBIT_OF["t2"]]
    of_method = of_table[of_table["method"] == "DRO-COX"].set_index("metric")
    cell = of_method.loc["ci_percent"]
    say("example", f"{cell['mean']:.4f} ({cell['std']:.4f})")


# Methods and grids


def show_methods() -> HTML:
    """The eight methods of both models: loss, grid, and the groups seen in training.

    Returns
    -------
    HTML
    """
    lines = []
    for name, method in protocol.METHODS.items():
        grid = protocol.Stack("corrected", "flc", name, 1).grid()
        sizes = pd.DataFrame(grid).nunique()
        tuned = [f"{n} {TUNED[knob]}" for knob, n in sizes.items() if n > 0]
        groups = "its attribute" if method.by_attribute else "–"
        if method.penalty == "keya_cap":
            groups = "all attributes"
        lines.append({
            "model": method.model,
            "name": name,
            "loss": LOSSES[method.loss],
            "tuned": " × ".join(tuned),
            "models per repeat": len(grid),
            "groups seen in training": groups,
        })  # fmt: skip
    by_model = pd.DataFrame(lines).set_index("model")
    shown = by_model.loc["linear"].rename(columns={"name": "linear"})
    shown.insert(1, "nonlinear", by_model.loc["nonlinear", "name"].to_numpy())
    return HTML(shown.to_html(index=False, border=0))


def tell_plan(plan: pd.DataFrame) -> None:
    """For the number of models.

    Parameters
    ----------
    plan : DataFrame
        Models by exhibits and data set, with sums.
    """
    say("n-models", f"{plan.loc['all', 'all']:,}")
    say("n-main", f"{plan.loc['T2–T15, F1', 'all']:,}")


# One repeat


def _box(x: int, y: int, height: int, *text: str, width: int = 130, shade: float = 0.1) -> str:
    """A box of the flow, with lines of text in its middle."""
    rows = ""
    for i, line in enumerate(text):
        below = 17 * (i - (len(text) - 1) / 2)
        rows += f'<text x="{x + width / 2}" y="{y + height / 2 + 5 + below:.1f}">{line}</text>'
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="currentColor"'
        f' fill-opacity="{shade}" stroke="none"/>'
        f'<g fill="currentColor" stroke="none">{rows}</g>'
    )


def show_flow(sizes: list[int], tries: int) -> HTML:
    """The flow of one repeat, from all patients to a row of a table.

    Parameters
    ----------
    sizes : list of int
        Patients of the training, validation and test part.
    tries : int
        Models in the grid.

    Returns
    -------
    HTML
    """
    train, val, test = sizes
    boxes = [
        _box(90, 6, 34, f"SEER: {train + val + test:,} patients", width=250),
        _box(12, 86, 44, "training part", f"{train:,}"),
        _box(150, 86, 44, "validation part", f"{val:,}"),
        _box(288, 86, 44, "test part", f"{test:,}"),
        _box(12, 170, 62, "train the grid:", f"{tries} models", "of DRO-COX"),
        _box(150, 170, 62, f"judge all {tries}:", "c-index and CI"),
        _box(150, 272, 80, "c ≥ 95 % of Cox,", "then the", "smallest CI:", "one model"),
        _box(288, 272, 80, "judge this one:", "nine metrics"),
        _box(90, 398, 34, "ten repeats: mean (SD) = one row of a table", width=328, shade=0.2),
    ]
    arrows = [
        "M150 40L90 84", "M215 40V84", "M280 40L340 84", "M77 130V168", "M215 130V168",
        "M353 130V270", "M142 201H148", "M215 232V270", "M280 312H286", "M353 352V396",
    ]  # fmt: skip
    paths = "".join(f"<path d={arrow!r}/>" for arrow in arrows)
    return HTML(
        '<svg viewBox="0 0 430 440" role="img" aria-labelledby="flow-title" font-size="13.5"'
        ' fill="none" stroke="currentColor" text-anchor="middle"'
        ' style="max-width:560px;width:100%;display:block;margin:1rem 0">'
        '<title id="flow-title">Flow of one repeat. The patients are split into a training, a'
        " validation and a test part. The grid is trained on the training part and judged on the"
        " validation part; one model is chosen and judged on the test part. Ten repeats give the"
        " mean and SD of a row of a table.</title>"
        '<defs><marker id="flow-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8" fill="none" stroke="currentColor"/></marker></defs>'
        '<rect x="4" y="60" width="422" height="304" rx="8" stroke-dasharray="5 4"'
        ' stroke-opacity=".5"/>'
        '<text x="20" y="355" text-anchor="start" fill="currentColor" stroke="none">'
        "repeat r = 1 … 10</text>"
        f'<g marker-end="url(#flow-tip)" stroke-opacity=".7">{paths}</g>{"".join(boxes)}</svg>'
    )


def tell_rules() -> None:
    """For the number of rules, and of groups of rows that have one of their own."""
    say("n-rules", len(selection.SELECTION_RULES))
    say("n-recovered", len(selection.RECOVERED))


# How close do we come?


def draw_fit(fit: pd.DataFrame) -> Figure:
    """How many published rows lie within a mean distance, by selection.

    Parameters
    ----------
    fit : DataFrame
        Mean distance by row and selection.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots()
    counted = np.arange(1, len(fit) + 1)
    for k, (name, style) in enumerate(zip(fit, ("-", "-.", "--", ":"), strict=True)):
        axes.step(np.sort(fit[name]), counted, style, where="post", color=f"C{k}", label=name)
    axes.axvline(1, color="grey", linewidth=1)
    axes.set(
        xscale="log", xlabel="mean distance to the printed row (in printed SDs)",
        ylabel="rows within that distance", ylim=(0, 63),
    )  # fmt: skip
    axes.legend()
    return figure


def recovered_rules(cells: pd.DataFrame) -> pd.Series:
    """The recovered rule of each published row.

    Parameters
    ----------
    cells : DataFrame
        Of :func:`drocox.paper.tables.fidelity_cells`.

    Returns
    -------
    Series of str
        By exhibit, model and method.
    """
    recovered = cells[cells["recovered"]]
    return recovered.drop_duplicates(ROW).set_index(ROW)["rule"]


def choices(by_rule: pd.DataFrame) -> pd.DataFrame:
    """Different choices that the rules make for each row, and how many land within 1 SD.

    Rules that pick the same runs have the same distance and count once.

    Parameters
    ----------
    by_rule : DataFrame
        Mean distance by row and rule; NaN where a rule does not apply.

    Returns
    -------
    DataFrame
        Columns distinct and landed.
    """
    distinct = by_rule.round(9).nunique(axis=1)
    landed = by_rule.where(by_rule <= 1).round(9).nunique(axis=1)
    return pd.DataFrame({"distinct": distinct, "landed": landed})


def _link(exhibit: str) -> str:
    """A link to an exhibit."""
    page = "split-experiments" if exhibit in ("t16", "t17") else "main-tables"
    return f'<a href="{page}.html#{exhibit}">{exhibit.upper()}</a>'


def _row_name(method: str, model: str) -> str:
    """The name of a row; the shares of T16 are the same for both models."""
    is_share = method[0].isdigit()
    return f"{method} (nonlinear)" if is_share and model == "nonlinear" else method


def _distance(value: float) -> str:
    """A distance in SDs: far ones without decimals."""
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def show_rows(cells: pd.DataFrame, by_rule: pd.DataFrame, fit: pd.DataFrame) -> HTML:
    """All 62 published rows: distances by selection, choices, and rules.

    Parameters
    ----------
    cells, by_rule, fit : DataFrame

    Returns
    -------
    HTML
    """
    counts = choices(by_rule)
    recovered = recovered_rules(cells).replace("stated CI", "as stated")
    shown = pd.DataFrame({
        "stated": fit["stated"].map(_distance),
        "one setting": fit["one setting"].map(_distance),
        "recovered": fit["recovered"].map(_distance),
        "closest": fit["best of list"].map(_distance),
        "choices": counts["distinct"],
        "within 1 SD": counts["landed"],
        "recovered rule": recovered,
        "closest rule": by_rule.idxmin(axis=1),
    })  # fmt: skip
    shown = shown.loc[fit.index].reset_index()
    shown["exhibit"] = shown["exhibit"].map(_link)
    names = [_row_name(m, model) for m, model in zip(shown["method"], shown["model"], strict=True)]
    shown.insert(0, "row", names)
    shown = shown.drop(columns=["method", "model"]).replace("&", "&amp;", regex=True)
    return HTML(shown.to_html(index=False, border=0, escape=False))


def tell_fit(cells: pd.DataFrame, by_rule: pd.DataFrame, fit: pd.DataFrame) -> None:
    """For the cells and rows that come back under each selection.

    Parameters
    ----------
    cells, by_rule, fit : DataFrame
    """
    best_rule = by_rule.idxmin(axis=1).rename("best_rule")
    cells = cells.join(best_rule, on=ROW)
    selections = {
        "stated": cells[cells["rule"] == "stated CI"],
        "one": cells[cells["rule"] == "one setting CI"],
        "recovered": cells[cells["recovered"]],
        "best": cells[cells["rule"] == cells["best_rule"]],
    }
    for name, part in selections.items():
        guard(len(part) == 558, "62 rows, 558 cells")
        say(f"cells-{name}", percent((part["distance"] <= 1).mean()))
        gap = (part["mean"] - part["paper_mean"]).abs()
        say(f"digits-{name}", int((gap <= 1e-4).sum()))
    for name in fit:
        say(f"rows-{name.split()[0]}", int((fit[name] <= 1).sum()))
    either = fit[["stated", "one setting"]].min(axis=1)
    say("rows-either", int((either <= 1).sum()))
    guard((fit["recovered"] <= 1).all(), "the recovered rules give all 62 rows back")
    guard((fit["best of list"] <= 1).all(), "the closest rule of the list gives all 62 rows back")
    for name in ("stated", "recovered"):
        say(f"near-{name}", int((fit[name] <= 0.1).sum()))


def tell_cautions(by_rule: pd.DataFrame, fit: pd.DataFrame, recovered: pd.Series) -> None:
    """For "The rules were chosen because they fit".

    Parameters
    ----------
    by_rule, fit : DataFrame
    recovered : Series
        Of :func:`recovered_rules`.
    """
    counts = choices(by_rule)
    say("land-share", percent(counts["landed"].sum() / counts["distinct"].sum()))
    forensic = recovered.index[~recovered.isin(PAPER_RULES)]
    say("n-forensic", len(forensic))
    say("forensic-stated", f"{fit.loc[forensic, 'stated'].median():.1f}")
    say("forensic-recovered", f"{fit.loc[forensic, 'recovered'].median():.2f}")
    say("forensic-single", int((counts.loc[forensic, "landed"] == 1).sum()))

    by_test = recovered.index[recovered.str.startswith("test")]
    expected = [("t2", "linear", "DRO-COX"), ("t4", "linear", "DRO-COX")]
    guard(list(by_test) == expected, "Two rows, linear DRO-COX on FLC and SEER, use test data")
    alone = (counts.loc[by_test, "landed"] == 1).all()
    guard(alone, "come back only with a rule that looks at test data")

    of_split = fit.index.get_level_values("exhibit").isin(["t16", "t17"])
    linear = fit.index.get_level_values("model") == "linear"
    n2 = fit.index[of_split & linear]
    say("n2-rows", len(n2))
    named = (recovered[n2] == "named setting").all()
    guard(named, "come back with the setting that the released instructions name")
    guard(fit.loc[n2, "stated"].min() > 40, "not with the stated rule")

    is_split = fit.index.get_level_values("method").str.contains("SPLIT") | of_split
    deep = fit.index[is_split & ~linear]
    guard(len(deep) == 10, "the ten rows of nonlinear SPLIT")
    guard(set(recovered[deep]) == {"no gradient"}, "the log-sum of its loss passes no gradient")
    others = by_rule.loc[deep].drop(columns="no gradient")
    say("split-nearest", f"{others.min(axis=None):.1f}")
    say("split-recovered", f"{fit.loc[deep, 'recovered'].max():.2f}")


def tell_printed(printed: pd.DataFrame, points: pd.DataFrame) -> None:
    """For rows that are printed twice, and for the points of F1.

    Parameters
    ----------
    printed : DataFrame
        The published cells.
    points : DataFrame
        Tables of F1, as published, rows with a printed mean.
    """
    means = printed.set_index(["table", "model", "method", "metric"])["mean"].sort_index()
    for model in protocol.MODELS:
        of_t17 = means[tables.EXHIBIT_OF["t17"], model, protocol.SPLIT[model]]
        of_t16 = means[tables.EXHIBIT_OF["t16"], model, "0.5n"]
        guard((of_t17 == of_t16).all(), "T17's two-sided SPLIT is T16's 0.5n")
    gap = (points["mean"] - points["paper_mean"]).abs() / points["paper_std"]
    guard(len(points) == 90, "of its 90 points")
    say("points-within", int((gap <= 1).sum()))
    say("points-mean", f"{gap.mean():.2f}")


# Which digits hold


def tell_unstable(known: pd.DataFrame, chosen: pd.DataFrame) -> None:
    """For the paragraph on unstable runs.

    Parameters
    ----------
    known : DataFrame
        Runs that were trained twice.
    chosen : DataFrame
        Runs that the stated rule picks for T2 to T4, corrected.
    """
    say("n-known", f"{len(known):,}")
    by_model = known.groupby("model")["unstable"].mean()
    for model in protocol.MODELS:
        say(f"unstable-{model}", f"{100 * by_model[model]:.1f} %")
    marked = chosen.dropna(subset="unstable")
    say("unstable-chosen", f"{int(marked['unstable'].sum())} of {len(marked)}")
    linear = known[known["model"] == "linear"]
    say("held-linear", percent((linear["moved"] <= sweep.HELD).mean()))

    is_dro = known["method"].str.contains("DRO")
    fast = known["learning_rate"] == max(protocol.LEARNING_RATES)
    slow = known["learning_rate"] == min(protocol.LEARNING_RATES)
    of_fast_dro = known[fast & is_dro].groupby("model")["unstable"].mean()
    say("unstable-deep-dro", percent(of_fast_dro["nonlinear"]))
    say("unstable-linear-dro", percent(of_fast_dro["linear"]))
    baselines = known[~is_dro]
    shares = baselines.groupby(["method", "protocol", "learning_rate"])["unstable"].mean()
    guard(shares.max() < 0.05, "baselines hardly ever")
    of_linear = baselines.loc[baselines["model"] == "linear", "unstable"]
    guard(of_linear.sum() == 0, "linear ones never")
    guard(known.loc[slow, "unstable"].sum() == 0, "nothing at 0.0001")


# What it cost


def cost_by_method(plan: pd.DataFrame, minutes: dict[str, float]) -> pd.DataFrame:
    """Core-minutes, models, and core-seconds per model, the last method first.

    Parameters
    ----------
    plan : DataFrame
        A row per stack, with method and models.
    minutes : dict
        Core-minutes by method.

    Returns
    -------
    DataFrame
    """
    order = list(protocol.METHODS)[::-1]
    cost = pd.DataFrame({"minutes": pd.Series(minutes)[order]})
    cost["models"] = plan.groupby("method")["models"].sum()[order]
    cost["seconds"] = 60 * cost["minutes"] / cost["models"]
    return cost


def draw_cost(cost: pd.DataFrame) -> Figure:
    """Core-seconds per model by method.

    Parameters
    ----------
    cost : DataFrame
        Of :func:`cost_by_method`.

    Returns
    -------
    Figure
    """
    figure, axes = plt.subplots(figsize=(6.2, 4.2))
    colours = ["C0" if "DRO" in method else "0.6" for method in cost.index]
    axes.barh(list(cost.index), cost["seconds"], color=colours)
    for y, (minutes, models, seconds) in enumerate(cost.itertuples(index=False)):
        text = f"{minutes:.1f} min, {models:,}"
        axes.text(seconds + 0.08, y, text, va="center", fontsize="small")
    axes.set(xlabel="core-seconds per model", xlim=(0, 1.35 * cost["seconds"].max()))
    axes.tick_params(axis="y", labelsize="small")
    axes.grid(axis="y", visible=False)
    return figure


def tell_cost(cost: pd.DataFrame) -> None:
    """For what the methods cost.

    Parameters
    ----------
    cost : DataFrame
        Of :func:`cost_by_method`.
    """
    seconds = cost["seconds"]
    keya = seconds[seconds.index.str.contains("_I(Keya)", regex=False)][::-1]
    rest = seconds.drop(keya.index)
    say("cost-keya", " and ".join(f"{each:.1f}" for each in keya))
    say("cost-rest", f"{rest.max():.1f}")
    guard(keya.min() > 2 * rest.max(), "The individual penalty of Keya et al. compares all pairs")
    linear = seconds["DRO-COX"] / seconds["Cox"]
    deep = seconds["Deep DRO-COX"] / seconds["DeepSurv"]
    guard(0.8 < linear < 1.2 and 0.8 < deep < 1.2, "DRO-COX takes as long as plain Cox")
    models = cost["models"]
    of_split = models[models.index.str.contains("SPLIT")]
    guard((of_split > 2.5 * models["DRO-COX"]).all(), "T16 and T17 need so many models of SPLIT")


# Exercises


def tell_control(control: pd.DataFrame) -> None:
    """For the control: the list of rules on runs that cannot be the paper's.

    Parameters
    ----------
    control : DataFrame
        Distance under the best rule: 24 linear rows by protocol.
    """
    for name in protocol.PROTOCOLS:
        say(f"control-{name}", int((control[name] <= 1).sum()))
        say(f"control-median-{name}", f"{control[name].median():.2f}")
    nearest = control["corrected"].min()
    say("control-nearest", f"{nearest:.2f}")
    say("control-nearer", int((control["as_published"] < nearest).sum()))
    guard(nearest > 0.1, "none comes nearer")
    guard((control["as_published"] <= 1).all(), "All rows land with the right runs")
    guard((control["corrected"] <= 1).sum() < 12, "the list does not fit anything")


def tell_spread(spread: pd.DataFrame) -> None:
    """For the exercise "what an SD leaves out".

    Parameters
    ----------
    spread : DataFrame
        SD of Cox's test c-index, protocol by data set.
    """
    ratio = spread.loc["corrected"] / spread.loc["as_published"]
    guard(ratio.min() > 5, "The second SD is many times the first")
    say("sd-ratio", f"{ratio.min():.0f} to {ratio.max():.0f}")
