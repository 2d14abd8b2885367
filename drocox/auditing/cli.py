"""The command ``drocox audit``: somebody's file, with or without scores in it, becomes one page.

Arguments are checked before pandas and torch are imported, so a usage error comes at once.
"""

import argparse
import shlex
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drocox.auditing import files
from drocox.terminal import fill, listed

if TYPE_CHECKING:
    from drocox.auditing.audit import Audit
    from drocox.data import SurvivalData

PREDICTIONS = {  # kinds of predictions, one at a time
    "score": "held-out scores to be judged; of two models: --score A --score B (default: a ridge "
    "Cox model of --features, fitted here by cross-fitting)",
    "survival": "probabilities of surviving until --horizon, instead of scores",
    "risk": "risks of an event up to --horizon (1 minus survival), instead of scores",
}
OPTIONS = ("horizon", "smallest", "familywise", "threshold", "features")  # for any model
MOST_COLUMNS = 6  # columns in a sentence
PENALTIES = (0.0001, 0.001, 0.01, 0.1, 1.0)  # of the ridge Cox model that is fitted here
MODEL = "ridge Cox"


def add_audit(command: Callable) -> None:
    """Add ``drocox audit`` with its arguments; ``command`` adds a command to a parser."""
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
        action="append",
        metavar="A,B",
        help="columns, or cuts like age>65 or age:50,65,75",
    )
    for kind, words in PREDICTIONS.items():
        add(f"--{kind}", action="append", metavar="COLUMN", help=words)
    add(
        "--later",
        action="store_true",
        help="higher scores mean later events, as with predicted times",
    )
    add("--unit", metavar="WORD", help="the unit of time, such as days, for the page")
    add("--horizon", type=float, metavar="TIME", help="time up to which risks are judged")
    add(
        "--threshold",
        type=float,
        metavar="RISK",
        help="judge decisions, too: patients with this risk or more up to --horizon are flagged, "
        "as in --risk p5 --horizon 5 --threshold 0.2",
    )
    add("--fold", metavar="COLUMN", help="which model scored each patient: others are not compared")
    add(
        "--missing",
        choices=["drop"],
        help="leave out patients without time, event or prediction, and say how many",
    )
    add(
        "--smallest",
        type=int,
        default=0,
        metavar="N",
        help="hide groups with fewer patients, events, or patients without an event: --smallest 10",
    )
    add(
        "--familywise",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="intervals of differences that hold for all attributes at once (the default)",
    )
    add(
        "--features",
        action="append",
        default=[],
        metavar="A,B",
        help="columns that a model fitted here may use: without a score the Cox model, else a "
        "model of each group's own, and the search for badly served groups",
    )
    add("--out", type=Path, metavar="PAGE", help="the page to write (default: FILE-audit.html)")


def _audit(args) -> None:
    """Judge how well models serve groups of patients: one HTML page."""
    try:
        source = files.check_source(args.file)
        out = args.out or Path(f"{source.stem}-audit.html")
        files.check_target(out, source)
    except ValueError as error:
        args.usage(str(error))
    args.kind, args.predicted = _predicted(args)
    from drocox.auditing import columns

    whole = files.read_table(source)
    args.event_column, args.event_value = columns.event_of(whole, args.event)
    args.groups = columns.names_in(args.groups, whole.columns)
    args.features = columns.names_in(args.features, whole.columns)
    df, rows = _complete(whole, args)
    data, facts = _patients(df, args, source.name)
    print(f"{source.name}: {len(data):,} patients, {data.event.sum():,} events", flush=True)

    warned: list[str] = []  # of models that are fitted here, and of events
    options = {name: getattr(args, name) for name in OPTIONS}
    options["folds"] = df[args.fold].to_numpy() if args.fold else None
    if args.kind:
        audits = _audit_given(df, data, args, options)
    else:
        audits, warned = _audit_fitted(data, options)
    if warning := columns.several_censored(df, args.event_column, args.event_value):
        warned.append(warning)

    from drocox.auditing.page import page

    facts = {
        "Command": shlex.join(["drocox", *args.words]),
        "Rows": rows,
        "Event": f"{args.event}, time {args.time}",
        **facts,
        **({"Unit": args.unit} if args.unit else {}),
    }
    out.write_text(page(audits, facts, warned), encoding="utf-8")

    paragraphs = [f"{name}\n{result}" for name, result in audits.items()]
    if len(audits) > 1:
        paragraphs = [str(audits)]
    paragraphs += [fill(f"Warning. {line}") for line in warned]
    notable = ("Times", "Missing values")
    said = [f"{name}: {facts[name]}." for name in notable if name in facts]
    if len(df) < len(whole):
        said.insert(0, f"Rows: {rows}.")
    paragraphs += ["\n".join(fill(line) for line in said)] if said else []
    text = "".join(f"\n{paragraph}\n" for paragraph in paragraphs)
    print("".join(c if c.isprintable() or c == "\n" else "?" for c in text))
    print(f"wrote {out}")


