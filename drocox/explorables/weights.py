r"""Who gets the weight: every death's loss against its time, before and after training, by alpha.

The adversary's weights come from the losses by the dual with the paper's constant,

.. math:: q_i = \frac{[\ell_i - \eta^*]_+}{\sum_j [\ell_j - \eta^*]_+}, \qquad
   c^2 = 2 (1/\alpha - 1)^2 + 1 .

All numbers that the page shows are computed here, from unrounded losses, for each position of the
slider; losses with six digits place the dots.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

import drocox
from drocox.cox import RiskSets
from drocox.explorables.element import element, rounded
from drocox.paper.tables import Shown
from drocox.solver import minimise

# Trained models; the last is the ordinary Cox model.
ALPHAS = (0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.8, 1.0)
COX = len(ALPHAS) - 1


def losses_by_alpha(X: np.ndarray, risk: RiskSets) -> np.ndarray:
    """Cox losses of linear DRO-COX models, trained to the optimum for each of ``ALPHAS``.

    Shape ``(alphas, n)``; the last row is that of the ordinary Cox model.
    """
    rows = []
    for alpha in ALPHAS:
        theta = minimise(X, risk, alpha, rule="paper").coef
        rows.append(drocox.cox_losses(torch.tensor(X @ theta), risk).numpy())
    return np.array(rows)


def by_year(time: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum of weights in each year up to the last death; times are in years."""
    last = int(np.ceil(time.max()))
    return np.bincount(np.minimum(time.astype(int), last - 1), weights, minlength=last)


def state(
    losses: np.ndarray, alpha: float, time: np.ndarray, event: np.ndarray, old: np.ndarray
) -> dict:
    """The adversary's threshold and weights, and all numbers that the page shows about them.

    ``old`` is the percentage of all weight on patients over 65; ``early`` and ``bars`` are
    percentages of the deaths' weight: on the earliest tenth of the deaths, and by year and age.
    """
    tensor = torch.tensor(losses)
    constant = drocox.dual_constant(alpha, rule="paper")
    q = drocox.worst_case_weights(tensor, alpha, rule="paper").numpy()
    eta = drocox.optimal_eta(tensor, constant).item()
    early = event & (time <= np.quantile(time[event], 0.1))
    of_deaths = 100 * q[event] / q[event].sum()
    bars = [by_year(time[event], of_deaths * group[event]) for group in (old, ~old)]
    return {
        "eta": eta if np.isfinite(eta) else None,  # none where all weights are equal
        "worth": len(losses) / constant**2,
        "chosen": int((q > 0).sum()),
        "old": float(100 * q[old].sum()),
        "early": float(100 * q[early].sum() / q[event].sum()),
        "bars": rounded(bars),
    }


def who_gets_the_weight(
    losses: np.ndarray, time: np.ndarray, event: np.ndarray, old: np.ndarray, figure: Figure
) -> Shown:
    """Losses and weights of all deaths, with alpha to move and training to switch on.

    ``losses`` are those of :func:`losses_by_alpha`, times are in years, ``old`` marks age over 65;
    ``figure`` is shown where no script runs.
    """
    before = [state(losses[COX], alpha, time, event, old) for alpha in ALPHAS]
    after = [state(row, alpha, time, event, old) for row, alpha in zip(losses, ALPHAS, strict=True)]
    years = time[event]
    order = np.argsort(years, kind="stable")
    some = order[np.unique(np.linspace(0, len(order) - 1, 250).astype(int))]
    risk_sets = np.log([(time >= t).sum() for t in years[some]])
    of_deaths = by_year(years, np.full(len(years), 100 / len(years)))

    return element(
        "weights",
        "weights",
        title="Who gets the weight, by alpha, before and after training",
        alt="Left, a point for each death: loss against time, coloured by age, large where the "
        "patient has weight, with the curve of the logarithm of the risk set's size. Right, the "
        "weight by year of death and age. As alpha falls and the model is trained, the cloud "
        "collapses onto the curve and the weight moves to the first deaths.",
        figure=figure,
        data={
            "alphas": ALPHAS,
            "patients": len(time),
            "years": rounded(years, 4),
            "old": old[event].astype(int).tolist(),
            "losses": rounded(losses[:, event]),
            "curve": [rounded(years[some], 4), rounded(risk_sets, 4)],
            "deaths": rounded(of_deaths),
            "deathsOld": float(100 * old[event].mean()),
            "before": before,
            "after": after,
        },
    )
