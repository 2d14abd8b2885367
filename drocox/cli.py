"""The command line, ``drocox COMMAND``; the reproduction's commands are in ``drocox.paper.cli``.

Arguments are checked before anything slow is imported, so a usage error comes at once.
"""

import argparse
import gc
import operator
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from drocox import __version__, _checks, files
from drocox.paper import StoreError
from drocox.paper import cli as paper

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from drocox.data import SurvivalData
    from drocox.report import Audit

COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
CUT = re.compile(r"(?P<column>.+?) *(?P<sign>>=|<=|>|<) *(?P<number>.*)")
NUMBER = re.compile(r"-?\d+(\.\d*)?")
BINS = re.compile(r"(?P<column>.+?) *: *(?P<edges>-?[\d.]+(,-?[\d.]+)*)")
DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4}")  # how a date begins
MISSING = "missing"  # label of the patients who have none
FEWEST_OF_A_CODE = 20  # patients, in the middle of the codes, for numbers to be labels
MOST_LABELS = 10  # of an event, that a message shows


class _Parser(argparse.ArgumentParser):
    """A parser whose error messages fit the window."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, paper.fill(f"{self.prog}: error: {message}") + "\n")


def _parser() -> tuple[_Parser, dict[str, _Parser]]:
    """The parser, and those of its commands by name."""
    parser = _Parser(
        "drocox",
        description="Distributionally robust Cox models: an audit of your own data, and the "
        "paper's data, experiments and tables.",
        epilog="drocox COMMAND --help shows the arguments of a command, with an example.",
    )
    parser.add_argument("--version", action="version", version=f"drocox {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable, example: str) -> argparse.ArgumentParser:
        """Add a command; ``run`` gets its arguments, and ``args.usage(message)`` to refuse them."""
        text = run.__doc__
        sub = commands.add_parser(name, help=text, description=text, epilog=f"example: {example}")
        sub.set_defaults(run=run, usage=sub.error)
        return sub

    _add_audit(command)
    paper.add_commands(command)
    return parser, commands.choices


def _add_audit(command: Callable) -> None:
    """Add ``drocox audit`` with its arguments; ``command`` is that of :func:`_parser`."""
    example = "drocox audit patients.csv --time days --event died --groups 'sex,age>65'"
    add = command("audit", _audit, example).add_argument
    add("file", help="CSV, Stata, Excel, … with a line of names, then one line for each patient")
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
        action="store_true",
        help="intervals of differences that hold for all attributes at once",
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
        if names and ":" in names[-1] and NUMBER.fullmatch(name):
            names[-1] += f",{name}"
        else:
            names.append(name)
    return names


def _event(df, given: str) -> tuple[str, "pd.Series"]:
    """Column and indicator of the event, given as COLUMN or as COLUMN=VALUE."""
    import pandas as pd

    from drocox.data import column

    if given in df.columns:
        events = column(df, given, "--event")
        labels = sorted(_texts(events.dropna().unique()))
        if not set(labels) <= {"0", "1", "False", "True"} and len(labels) <= MOST_LABELS:
            raise ValueError(
                f"event column {given!r} holds {', '.join(labels)}; say which of them is the "
                f"event, as in --event {shlex.quote(f'{given}={labels[-1]}')}"
            )
        return given, events
    name, equals, value = given.rpartition("=")
    if not equals:
        column(df, given, "--event")  # which refuses it
    events = column(df, name.strip(), "--event")
    if events.isna().any():
        raise ValueError(
            f"--event: {name!r} has {events.isna().sum()} gap(s); fill them, or leave these "
            "patients out"
        )
    labels = _texts(events)
    if value.strip() not in labels:
        known = ", ".join(sorted(set(labels))[:MOST_LABELS])
        raise ValueError(f"--event: {name!r} never holds {value!r}; it holds: {known}")
    return name.strip(), pd.Series([label == value.strip() for label in labels], df.index)


def _refuse_dates(times: "pd.Series", name: str) -> None:
    """Refuse dates in place of times."""
    first = next(iter(times.dropna().astype(str)), "")
    if DATE.match(first):
        raise ValueError(
            f"--time: {name!r} holds dates, such as {first}; pass the time from entry to the event "
            "or the last visit, in days for example"
        )


def _texts(values) -> list[str]:
    """Labels as text, whole numbers without a point."""
    return [f"{v:g}" if isinstance(v, float) else str(v).strip() for v in values]


def _scores(df, name: str, outcomes: tuple[str, ...], argument: str = "--score") -> "np.ndarray":
    """Scores of the patients; who lacks one is named."""
    import numpy as np
    import pandas as pd

    from drocox.data import column

    given = column(df, name, argument, outcomes)
    scores = pd.to_numeric(given, errors="coerce").to_numpy(float)
    if not np.isfinite(scores).all():
        first = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise ValueError(
            f"{argument}: {name!r} holds {given.iloc[first]} for patient {first + 1} of {len(df)}, "
            "which is no score; complete the column, or leave such patients out of the file"
        )
    return scores


def _group(df, name: str, outcomes: tuple[str, ...]) -> "pd.Series":
    """Labels of one attribute: a column, or a cut of it such as age>65."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    from drocox.data import MAX_NUMERIC_GROUPS, column

    cut = None if name in df.columns else CUT.fullmatch(name)
    bins = None if name in df.columns or cut else BINS.fullmatch(name)
    parted = cut or bins
    labels = column(df, parted["column"] if parted else name, "--groups", outcomes)
    if cut and not NUMBER.fullmatch(cut["number"]):
        raise ValueError(f"--groups: {name!r} needs a number after {cut['sign']}, as in age>65")
    if cut:
        values = _measurements(labels, name)
        inside = COMPARISONS[cut["sign"]](values, float(cut["number"]))
        labels = inside.where(values.notna())
    elif bins:
        labels = _binned(_measurements(labels, name), bins["edges"].split(","))
    elif is_numeric_dtype(labels) and _are_codes(labels):  # such as sites
        order = [f"{code:g}" for code in sorted(labels.dropna().unique())]
        named = labels.map(lambda code: f"{code:g}", na_action="ignore")
        labels = named.astype(pd.CategoricalDtype(order))
    elif is_numeric_dtype(labels) and labels.nunique() > MAX_NUMERIC_GROUPS:
        raise ValueError(
            f"--groups: {name!r} holds {labels.nunique()} distinct values; cut a measurement, as "
            f"in --groups '{name}>65' or '{name}:50,65,75'; write numbers that are labels as text, "
            "such as 'no 12'"
        )
    return _with_missing(labels) if labels.isna().any() else labels