def _predicted(args) -> tuple[str, list[str]]:
    """The kind of predictions in the file and their columns, if there are any.

    Arguments that do not go together are refused.
    """
    given = [name for name in PREDICTIONS if getattr(args, name)]
    if len(given) > 1:
        both = " and ".join(f"--{name}" for name in given)
        args.usage(f"{both} are both given; name columns of one kind of predictions")
    kind = given[0] if given else ""
    if args.horizon is None and kind in ("survival", "risk"):
        args.usage(f"--{kind} needs --horizon, the time of these probabilities")
    if args.threshold is not None:
        if not 0 < args.threshold < 1:
            args.usage("--threshold must lie between 0 and 1, as in --threshold 0.2 for 20 %")
        if kind == "score":
            args.usage("--threshold needs risks; name them with --risk or --survival, not --score")
    if args.fold and not kind:
        args.usage("--fold goes with --score, --survival or --risk")
    if args.later and kind != "score":
        args.usage("--later says what scores mean; it goes with --score")
    if not kind and not args.features:
        args.usage(
            "name predictions with --score, --risk or --survival; or --features, the columns of a "
            "Cox model to be fitted here"
        )
    names = getattr(args, kind) if kind else []
    if len(set(names)) < len(names):
        args.usage(f"--{kind} names a column twice; name two models")
    return kind, names


def _complete(df, args):
    """The patients who have all that is needed, and how many were read and used."""
    from drocox.auditing import columns
    from drocox.auditing.disclosure import count_text
    from drocox.data import column

    event = args.event_column
    wanted = {args.time: "--time", event: "--event"}
    if len(wanted) == 1:
        raise ValueError(f"--time and --event are both {args.time!r}; name two columns")
    wanted |= {name: f"--{args.kind}" for name in args.predicted}
    wanted |= {args.fold: "--fold"} if args.fold else {}
    for name, argument in wanted.items():
        is_outcome = argument in ("--time", "--event")
        column(df, name, argument, () if is_outcome else (args.time, event))
    for name in args.features:
        column(df, name, "--features", (args.time, event))
    gaps = df[list(wanted)].isna()
    gaps = gaps.loc[:, gaps.any()]
    if gaps.empty:
        return df, f"{len(df):,} read, all of them used"
    if args.missing != "drop":
        columns.refuse_missing(gaps, wanted)
    left = df[~gaps.any(axis=1)]
    if (few := len(df) - len(left)) < args.smallest:
        return left, f"{len(left):,} used, {count_text(few, args.smallest)} left out"
    numbers = gaps.sum()
    if numbers.min() < args.smallest:  # others would tell how many
        why = f"those without {' or '.join(gaps)}"
    else:
        why = ", ".join(f"{numbers[name]:,} without {name}" for name in gaps)
    return left, f"{len(df):,} read, {len(left):,} used; left out: {why}"


