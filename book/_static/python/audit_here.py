"""What the page *audit a file here* asks of Python; its script runs this file in the page."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd

import drocox.auditing.audit
import drocox.auditing.page  # noqa: F401  imported while the page says that Python is starting
from drocox import cli
from drocox.auditing import files

MOST_LABELS = 6  # of a column that may hold the event


def columns(name):
    """The columns of a file, and what may be its event, as JSON; or the error."""
    try:
        df = files.read_table(files.check_source(name))
    except ValueError as error:
        return json.dumps({"error": str(error)})
    events = []
    for column in df:
        labels = [
            f"{v:g}" if isinstance(v, float) else str(v) for v in df[column].dropna().unique()
        ]
        is_indicator = set(labels) <= {"0", "1", "False", "True"}
        if is_indicator or len(labels) > MOST_LABELS:
            events.append(column)
        else:
            events += [f"{column}={label}" for label in sorted(labels)]
    return json.dumps({"rows": len(df), "columns": list(df), "events": events})


def report(name, arguments):
    """The page that ``drocox audit`` writes, and its name, as JSON; or the error that it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            status = cli.main(["audit", name, *arguments])
        except SystemExit as stop:  # a usage error
            status = stop.code
    if status:
        words = " ".join(said.getvalue().split())
        return json.dumps({"error": words.rpartition("error: ")[2].removeprefix("drocox: ")})
    page = Path(f"{Path(name).stem}-audit.html")
    return json.dumps({"name": page.name, "page": page.read_text(encoding="utf8")})


def example(name):
    """Write a file of 500 invented patients, with a score that ranks the women less well."""
    rng = np.random.default_rng(1)
    n = 500
    sex = rng.choice(["female", "male"], n)
    age = rng.integers(40, 85, n)
    stage = rng.integers(1, 5, n)
    hazard = 0.05 * (age - 60) + 0.5 * (stage - 2)
    time = rng.exponential(1500 * np.exp(-hazard))
    end = rng.uniform(300, 3000, n)
    score = hazard + rng.normal(0, np.where(sex == "female", 1.5, 0.3))
    days = np.ceil(np.minimum(time, end)).astype(int)
    died = (time <= end).astype(int)
    table = {"days": days, "died": died, "sex": sex, "age": age, "stage": stage, "score": score}
    pd.DataFrame(table).round(3).to_csv(name, index=False)