def _measurements(values, name: str) -> "pd.Series":
    """Numbers that can be cut, with gaps."""
    import pandas as pd

    numbers = pd.to_numeric(values, errors="coerce")
    text = values[numbers.isna() & values.notna()]
    if len(text):
        raise ValueError(f"--groups: {name!r} cannot cut {text.iloc[0]!r}, which is no number")
    return numbers


def _with_missing(labels) -> "pd.Series":
    """Labels of which those that are missing are a group of their own, the last."""
    import pandas as pd

    if isinstance(labels.dtype, pd.CategoricalDtype):
        known = list(labels.cat.categories)
    else:
        known = sorted(labels.dropna().unique())
    order = list(dict.fromkeys([*map(str, known), MISSING]))  # each once
    named = labels.astype(object).map(str, na_action="ignore").fillna(MISSING)
    return named.astype(pd.CategoricalDtype(order))


def _titles(df, names: list[str]) -> list[str]:
    """What attributes are called: those in bins like their column, if no other is."""
    columns = []
    for name in names:
        bins = None if name in df.columns or CUT.fullmatch(name) else BINS.fullmatch(name)
        columns.append(bins["column"].strip() if bins else name)
    titles = []
    for name, short in zip(names, columns, strict=True):
        titles.append(short if columns.count(short) == 1 else name)
    return titles


def _are_codes(values) -> bool:
    """Whether many different numbers are labels: whole, and each of several patients."""
    from drocox.data import MAX_LABELS, MAX_NUMERIC_GROUPS

    known = values.dropna()
    several = known.value_counts().median() >= FEWEST_OF_A_CODE
    few = MAX_NUMERIC_GROUPS < known.nunique() <= MAX_LABELS
    return bool(few and several and (known % 1 == 0).all())


def _binned(values, edges: list[str]) -> "pd.Series":
    """Labels of a measurement between edges; whoever is at an edge belongs to the part above."""
    import numpy as np
    import pandas as pd

    limits = [float(edge) for edge in edges]
    if limits != sorted(set(limits)):
        raise ValueError(f"--groups: edges must grow, as in age:50,65,75, not {','.join(edges)}")
    names = [f"below {edges[0]}"]
    for low, high in pairwise(edges):
        names.append(f"{low} to below {high}")
    names.append(f"{edges[-1]} or more")
    return pd.cut(values, [-np.inf, *limits, np.inf], right=False, labels=names)


def _usable(df, names: list[str]) -> tuple[list[str], list[str]]:
    """Columns in which badly served groups can be searched for, and the others."""
    from drocox.data import column, encode

    usable = []
    unusable = []
    for name in names:
        try:
            encode(column(df, name, "features"))
            usable.append(name)
        except (TypeError, ValueError):
            unusable.append(name)
    return usable, unusable


def _patients(df, args, name: str) -> tuple["SurvivalData", list[str]]:
    """The table as data, and the columns that are not searched for badly served groups."""
    from drocox.data import SurvivalData, column

    event, events = _event(df, args.event)
    _refuse_dates(column(df, args.time, "--time"), args.time)
    if args.time == event:
        raise ValueError(f"--time and --event are both {args.time!r}; name two columns")
    outcomes = (args.time, event)
    groups = {}
    for group, title in zip(args.groups, _titles(df, args.groups), strict=True):
        groups[title] = _group(df, group, outcomes)
    given = (args.score, args.survival, args.fold)
    features = [c for c in df.columns if c not in (*outcomes, *args.drop, *given)]
    unusable: list[str] = []
    if args.score or args.survival:  # no model is fitted here: an unusable column does no harm
        features, unusable = _usable(df, features)
        features = features or [args.score or args.survival]
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


