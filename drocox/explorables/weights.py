r"""Who gets the weight: every death's loss against its time, before and after training, by alpha.

The adversary's weights come from the losses by the dual with the paper's constant,

.. math:: q_i = \frac{[\ell_i - \eta^*]_+}{\sum_j [\ell_j - \eta^*]_+}, \qquad
   C^2 = 2 (1/\alpha - 1)^2 + 1 .

Losses are rounded to two digits and sent as two letters each; the script finds eta and the weights.
"""

import numpy as np
import torch

import drocox
from drocox.bookstyle import guard
from drocox.cox import RiskSets
from drocox.explorables.element import Explorable, checkbox, element, output, range_input
from drocox.explorables.svg import Axes, colour, number, part, picture
from drocox.solver import minimise

WIDTH = 340
HEIGHT = 320
# Trained models; the last is the ordinary Cox model.
ALPHAS = (0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.8, 1.0)
COX = len(ALPHAS) - 1
GROUPS = {"old": ("over 65", 0), "young": ("65 or younger", 1)}  # label, colour
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
LARGEST = len(LETTERS) ** 2 - 1  # hundredths of a loss that two letters can hold
GUESSES = ("the oldest", "the younger who died all the same", "those who died first")


def losses_by_alpha(X: np.ndarray, risk: RiskSets) -> np.ndarray:
    """Cox losses of linear DRO-COX models, trained to the optimum for each of ``ALPHAS``.

    Parameters
    ----------
    X : array of shape (n, d)
    risk : RiskSets

    Returns
    -------
    array of shape (alphas, n)
        The last row is that of the ordinary Cox model.
    """
    rows = []
    for alpha in ALPHAS:
        theta = minimise(X, risk, alpha, rule="paper").coef
        rows.append(drocox.cox_losses(torch.tensor(X @ theta), risk).numpy())
    return np.array(rows)


