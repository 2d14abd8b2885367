"""The command ``drocox audit``: somebody's file, with or without scores in it, becomes one page.

Arguments are checked before pandas and torch are imported, so a usage error comes at once.
"""

import argparse
import shlex
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from drocox.auditing import columns, files
from drocox.terminal import fill

if TYPE_CHECKING:
    from drocox.auditing.audit import Audit
    from drocox.data import SurvivalData

PREDICTIONS = ("score", "survival", "risk")  # arguments that name a column, one at a time
ADVICE = {  # of notes, and the same in terms of the command line
    "pass survival=1 - risk": "name the column with --risk",
    "pass survival=1 - scores, times=…": "name the column with --risk, and --horizon",
    "pass survival=…, times=…": "name the column with --survival, and --horizon",
    "pass np.log(scores), or survival=…, times=…": "write their logarithms into the column",
    "pass log-hazards, or survival=…, times=…": "their ranking is judged",
    "pass -scores": "change the signs in the column",
}
ADVICE_ON_RISKS = {
    "These look like risks, not survival: pass survival=1 - risk": (
        "These look like survival: name the column with --survival"
    )
}
ADVICE_TO_FITTED = {  # of models that are fitted here, whose scores are log-hazards
    "They are on another scale, or far too extreme: pass log-hazards, or survival=…, times=…": (
        "They are far too extreme"
    ),
    "Calibration needs log-hazards, or survival=: it is not shown": "Calibration is not shown",
}


def add_audit(command: Callable) -> None:
    """Add ``drocox audit`` with its arguments.

    Parameters
    ----------
    command : callable
        Adds a command to a parser, given its name, what runs it, and an example.
    """
    example = "drocox audit patients.csv --time days --event died --groups 'sex,age>65'"
    add = command("audit", _audit, example).add_argument
    add("file", help="CSV, Excel or Parquet: a line of names, then one line for each patient")
    add("--time", required=True, metavar="COLUMN", help="observed times")
    add(
        "--event",
        required=True,
        metavar="COLUMN",
        help="1 = event, 0 = censored; or COLUMN=VALUE, as in status=dead",
    )
    add(
        "--groups",
        required=True,
        type=_group_names,
        metavar="A,B",
        help="columns, or cuts like age>65 or age:50,65,75",
    )
    add(
        "--score",
        metavar="COLUMN",
        help="held-out scores to be judged (default: Cox and DRO-COX, fitted here by "
        "cross-fitting)",
    )
    add(
        "--survival",
        metavar="COLUMN",
        help="probabilities to survive until --horizon, instead of scores",
    )
    add(
        "--risk",
        metavar="COLUMN",
        help="risks of an event up to --horizon (1 less survival), instead of scores",
    )
    add("--horizon", type=float, metavar="TIME", help="time up to which risks are judged")
    add("--fold", metavar="COLUMN", help="which model scored each patient: others are not compared")
    add(
        "--smallest",
        type=int,
        default=0,
        metavar="N",
        help="hide groups with fewer patients or events, as in --smallest 10",
    )
    add(
        "--familywise",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="intervals of differences that hold for all attributes at once (the default)",
    )
    add("--drop", type=_names, default=[], metavar="A,B", help="no features, such as identifiers")
    add("--out", type=Path, metavar="PAGE", help="the page to write (default: FILE-audit.html)")


def _names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _group_names(text: str) -> list[str]:
    """Names with commas between them, where numbers belong to the bins before them."""
    names: list[str] = []
    for name in _names(text):
        if names and ":" in names[-1] and columns.NUMBER.fullmatch(name):
            names[-1] += f",{name}"
        else:
            names.append(name)
    return names


def _audit(args) -> None:
    """Judge how well a model serves groups of patients: one HTML page."""
    try:
        source = files.check_source(args.file)
        out = args.out or Path(f"{source.stem}-audit.html")
        files.check_target(out, source)
    except ValueError as error:
        args.usage(str(error))
    _check_predictions(args)
    df = files.read_table(source, _unneeded(args), "--drop")
    data, unusable = _patients(df, args, source.name)

    from drocox.auditing.page import page

    warned: list[str] = []  # of models that are fitted here, and of events
    if _predicted(args):
        audits = {_predicted(args): _audit_given(df, data, args)}
    else:
        audits, warned = _audit_fitted(data, args)
    if warning := columns.several_censored(df, args.event):
        warned.append(warning)
    facts = {
        "Command": shlex.join(["drocox", *args.words]),
        "Rows": f"{len(df):,} read, all of them used",
        "Event": f"{args.event}, time {args.time}",
    }
    out.write_text(page(audits, facts, warned), encoding="utf-8")

    paragraphs = [f"{name}\n{result}" for name, result in audits.items()]
    paragraphs += [fill(f"Warning. {line}") for line in warned]
    if unusable:
        words = "Badly served groups were not searched for in: " + ", ".join(unusable)
        paragraphs.append(fill(words))
    text = "".join(f"{paragraph}\n\n" for paragraph in paragraphs)
    print("".join(c if c.isprintable() or c == "\n" else "?" for c in text) + f"wrote {out}")


