r"""How much alpha protects: certified optima of four constructions at equal protected shares.

The *protected share* of an adversary is the smallest :math:`\pi` such that every group of at least
that share is among the distributions it may choose. For a chi-square ball with dual constant
:math:`c` it is :math:`1 / c^2`, whichever rule gave :math:`c`; for CVaR it is alpha.
"""

from typing import Any

import numpy as np
import pandas as pd

from drocox.dro import dual_constant
from drocox.paper.prepare import prepare
from drocox.paper.protocol import ALPHAS, ATTRIBUTES, REPEATS
from drocox.solver import minimise

SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.85)
CVAR_SHARES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)  # few small ones: they are dear
TIMES = {"paper": 2.0, "definition": 1.0}  # radius of the ball over (1 / alpha - 1)^2


def protected_share(alpha: float, rule: str) -> float:
    """The smallest share of a group that is surely protected: 1 / c², or alpha for "cvar".

    >>> round(protected_share(0.1, "paper"), 4), protected_share(0.1, "cvar")
    (0.0061, 0.1)
    """
    return alpha if rule == "cvar" else dual_constant(alpha, rule=rule) ** -2.0


def nominal_alpha(share: float, rule: str) -> float:
    r"""The alpha at which a rule protects a share, the inverse of :func:`protected_share`.

    :math:`1 / (1 + \sqrt{(1/\pi - 1) / k})` with :math:`k` = 2 for "paper" and 1 for "definition";
    the share itself for the other two.
    """
    if rule not in TIMES:
        return share
    return 1 / (1 + np.sqrt((1 / share - 1) / TIMES[rule]))


def jobs() -> list[dict]:
    """One job for each data set and repeat of the corrected protocol."""
    return [{"dataset": name, "repeat": repeat} for name in ATTRIBUTES for repeat in REPEATS]


def rows(dataset: str, repeat: int) -> pd.DataFrame:
    """Certified optima on one split: at a grid of shares, and at the paper's six alphas.

    Each row is an adversary (``kind``: "chi2", "cvar", or "cox" without one) and a ``share``, with
    the norm of the coefficients, the spread of the test scores, their correlation with those of
    Cox, the test c-index, ``f_a_...`` and ``ci_signed_...`` for each attribute, and whether the
    optimum is certified to 1e-6. Rules that give the same constant share one row, because they are
    one model.
    """
    ready = prepare("corrected", dataset, repeat)
    named = [protected_share(a, rule) for a in ALPHAS for rule in TIMES]
    wanted = [("cox", 1.0)]
    wanted += [("chi2", share) for share in sorted([*SHARES, *named])]
    wanted += [("cvar", share) for share in CVAR_SHARES]
    out = []
    for kind, share in wanted:
        is_cox = kind == "cvar" and share >= ready.train.event.mean()  # the censored have loss 0
        rule = "cvar" if kind == "cvar" and not is_cox else "sharp"
        found = minimise(ready.X[0], ready.risk, 1.0 if is_cox else share, rule=rule)
        on_train = ready.X[0] @ found.coef
        on_test = ready.X[2] @ found.coef
        if kind == "cox":
            of_cox = on_test
        spread = on_test.std()
        fair = ready.judges[1].fairness(on_train, on_test)
        by_attribute: dict[str, Any] = {}
        for name in ATTRIBUTES[dataset]:
            parts = (fair["f_i_centred"], fair[f"f_g_centred_{name}"], fair["f_cap_centred"])
            by_attribute[f"f_a_{name}"] = np.mean(parts)
            by_attribute[f"ci_signed_{name}"] = fair[f"ci_signed_{name}"]
        out.append(
            {
                "repeat": repeat,
                "kind": kind,
                "share": share,
                "norm": np.linalg.norm(found.coef),
                "spread": spread,
                "like_cox": np.corrcoef(of_cox, on_test)[0, 1] if spread > 0 else np.nan,
                "c_index": fair["c_index"],
                **by_attribute,
                "gap_small": int(found.gap <= 1e-6),
                "events": ready.train.event.mean(),
                # digits of an optimum at a kink depend on the platform
                "moved": np.nan if kind == "cvar" and share < ready.train.event.mean() else 0.0,
            }
        )
    return pd.DataFrame(out)
