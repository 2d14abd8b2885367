"""Data sets that no earlier study of the book had used, from other packages than SurvSet.

METABRIC comes with ``survivors``, ACTG 175 with ``lifelines``. As for :mod:`drocox.beyond.survset`,
nothing of the data is stored here: files are read from the installed package and checked by hash,
and ``fresh.toml`` says of each who is followed, which columns are attributes, and which are left
out because they lie after the start, know the outcome, name a place or say something twice. The
encoding is that of :mod:`drocox.beyond.survset`.
"""

import tomllib
from pathlib import Path

import pandas as pd

from drocox import _checks
from drocox.beyond import survset
from drocox.beyond.survset import DataSet
from drocox.paper.datasets import installed_file

TABLE = tomllib.loads(Path(__file__).with_name("fresh.toml").read_text("utf-8"))
NAMES = sorted(TABLE)


def _path(name: str) -> Path:
    """The file of a data set inside the installed package, checked by hash."""
    facts = TABLE[name]
    return installed_file(facts["file"], facts["package"], facts["sha256"], "beyond")


def _table(name: str) -> pd.DataFrame:
    """All rows with an outcome and all columns; codes as text."""
    facts = TABLE[name]
    texts = [*facts["factors"], facts["event"], facts["id"]]
    table = pd.read_csv(
        _path(name),
        sep=facts["separator"],
        skiprows=facts["rows"],
        dtype=dict.fromkeys(texts, str),
        float_precision="round_trip",
    )
    return table[table[[facts["time"], facts["event"]]].notna().all(axis=1)].reset_index(drop=True)


def _covariates(name: str, table: pd.DataFrame, share_of_events: float) -> pd.DataFrame:
    """Covariates that are used, before encoding: codes as text, missing values NaN."""
    facts = TABLE[name]
    outcome = {facts["id"], facts["time"], facts["event"]}
    used = table[[column for column in table if column not in outcome.union(facts["drop"])]].copy()
    for column in facts["factors"]:
        levels = used[column]
        numbers = pd.to_numeric(levels.dropna(), errors="coerce").notna()
        if numbers.any() and not numbers.all():  # 3 beside 4ER+: names, not amounts
            levels = "code " + levels
        used[column] = survset.pooled(levels, share_of_events)
    return survset.informative(used)


def load(name: str) -> DataSet:
    """Load a data set by name, offline, in the order of its file.

    It is only encoded: imputation and scaling follow the split into training and test patients.
    """
    _checks.one_of(name, "data set", NAMES)
    facts = TABLE[name]
    table = _table(name)
    event = (table[facts["event"]] == facts["happened"]).to_numpy()
    labels = {one: table[facts[one]] for one in survset.ATTRIBUTES if one in facts}
    outcomes = table[facts["time"]].to_numpy(float), event
    return survset.data_set(name, facts, outcomes, labels, _covariates(name, table, event.mean()))