def _check_predictions(args) -> None:
    """Refuse arguments about predictions that do not go together."""
    given = [f"--{name}" for name in PREDICTIONS if getattr(args, name)]
    if len(given) > 1:
        args.usage(f"{' and '.join(given)} are both given; name one column of predictions")
    if args.horizon is None and (args.survival or args.risk):
        args.usage(f"{given[0]} needs --horizon, the time of these probabilities")
    if args.fold and not given:
        args.usage("--fold goes with --score, --survival or --risk")


def _predicted(args) -> str:
    """The column with what was predicted; empty where models are to be fitted."""
    return args.score or args.survival or args.risk or ""


def _unneeded(args) -> list[str]:
    """Columns that are dropped and play no other part."""
    used = [args.time, args.event, _predicted(args), args.fold or ""]
    used += args.groups  # a group starts with its column, as in age>65
    return [name for name in args.drop if not any(words.startswith(name) for words in used)]


def _patients(df, args, name: str) -> tuple["SurvivalData", list[str]]:
    """The table as data, and the columns that are not searched for badly served groups."""
    from drocox.data import SurvivalData, column

    event, events = columns.event_column(df, args.event)
    columns.refuse_dates(column(df, args.time, "--time"), args.time)
    if args.time == event:
        raise ValueError(f"--time and --event are both {args.time!r}; name two columns")
    outcomes = (args.time, event)
    groups = {}
    for group, title in zip(args.groups, columns.attribute_titles(df, args.groups), strict=True):
        groups[title] = columns.group_column(df, group, outcomes)
        if group in df.columns and df[group].nunique() > 2:  # codes are no measurement
            df = df.assign(**{group: groups[title]})
    given = (_predicted(args), args.fold)
    features = [c for c in df.columns if c not in (*outcomes, *args.drop, *given)]
    unusable: list[str] = []
    if _predicted(args):  # no model is fitted here: an unusable column does no harm
        features, unusable = columns.searchable(df, features)
        features = features or [_predicted(args)]
    try:
        data = SurvivalData.from_frame(
            df.assign(**{event: events}),
            time=args.time,
            event=event,
            groups=groups,
            features=features,
            name=name,
        )
    except (TypeError, ValueError) as error:  # the advice in terms of the command line
        raise ValueError(str(error).replace("features=[...]", "--drop COLUMN")) from error
    return data, unusable


def _audit_options(args) -> dict:
    """Options of an audit, whatever the model."""
    return {"horizon": args.horizon, "smallest": args.smallest, "familywise": args.familywise}


def _audit_given(df, data: "SurvivalData", args) -> "Audit":
    """The audit of scores, survival probabilities or risks that are a column of the file."""
    from drocox.auditing.audit import audit
    from drocox.data import column

    outcomes = (args.time, columns.event_column(df, args.event)[0])
    predicted = {}
    if args.fold:
        predicted["folds"] = column(df, args.fold, "--fold", outcomes).to_numpy()
    if args.score:
        predicted["scores"] = columns.score_column(df, args.score, outcomes, "--score")
    if args.survival:
        survival = columns.probability_column(df, args.survival, outcomes, "--survival")
        predicted |= {"survival": survival, "times": args.horizon}
    if args.risk:
        risk = columns.probability_column(df, args.risk, outcomes, "--risk")
        predicted |= {"survival": 1 - risk, "times": args.horizon}
    judged = audit(data, **predicted, **_audit_options(args))
    if args.risk:
        return _advised(judged, ADVICE_ON_RISKS)
    return _advised(judged, ADVICE)


def _advised(judged: "Audit", advice: dict[str, str]) -> "Audit":
    """The audit with notes that say what to change in the command or in the file."""
    notes = []
    for note in judged.notes:
        for in_python, here in advice.items():
            note = note.replace(in_python, here)
        notes.append(note)
    return replace(judged, notes=tuple(notes))


def _audit_fitted(data: "SurvivalData", args) -> tuple[dict[str, "Audit"], list[str]]:
    """Audits of Cox and DRO-COX, cross-fitted to the file, and warnings of their training."""
    from drocox.auditing.audit import audit
    from drocox.auditing.predictions import check_data
    from drocox.estimator import DROCox
    from drocox.tuning import cross_fit

    check_data(data)  # before models are fitted
    models = {"Cox": DROCox(alpha=1.0), f"DRO-COX, α = {DROCox().alpha:g}": DROCox()}
    audits = {}
    warned = []
    for name, model in models.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            held_out = cross_fit(data, model)
        messages = dict.fromkeys(str(warning.message) for warning in caught)  # each once
        warned += [f"{name}: {message}." for message in messages]
        judged = audit(data, **held_out, **_audit_options(args))
        audits[name] = _advised(judged, ADVICE_TO_FITTED)
    return audits, warned
