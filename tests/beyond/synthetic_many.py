"""Rows as the study on many data sets would have them, drawn at random with known effects."""

import numpy as np
import pandas as pd

from drocox.beyond.learning import COX, SETTINGS
from drocox.beyond.many import REGISTERED

EFFECTS = {"c_diff": 0.1, "joint_closing": 0.6, "worst_own_diff": 0.4}


def study(effects=EFFECTS, tau: float = 0.1, seed: int = 0) -> pd.DataFrame:
    """Rows of the study; every model but Cox has the same effects on average."""
    rng = np.random.default_rng(seed)
    out = []
    for name, facts in (REGISTERED["included"] | REGISTERED["beside"]).items():
        attributes = facts["attributes"] or [""]
        primary = set(attributes) & {"sex", "age"}
        inside_c = rng.uniform(60, 80)
        cox_ibs = rng.uniform(0.1, 0.2)
        for setting in SETTINGS:
            plain = setting == COX
            row = {
                "study": "many",
                "dataset": name,
                "method": setting.method,
                "alpha": 0.3 if np.isnan(setting.alpha) else setting.alpha,
                "rule": setting.rule or np.nan,
                "penalty": setting.penalty,
                **{key: facts[key] for key in ("patients", "events", "features")},
                "c": inside_c,
                "inside_c": inside_c,
                "ibs": cox_ibs + (not plain) * rng.normal(0.001, 0.001),
                "slope": rng.uniform(0.8, 1.5),
                "certificate": 0.0,
                "inside_gap": rng.uniform(1, 6) if primary else np.nan,
            }
            columns = {**effects, "worst_dro_diff": effects["worst_own_diff"], "joint_guard": 2.0}
            for column, effect in columns.items():
                se = 0.0 if plain else rng.uniform(0.1, 0.8)
                true = 0.0 if plain else rng.normal(effect, tau)
                row[column] = rng.normal(true, se)
                row[f"{column}_se"] = se
                if column.startswith("joint") and not primary:
                    row[column] = row[f"{column}_se"] = np.nan
            for attribute in attributes:
                own = {"attribute": attribute}
                if attribute:
                    product = rng.normal(9, 2)
                    own |= {"product_cox": product, "product": 0.8 * product}
                    own |= {"closing": row["joint_closing"], "closing_se": row["joint_closing_se"]}
                    own |= {"guard": 2.0, "guard_se": 0.0 if plain else 0.5, "gap": 3.0}
                    if not primary:
                        own |= {"closing": 0.1, "closing_se": 0.3}
                out.append(row | own)
    return pd.DataFrame(out)


def controls(seed: int = 0, draws: int = 200) -> pd.DataFrame:
    """Rows of the controls: closings without a group, coverage of right errors."""
    rng = np.random.default_rng(seed)
    parts = []
    for name, facts in REGISTERED["included"].items():
        if set(facts["attributes"]) & {"sex", "age"}:
            se = rng.uniform(0.1, 0.8)
            part = pd.DataFrame({"draw": np.arange(draws), "joint_closing_se": se})
            part["joint_closing"] = rng.normal(0, se, draws)
            parts.append(part.assign(kind="permuted", dataset=name))
    for design in ("small", "large"):
        part = pd.DataFrame({"draw": np.arange(draws)})
        for column in EFFECTS:
            part[column] = rng.normal(0.3, 0.5, draws)
            part[f"{column}_se"] = 0.5
        parts.append(part.assign(kind="coverage", dataset=design))
    return pd.concat(parts, ignore_index=True)
