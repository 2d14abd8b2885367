"""Controls of the study on many data sets: false positives, and coverage of its intervals.

**Permuted labels.** On each data set everything is learned as in the study. Only for evaluation,
the patients' labels of sex and of age are then permuted 200 times, in the same way for all splits.
The groups then mean nothing, so every closing that is found is an error.

**Coverage.** Patients are simulated 200 times from one distribution. The study's estimate varies
from draw to draw; its standard error is right if the interval of 1.96 errors around it contains the
mean over draws 95 times in 100. One linear score does not serve the simulated groups equally well,
so DRO-COX and Cox differ.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from drocox.beyond import cohorts, learning, many
from drocox.data import SurvivalData
from drocox.evaluation import scaled_features
from drocox.heldout.intervals import jackknife

PERMUTATIONS = 200
DRAWS = 200  # of invented patients, by design
PER_JOB = 25
DESIGNS = {  # patients, rate of censoring
    "small": (400, 1.0),
    "large": (1200, 0.5),
}


def invented(patients: int, censoring: float, seed: int) -> cohorts.Patients:
    r"""Simulated patients whose hazard depends on the features in a way that differs by sex.

    With eight standard normal features, of which the first is age, and :math:`s = \pm 1` by sex,

    .. math:: \log h = 0.5\, x_1 + 0.5\, x_2 + 0.4\, x_3 + 0.4\, s\, x_3 + 0.3\, s\, x_4 .

    ``censoring`` is the hazard of censoring; the baseline hazard of events is 1.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(patients, 8))
    women = rng.random(patients) < 0.5
    sign = np.where(women, 1.0, -1.0)
    log_hazard = 0.5 * x[:, 0] + 0.5 * x[:, 1] + 0.4 * (1 + sign) * x[:, 2] + 0.3 * sign * x[:, 3]
    event_time = rng.exponential(size=patients) / np.exp(log_hazard)
    censored = rng.exponential(size=patients) / censoring
    columns = ["age", *(f"x{j}" for j in range(2, 9))]
    covariates = pd.DataFrame(x, columns=columns).assign(sex=women.astype(float))
    data = SurvivalData(
        "invented", covariates, np.minimum(event_time, censored), event_time <= censored
    )
    attributes = {"sex": women.astype(float), "age": x[:, 0]}
    return cohorts.Patients(data, covariates, attributes).in_order()


def pair_points(scores: np.ndarray, time: np.ndarray, event: np.ndarray) -> tuple:
    """Points and number of each pair of patients by Algorithm B.1: two symmetric (n, n) arrays.

    Points are 0, 1/2 or 1, so that sums over patients are exact in float32.
    """
    higher = scores[:, None] > scores
    equal = scores[:, None] == scores
    longer = time[:, None] < time
    same_time = time[:, None] == time
    # the first of a pair has the event, and is compared with one observed longer, ...
    later = event[:, None] & longer
    points = later * (higher + 0.5 * equal)
    # ... or with one censored at the same time
    censored = event[:, None] & ~event & same_time
    points += censored * np.where(higher, 1.0, 0.5)
    pairs = (later | censored).astype(np.float32)
    points = points + points.T
    pairs = pairs + pairs.T
    both = event[:, None] & event & same_time
    np.fill_diagonal(both, False)
    points += both * np.where(equal, 1.0, 0.5)
    return points.astype(np.float32), pairs + both.astype(np.float32)


def permuted_gaps(points: np.ndarray, pairs: np.ndarray, codes: np.ndarray) -> tuple:
    """Gaps in points of k labellings of the same patients, the columns of ``codes``.

    Equals :func:`drocox.beyond.learning.gap_of`, with one matrix product for all labellings. Also
    returned, of shape (n, k): the change of each gap when a patient is left out.
    """
    all_points = points.sum(axis=1, dtype=float)[:, None]
    all_pairs = pairs.sum(axis=1, dtype=float)[:, None]
    gaps = np.zeros(codes.shape[1])
    moves = np.zeros(codes.shape)
    for code, sign in ((1, 100.0), (0, -100.0)):
        members = (codes == code).astype(np.float32)
        lost = members * all_points + points @ members
        lost_pairs = members * all_pairs + pairs @ members
        total = (members * all_points).sum(axis=0)
        total_pairs = (members * all_pairs).sum(axis=0)
        gaps += sign * total / total_pairs
        moves += sign * ((total - lost) / (total_pairs - lost_pairs) - total / total_pairs)
    return gaps, moves


