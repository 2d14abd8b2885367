"""Cox regression of ours beside scikit-survival's on the data sets of SurvSet.

``survset_check.py [NAME ...]``: all data sets without features that vary in time, with at least
80 events and at least one event for each encoded feature, or those named; machines, marriages and
both eyes of a patient too, since only the optimum is asked for. Features are imputed by medians and
scaled. Both minimise the same loss, with Breslow's ties and no penalty: ours until certified,
scikit-survival's by Newton steps until its loss changes by 1e-12 of itself.

Prints for each data set the patients, events and features, the largest difference of a coefficient
relative to the largest coefficient, our gap (a bound for what the mean loss could still fall) and
processor seconds of both. "not equal" marks differences above 1e-5, "not certified" gaps above
1e-6, "separated" data that have no optimum; scikit-survival's own complaint stands where it ends
with one. Ends with status 1 if a data set is not equal or not certified without such a reason.
"""

import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

from drocox import risk_sets
from drocox.beyond import survset
from drocox.solver import minimise

EQUAL = 1e-5  # hdfail, 4e-6, has the same loss to 16 digits: makes of disks are nearly collinear
CERTIFIED = 1e-6


@dataclass
class Comparison:
    """Both fits on one data set."""

    size: tuple[int, int, int]  # patients, events, features
    gap: float
    separated: bool
    difference: float  # NaN where scikit-survival has no answer
    seconds: float
    seconds_theirs: float
    complaint: str  # of scikit-survival

    @property
    def verdict(self) -> str:
        """Describe what is wrong, if anything."""
        words = []
        if self.separated:
            words.append("separated")
        elif not self.gap <= CERTIFIED:
            words.append("not certified")
        if self.difference > EQUAL and not self.separated:
            words.append("not equal")
        if self.complaint:
            words.append(f"scikit-survival: {self.complaint}")
        return "; ".join(words)

    @property
    def fails(self) -> bool:
        """Whether something is wrong that is neither in the data nor scikit-survival's."""
        if self.separated:
            return False
        return self.gap > CERTIFIED or (self.difference > EQUAL and not self.complaint)


def worth_checking(name: str) -> bool:
    """Whether a data set has enough events, and features that do not vary in time."""
    row = survset.flow().loc[name]
    if row["step"] == "varying" or row["events"] < survset.LEAST_EVENTS:
        return False
    return survset.load(name).X.shape[1] <= row["events"]


def compare(name: str) -> Comparison:
    """Fit both to one data set."""
    data = survset.load(name)
    imputed = SimpleImputer(strategy="median").fit_transform(data.X)
    X = StandardScaler().fit_transform(imputed)
    begin = time.thread_time()
    ours = minimise(X, risk_sets(data.time, data.event), 1)
    between = time.thread_time()
    theirs = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-12, n_iter=200)
    complaint = ""
    difference = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            theirs.fit(X, Surv.from_arrays(data.event, data.time))
            size = max(np.abs(ours.coef).max(), 1e-300)
            difference = float(np.abs(theirs.coef_ - ours.coef).max() / size)
        except (ValueError, np.linalg.LinAlgError) as error:
            complaint = str(error)
    end = time.thread_time()
    if caught:
        complaint = str(caught[0].message)
    return Comparison(
        size=(len(data), int(data.event.sum()), X.shape[1]),
        gap=ours.gap,
        separated=ours.separated,
        difference=difference,
        seconds=between - begin,
        seconds_theirs=end - between,
        complaint=complaint[:60],
    )


def main() -> None:
    """Compare all data sets and print a table."""
    warnings.simplefilter("ignore")  # the verdict says it
    names = sys.argv[1:] or [name for name in survset.NAMES if worth_checking(name)]
    print(
        f"{'':<17} {'n':>6} {'events':>6} {'p':>4} {'diff':>8} {'gap':>8} {'s':>8} {'s sksurv':>8}"
    )
    failures = 0
    equal = 0
    for name in names:
        found = compare(name)
        n, events, p = found.size
        times = f"{found.seconds:8.4f} {found.seconds_theirs:8.3f}"
        figures = f"{found.difference:8.1e} {found.gap:8.1e} {times}"
        sizes = f"{n:>6} {events:>6} {p:>4}"
        print(f"{name:<17} {sizes} {figures} {found.verdict}", flush=True)
        failures += found.fails
        equal += found.difference <= EQUAL
    print(f"{len(names)} data sets, {equal} equal, {failures} that fail")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
