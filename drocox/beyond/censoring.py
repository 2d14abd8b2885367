"""Planted minorities under censoring, a study: how much do the results depend on follow-up?

The patients of :mod:`drocox.beyond.groups`, 4,000 of them with a minority of 20 % and a weak
marker, once for each share of observed deaths, from all to 15 %. Features and dates of death of a
draw are the same throughout: only the follow-up ends earlier. Linear models with an adversary over
patients, at alpha = 0.2 (the minority's share) and 0.5.

A c-index depends on censoring itself, because it compares only the pairs that can be ordered. So
models are evaluated twice on fresh patients: once with the follow-up of the training patients, and
once with everybody followed until death (``..._followed``), which is the same yardstick for all.
"""

import numpy as np
import pandas as pd

from drocox.accuracy import concordance_index
from drocox.beyond.groups import (
    DESIGNS,
    STABLE,
    TEST_PATIENTS,
    censoring_rate,
    fits,
    minority_alone,
    planted,
    seed_of,
    weight_of,
)
from drocox.evaluation import scaled_features

MINORITY_SHARE = 0.2  # of the minority
COHORT = 4_000  # patients of a draw
HINT = 1.0  # standard deviations by which the marker is higher in the minority
SEEN = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.15)  # shares of patients whose death is seen
PLANTED_ALPHAS = (MINORITY_SHARE, 0.5)
REPEATED = 5  # draws of each setting


def jobs() -> list[dict]:
    """One job for each design, share of observed deaths and draw."""
    return [
        {"design": design, "seen": seen, "draw": draw}
        for design in DESIGNS
        for seen in SEEN
        for draw in range(1, REPEATED + 1)
    ]


def rows(design: str, seen: float, draw: int) -> pd.DataFrame:
    """All models on one draw of a planted minority, evaluated on fresh patients.

    ``seen`` is the expected share of observed deaths. Each row is a method and an alpha, with the
    c-indices within the minority and the majority and, for DRO-COX, the weight of the minority and
    of the first fifth of deaths.
    """
    seed = seed_of(design, MINORITY_SHARE, COHORT, HINT, draw)
    rate = censoring_rate(design, MINORITY_SHARE, seen)
    minority = np.arange(COHORT) < round(MINORITY_SHARE * COHORT)
    kinds = np.arange(2 * TEST_PATIENTS) < TEST_PATIENTS
    train = planted(design, minority, HINT, seed, rate)
    test = planted(design, kinds, HINT, [*seed, 1], rate)
    followed = planted(design, kinds, HINT, [*seed, 1], 0.0)
    X, Z = scaled_features(train, test)
    models = [*fits(train, X, PLANTED_ALPHAS), ("minority alone", 1.0, minority_alone(train, X))]
    table = []
    for method, alpha, coef in models:
        row = {"method": method, "alpha": alpha}
        if method == "DRO-COX":
            row |= weight_of(train, X @ coef, alpha)
        f = Z @ coef
        for kind, inside in (("minority", kinds), ("majority", ~kinds)):
            for end, part in (("", test), ("_followed", followed)):
                c = concordance_index(f[inside], part.time[inside], part.event[inside])
                row[f"c_{kind}{end}"] = c
        table.append(row)
    frame = pd.DataFrame(table).assign(
        design=design,
        seen=seen,
        draw=draw,
        rate=rate,
        events=int(train.event.sum()),
        minority_events=int(train.event[minority].sum()),
    )
    return frame.assign(moved=np.where(frame["method"].isin(STABLE), 0.0, np.nan))
