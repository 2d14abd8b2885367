"""The protocol: its methods, the flow of one repeat, which digits hold, and what it cost.

Which rules chose the published models is in :mod:`drocox.chapters.protocol_rules`, and what digits
hang on in :mod:`drocox.chapters.protocol_digits`.
"""

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure

from drocox.bookstyle import guard, say
from drocox.paper import protocol, sweep, tables

TUNED = {"lam": "λ", "alpha": "α", "learning_rate": "learning rates"}
LOSSES = {"cox": "cox", "dro": "DRO", "split": "DRO, split"}


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