def permuted(
    patients: cohorts.Patients, orders: np.ndarray, splits: Sequence[int] = range(many.SPLITS)
) -> pd.DataFrame:
    """Closings with permuted labels: a row with ``joint_closing`` and its error for each draw.

    Column d of ``orders`` says whose label each patient gets in draw d; ``splits`` are seeds.
    """
    primary = [name for name in cohorts.PRIMARY if name in patients.attributes]
    n, draws = orders.shape
    values = []
    variances = []
    for split in splits:
        value = np.zeros(draws)
        moves = np.zeros((n, draws))
        for rows_a, rows_b in cohorts.halves(patients.data.event, split):
            a = patients.subset(rows_a)
            b = patients.subset(rows_b)
            learned = learning.learn(a, (), split)
            X_out = scaled_features(a.data, b.data)[1]
            codes = cohorts.codes_of(patients, learned.cuts)
            for setting, side in ((learning.COX, 1.0), (learning.DRO, -1.0)):
                scores = learning.scores_of(X_out, learned.models[setting].coef)
                points, pairs = pair_points(scores, b.data.time, b.data.event)
                for name in primary:
                    gaps, moved = permuted_gaps(points, pairs, codes[name][orders][rows_b])
                    weight = side * learned.signs[name] / len(primary) / 2  # of two halves
                    value += weight * gaps
                    moves[rows_b] += weight * moved
        values.append(value)
        variances.append(np.diag(jackknife(moves)[0]))
    return pd.DataFrame(
        {
            "draw": np.arange(draws),
            "joint_closing": np.mean(values, axis=0),
            "joint_closing_se": np.sqrt(np.mean(variances, axis=0)),
        }
    )


def jobs() -> list[dict]:
    """Permutations of each registered data set with an attribute, then the simulated patients."""
    names = [job["name"] for job in many.jobs() if job["name"] in many.REGISTERED["included"]]
    labelled = [
        name
        for name in names
        if set(cohorts.PRIMARY) & set(many.REGISTERED["included"][name]["attributes"])
    ]
    out = [{"kind": "permuted", "name": name, "part": 0} for name in labelled]
    for design in DESIGNS:
        parts = range(DRAWS // PER_JOB)
        out += [{"kind": "coverage", "name": design, "part": part} for part in parts]
    return out


def rows(kind: str, name: str, part: int) -> pd.DataFrame:
    """One control: a row for each draw, comparing DRO-COX (sharp, alpha 0.5) with Cox.

    ``name`` is a data set ("permuted") or a design of simulated patients ("coverage"), whose draws
    are divided into numbered parts.
    """
    if kind == "permuted":
        patients = cohorts.load(name)
        n = len(patients)
        draws = range(PERMUTATIONS)
        orders = [np.random.default_rng(draw).permutation(n) for draw in draws]
        out = permuted(patients, np.column_stack(orders))
    else:
        drawn = []
        for draw in range(part * PER_JOB, (part + 1) * PER_JOB):
            patients = invented(*DESIGNS[name], seed=draw)
            row = many.study(patients, (learning.COX, learning.DRO)).iloc[-1]
            columns = ["c_diff", "joint_closing", "worst_own_diff"]
            both = [*columns, *(f"{column}_se" for column in columns)]
            drawn.append({"draw": draw} | row[both].to_dict())
        out = pd.DataFrame(drawn)
    out.insert(0, "kind", kind)
    out.insert(1, "dataset", name)
    return out.assign(moved=np.nan)  # DRO-COX's last digits depend on the platform