def _unneeded(args) -> list[str]:
    """Columns that are dropped and play no other part."""
    used = [args.time, args.event, args.score or "", args.survival or "", args.fold or ""]
    used += args.groups  # a group starts with its column, as in age>65
    return [name for name in args.drop if not any(words.startswith(name) for words in used)]


def _audit(args) -> None:
    """Judge how well a model serves groups of patients: one HTML page."""
    try:
        source = files.check_source(args.file)
        out = args.out or Path(f"{source.stem}-audit.html")
        files.check_target(out, source)
    except ValueError as error:
        args.usage(str(error))
    if args.survival and args.horizon is None:
        args.usage("--survival needs --horizon, the time of these probabilities")
    if args.fold and not (args.score or args.survival):
        args.usage("--fold goes with --score or --survival")
    df = files.read_table(source, _unneeded(args), "--drop")
    data, unusable = _patients(df, args, source.name)

    from drocox.report import page

    warned: list[str] = []  # by models that are fitted here
    if args.score or args.survival:
        audits = {args.score or args.survival: _audit_given(df, data, args)}
    else:
        audits, warned = _audit_fitted(data, args)
    facts = {
        "Command": shlex.join(["drocox", *args.words]),
        "Rows": f"{len(df):,} read, all of them used",
        "Event": f"{args.event}, time {args.time}",
    }
    out.write_text(page(audits, facts, warned), encoding="utf-8")

    paragraphs = [f"{name}\n{result}" for name, result in audits.items()]
    paragraphs += [paper.fill(f"Warning. {line}") for line in warned]
    if unusable:
        words = "Badly served groups were not searched for in: " + ", ".join(unusable)
        paragraphs.append(paper.fill(words))
    text = "".join(f"{paragraph}\n\n" for paragraph in paragraphs)
    print("".join(c if c.isprintable() or c == "\n" else "?" for c in text) + f"wrote {out}")


def _audit_options(args) -> dict:
    """Options of an audit, whatever the model."""
    return {"horizon": args.horizon, "smallest": args.smallest, "familywise": args.familywise}


def _audit_given(df, data: "SurvivalData", args) -> "Audit":
    """The audit of scores or survival probabilities that are columns of the file."""
    from drocox.data import column
    from drocox.report import audit

    outcomes = (args.time, args.event)
    predicted = {}
    if args.fold:
        predicted["folds"] = column(df, args.fold, "--fold", outcomes).to_numpy()
    if args.score:
        predicted["scores"] = _scores(df, args.score, outcomes)
    if args.survival:
        predicted["survival"] = _scores(df, args.survival, outcomes, "--survival")
        predicted["times"] = args.horizon
    return audit(data, **predicted, **_audit_options(args))


def _audit_fitted(data: "SurvivalData", args) -> tuple[dict[str, "Audit"], list[str]]:
    """Audits of Cox and DRO-COX, cross-fitted to the file, and warnings of their training."""
    from drocox.estimator import DROCox
    from drocox.report import audit
    from drocox.tuning import cross_fit

    models = {"Cox": DROCox(alpha=1.0), f"DRO-COX, α = {DROCox().alpha:g}": DROCox()}
    audits = {}
    warned = []
    for name, model in models.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            held_out = cross_fit(data, model)
        messages = dict.fromkeys(str(warning.message) for warning in caught)  # each once
        warned += [f"{name}: {message}." for message in messages]
        audits[name] = audit(data, **held_out, **_audit_options(args))
    return audits, warned


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        By default the arguments of this process.

    Returns
    -------
    int
        Exit status: 0 if all went well, 1 if a check found problems, 2 for a wrong argument or an
        unusable store, 130 after Ctrl-C.
    """
    argv = sys.argv[1:] if argv is None else argv
    parser, commands = _parser()
    if argv and not argv[0].startswith("-") and argv[0] not in commands:
        hint = _checks.like(argv[0].lower(), commands)
        parser.error(f"unknown command {argv[0]!r};{hint} choose one of: {', '.join(commands)}")
    args = parser.parse_args(argv)
    args.words = list(argv)  # for pages that say how they were made
    try:
        status = int(args.run(args) or 0)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        kept = "; what was finished is kept, run the same command to resume"
        print(f"drocox: interrupted{kept if argv[0] == 'sweep' else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has had enough, as in: drocox data | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as if the signal of a closed pipe had ended the process
    except (StoreError, ValueError, TypeError, ModuleNotFoundError) as error:
        # an extra that is missing has a name, unlike our own messages of this kind
        advice = '; run: pip install "drocox[paper]"' if getattr(error, "name", None) else ""
        print(paper.fill(f"drocox: {error}{advice}"), file=sys.stderr)
        return 2
    finally:
        gc.freeze()  # what is imported stays: the collection at exit need not look at it


if __name__ == "__main__":
    sys.exit(main())