def packed(losses: np.ndarray) -> str:
    """Losses in hundredths, two letters each, in base 36.

    Parameters
    ----------
    losses : array of shape (n,)

    Returns
    -------
    str
    """
    hundredths = np.round(100 * losses).astype(int)
    if hundredths.min() < 0 or hundredths.max() > LARGEST:
        raise ValueError(f"losses must lie between 0 and {LARGEST / 100}")
    return "".join(LETTERS[h // 36] + LETTERS[h % 36] for h in hundredths)


def cloud(years: np.ndarray, losses: np.ndarray) -> Axes:
    """Axes of losses against time.

    Parameters
    ----------
    years : array
    losses : array
        Of the deaths.

    Returns
    -------
    Axes
    """
    xlim = (0, float(np.ceil(years.max())))
    ylim = (float(np.floor(losses.min())), float(np.ceil(losses.max())))
    return Axes(WIDTH, HEIGHT, xlim, ylim, left=36, top=56)


def bins(years: np.ndarray) -> Axes:
    """Axes of the weight by year of death.

    Parameters
    ----------
    years : array

    Returns
    -------
    Axes
    """
    return Axes(WIDTH, HEIGHT, (0, float(np.ceil(years.max()))), (0, 100), top=56)


class State:
    """The adversary's choice for one alpha.

    Parameters
    ----------
    losses : array of shape (n,)
        0 for the censored.
    alpha : float
    """

    def __init__(self, losses: np.ndarray, alpha: float) -> None:
        tensor = torch.tensor(losses)
        self.square = drocox.dual_constant(alpha, rule="paper") ** 2
        self.eta = drocox.optimal_eta(tensor, np.sqrt(self.square)).item()
        self.q = drocox.worst_case_weights(tensor, alpha, rule="paper").numpy()


def by_year(years: np.ndarray, weights: np.ndarray, last: int) -> np.ndarray:
    """Percent of all weights in each year.

    Parameters
    ----------
    years, weights : arrays of shape (n,)
    last : int
        Number of years.

    Returns
    -------
    array of shape (last,)
    """
    year = np.minimum(years.astype(int), last - 1)
    return np.bincount(year, weights, minlength=last)


def dots(axes: Axes, years: np.ndarray, losses: np.ndarray) -> str:
    """Path that draws a dot at each point, with round ends of lines of length 0.

    Parameters
    ----------
    axes : Axes
    years, losses : arrays of shape (n,)

    Returns
    -------
    str
    """
    points = zip(axes.x(years), axes.y(losses), strict=True)
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)


def legend() -> str:
    """What the colours mean.

    Returns
    -------
    str
    """
    parts = []
    for row, (label, index) in enumerate(GROUPS.values()):
        y = 14 + 18 * row
        parts.append(part("circle", "", cx="46", cy=y - 4, r="5", style=f"fill:{colour(index)}"))
        parts.append(part("text", "", label, x="56", y=y))
    parts.append(part("path", "", d="M190 10H214", stroke="currentColor", stroke_width="2"))
    parts.append(part("text", "", "log |Rᵢ|", x="220", y="14"))
    return "".join(parts)


def draw_cloud(
    axes: Axes, years: np.ndarray, losses: np.ndarray, old: np.ndarray, when: np.ndarray, now: State
) -> str:
    """Losses of the deaths; those with weight are large.

    Parameters
    ----------
    axes : Axes
    years, losses, old, when : arrays of shape (deaths,)
        ``when`` is the logarithm of the size of the risk set.
    now : State

    Returns
    -------
    str
        An ``svg`` element.
    """
    content = [axes.drawn("time of death (years)", "loss"), legend()]
    heavy = losses > now.eta
    for weight, chosen in (("calm", ~heavy), ("heavy", heavy)):
        size, faint = ("2.5", "0.45") if weight == "calm" else ("6", "0.75")
        for group, who in (("old", old), ("young", ~old)):
            style = f"stroke:{colour(GROUPS[group][1])};stroke-linecap:round"
            path = dots(axes, years[chosen & who], losses[chosen & who])
            ink = {"stroke_width": size, "opacity": faint, "style": style}
            content.append(part("path", f"{weight}-{group}", d=path, **ink))
    order = np.argsort(years, kind="stable")
    some = order[np.unique(np.linspace(0, len(order) - 1, 250).astype(int))]
    black = {"fill": "none", "stroke": "currentColor"}
    content.append(
        part("path", "", d=axes.line(years[some], when[some]), stroke_width="2", **black)
    )
    y = axes.y(max(now.eta, axes.ylim[0]))
    line = {"d": f"M{axes.left} {y:.1f}H{axes.right}", "stroke_dasharray": "6 4"}
    content.append(part("path", "level", **line, **black))
    below = now.eta < axes.ylim[0]
    place = {"x": axes.right, "y": y - 5, "text_anchor": "end"}
    content.append(part("text", "levelname", "η is below" if below else "η", **place))
    return picture(WIDTH, HEIGHT, "".join(content))


def draw_years(axes: Axes, years: np.ndarray, q: np.ndarray, old: np.ndarray) -> str:
    """Percent of the weight on deaths, by year and age; outlined: percent of the deaths.

    Parameters
    ----------
    axes : Axes
    years, q, old : arrays of shape (deaths,)

    Returns
    -------
    str
        An ``svg`` element.
    """
    last = int(axes.xlim[1])
    share = 100 * q / q.sum()
    content = [axes.drawn("year of death", "percent of the deaths' weight")]
    wide = 0.8 * (axes.x(1) - axes.x(0))
    heights = {"old": by_year(years, share * old, last)}
    heights["young"] = by_year(years, share * ~old, last)
    below = np.zeros(last)
    for group, (_, index) in GROUPS.items():
        for year in range(last):
            top = axes.y(below[year] + heights[group][year])
            box = {"x": axes.x(year) + wide / 8, "y": top, "width": wide}
            box["height"] = axes.y(below[year]) - top
            content.append(part("rect", f"{group}{year}", style=f"fill:{colour(index)}", **box))
        below = heights[group]
    deaths = by_year(years, np.full(len(years), 100 / len(years)), last)
    for year in range(last):
        left = axes.x(year) + wide / 8
        top = axes.y(deaths[year])
        outline = f"M{left:.1f} {axes.bottom}V{top:.1f}H{left + wide:.1f}V{axes.bottom}"
        content.append(part("path", "", d=outline, fill="none", stroke="currentColor"))
    content.append(
        part("text", "", "outlined: the deaths", x=axes.right, y="14", text_anchor="end")
    )
    return picture(WIDTH, HEIGHT, "".join(content))


def who_gets_the_weight(
    losses: np.ndarray,
    time: np.ndarray,
    event: np.ndarray,
    old: np.ndarray,
    *,
    step: int = 0,
    trained: bool = False,
) -> Explorable:
    """Losses of all deaths and who has weight, with alpha to move and training to switch on.

    Parameters
    ----------
    losses : array of shape (alphas, n)
        Of :func:`losses_by_alpha`.
    time : array of shape (n,)
        In years.
    event, old : bool arrays of shape (n,)
        Who died, and who is over 65.
    step : int
        Which of ``ALPHAS`` is shown at first.
    trained : bool
        Whether the model trained at this alpha is shown at first, or the Cox model.

    Returns
    -------
    Explorable
    """
    losses = np.round(losses, 2)
    years = np.round(time[event], 2)
    old_deaths = old[event]
    n = len(time)
    when = np.log([(time >= t).sum() for t in time[event]])
    early = years <= np.quantile(years, 0.1)
    alpha = ALPHAS[step]
    shown = losses[step if trained else COX]
    now = State(shown, alpha)
    against_cox = State(losses[COX], ALPHAS[0])
    of_old = against_cox.q[old].sum()
    guard(of_old < 0.5 * old_deaths.mean(), "the oldest do not get the weight")
    guard(against_cox.q[event][early].sum() < 0.5, "nor do those who died first")
    axes = cloud(years, losses[:, event])
    figure = "weights"
    radios = "".join(
        f'<div class="explore-check"><input type="radio" name="explore-{figure}-guess"'
        f' id="explore-{figure}-guess{i}" data-in="guess{i}">'
        f'<label for="explore-{figure}-guess{i}">{text}</label></div>'
        for i, text in enumerate(GUESSES)
    )
    slider = range_input(figure, "alpha", "share <i>α</i>", 0, COX, 1, step, number(alpha, 2))
    inputs = [
        "<fieldset><legend>To whom does the adversary give the weight at <i>α</i> = 0.1?</legend>"
        f"{radios}</fieldset>",
        f'<div class="explore-after">{slider}',
        checkbox(figure, "trained", "train the model against him at this <i>α</i>", trained),
        "</div>",
    ]
    q_early = now.q[event][early].sum() / now.q[event].sum()
    readout = (
        f"{output('feedback', '')}"
        f'<span class="explore-after">A step is worth '
        f"{output('worth', number(n / now.square, 0))} of {n} patients; "
        f"{output('chosen', str(int((now.q > 0).sum())))} have weight. Patients over 65 get "
        f"{output('old', number(100 * now.q[old].sum(), 0))} % of it "
        f"(of the deaths {number(100 * old_deaths.mean(), 0)} % are theirs), the earliest tenth "
        f"of the deaths {output('early', number(100 * q_early, 0))} % of the deaths’ weight.</span>"
    )
    return element(
        "weights",
        figure,
        title="Who gets the weight, by alpha, before and after training",
        alt="Left, a point for each death: loss against time, coloured by age, large where the "
        "patient has weight, with the curve of the logarithm of the risk set's size. Right, the "
        "weight by year of death and age. As alpha falls and the model is trained, the cloud "
        "collapses onto the curve and the weight moves to the first deaths.",
        pictures=[
            draw_cloud(axes, years, shown[event], old_deaths, when, now),
            draw_years(bins(years), years, now.q[event], old_deaths),
        ],
        inputs=inputs,
        readout=readout,
        data={
            "alphas": ALPHAS,
            "losses": [packed(row[event]) for row in losses],
            "years": years.tolist(),
            "old": "".join(map(str, old_deaths.astype(int))),
            "early": "".join(map(str, early.astype(int))),
            "censored": int((~event).sum()),
            "censoredOld": int((~event & old).sum()),
            "cloud": axes.data(),
            "bins": bins(years).data(),
            "feedback": [
                f"No: patients over 65 get {100 * of_old:.0f} % of the weight, though "
                f"{100 * old_deaths.mean():.0f} % of the deaths are theirs. ",
                f"Yes: {100 * (1 - of_old):.0f} % of the weight is on patients of 65 or younger, "
                "whom the model did not expect to die. ",
                "Only in part: the earliest tenth of the deaths gets "
                f"{100 * against_cox.q[event][early].sum():.0f} % of the weight. ",
            ],
        },
        prompt="Guess first. Then move α, and train the model against the adversary.",
    )