def _patients(df, args, name: str) -> tuple["SurvivalData", dict[str, str]]:
    """The table as data, and what a page says about it."""
    from drocox.auditing import columns
    from drocox.auditing.disclosure import count_text
    from drocox.data import SurvivalData

    event = args.event_column
    times = columns.time_column(df, args.time)
    events = columns.event_column(df, event, args.event_value)
    if not events.any():
        raise ValueError(f"--event: nobody in {name} has the event {args.event!r}")
    outcomes = (args.time, event)
    groups = {}
    for group, title in zip(args.groups, columns.attribute_titles(df, args.groups), strict=True):
        groups[title] = columns.group_column(df, group, outcomes)
        if group in df.columns and df[group].nunique() > 2:  # codes are no measurement
            df = df.assign(**{group: groups[title]})
    features = args.features
    if args.kind:  # the others tell whether rows are copies, and an unusable one does no harm
        others = [column for column in df.columns if column not in (*outcomes, *features)]
        features = [*features, *columns.searchable(df, others)]
    try:
        data = SurvivalData.from_frame(
            df.assign(**{event: events, args.time: times}),
            time=args.time,
            event=event,
            groups=groups,
            features=features,
            name=name,
        )
    except (TypeError, ValueError) as error:  # the advice in terms of the command line
        said = str(error).replace("leave it out with features=[...]", "leave it out of --features")
        raise ValueError(said.removeprefix("feature ")) from error
    facts = {}
    if at_zero := int((times == 0).sum()):
        count = count_text(at_zero, args.smallest)
        patients = "patient has" if count == "1" else "patients have"
        facts["Times"] = f"{count} {patients} a time of 0; check that this is meant"
    gaps = df[args.features].isna().sum()
    if gaps.any():
        numbers = {name: count_text(n, args.smallest) for name, n in gaps[gaps > 0].items()}
        counts = listed([f"{name} ({n})" for name, n in numbers.items()], MOST_COLUMNS, ", ")
        facts["Missing values"] = f"replaced by medians where a model is fitted: {counts}"
    facts["Predictions"] = "by models fitted here, each to patients other than those it scores"
    if args.kind:
        facts["Predictions"] = f"given in the file, as {args.kind}: {', '.join(args.predicted)}"
    facts["Features"] = ", ".join(args.features) or "none named"
    return data, facts


def _audit_given(df, data: "SurvivalData", args, options: dict) -> Mapping[str, "Audit"]:
    """The audits of scores, survival probabilities or risks that are columns of the file."""
    from drocox.auditing import columns
    from drocox.auditing.audit import audit

    by_model: dict[str, Any] = {}
    for name in args.predicted:
        if args.kind == "score":
            scores = columns.number_column(df, name, "--score").to_numpy()
            by_model[name] = -scores if args.later else scores
        else:
            by_model[name] = columns.probability_column(df, name, f"--{args.kind}")
    several = len(by_model) > 1
    kind = "scores" if args.kind == "score" else args.kind
    given: dict[str, Any] = {kind: by_model if several else by_model[name], **options}
    found: Any = audit(data, **given)
    return found if several else {name: found}


def _audit_fitted(data: "SurvivalData", options: dict) -> tuple[Mapping[str, "Audit"], list[str]]:
    """The audit of a ridge Cox model, cross-fitted to the file, and warnings of training."""
    from sklearn.model_selection import GridSearchCV, KFold

    from drocox.auditing.audit import audit
    from drocox.auditing.own_model import knows_outcome
    from drocox.auditing.predictions import check_data
    from drocox.estimator import DROCox
    from drocox.tuning import cross_fit

    check_data(data)  # before models are fitted
    if knowing := knows_outcome(data.X, data.time, data.event):
        raise ValueError(
            f"--features: {', '.join(knowing)} alone tells nearly who has the event, or in which "
            "order, and may be known only afterwards; a model of it cannot be judged: leave it out"
        )
    parts = KFold(5, shuffle=True, random_state=0)
    chosen = GridSearchCV(DROCox(alpha=1.0), {"penalty": PENALTIES}, scoring=_likelihood, cv=parts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        held_out = cross_fit(data, chosen)
    warned = list(dict.fromkeys(f"{warning.message}." for warning in caught))  # each once
    given: dict[str, Any] = {**options, **held_out}  # whose folds are those of the fitting
    found: Any = audit(data, **given)
    return {MODEL: found}, warned


def _likelihood(model, X, y) -> float:
    """Cox's log partial likelihood of patients left out, per event; 0 without one."""
    from drocox.accuracy import log_partial_likelihood

    event, time = (y[name] for name in y.dtype.names)
    return log_partial_likelihood(model.predict(X), time, event) if event.any() else 0.0
