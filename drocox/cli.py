"""The command line, ``drocox COMMAND``; the reproduction's commands are in ``drocox.paper.cli``.

Arguments are checked before anything slow is imported, so a usage error comes at once; of the file
of ``drocox audit`` the first line is read with them.
"""

import argparse
import csv
import difflib
import gc
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from drocox import __version__
from drocox.paper import cli as paper


class _Parser(argparse.ArgumentParser):
    """A parser whose error messages fit the window."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, paper.fill(f"{self.prog}: error: {message}") + "\n")


def _parser() -> tuple[_Parser, dict[str, argparse.ArgumentParser]]:
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

    example = "drocox audit patients.csv --time days --event died --groups 'sex,age>65'"
    add = command("audit", _audit, example).add_argument
    add("file", type=Path, help="CSV with a line of names, then one line for each patient")
    add("--time", required=True, metavar="COLUMN", help="observed times")
    add("--event", required=True, metavar="COLUMN", help="1 = event, 0 = censored")
    words = "columns of groups, or thresholds like age>65, with commas between"
    add("--groups", required=True, type=_names, metavar="A,B", help=words)
    words = "held-out scores to be judged, higher for higher risk (default: a Cox and a DRO-COX "
    add("--score", metavar="COLUMN", help=words + "model, fitted here by cross-fitting)")
    words = "columns that are no features, such as an identifier"
    add("--drop", type=_names, default=[], metavar="A,B", help=words)
    words = "the page to write (default: FILE-audit.html in the current folder)"
    add("--out", type=Path, metavar="PAGE", help=words)

    paper.add_commands(command)
    return parser, commands.choices


def _names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _columns(args) -> dict[str, tuple[str, str]]:
    """Check the arguments of ``audit`` against the first line of its file.

    Returns the column of each group, and a threshold where the group is one, like ``age>65``.
    """
    try:
        with open(args.file, encoding="utf-8-sig", newline="") as lines:
            columns = [name.strip() for name in next(csv.reader(lines), [])]
    except OSError as error:
        args.usage(f"cannot read {args.file}: {error.strerror}")
    except (UnicodeDecodeError, csv.Error) as error:
        args.usage(f"{args.file} is no CSV in UTF-8: {error}")
    if not columns:
        args.usage(f"{args.file} is empty; its first line should name the columns")
    args.out = args.out or Path(f"{args.file.stem}-audit.html")
    if args.out.is_dir() or not os.access(args.out.parent, os.W_OK):
        args.usage(f"cannot write {args.out}; name a file in a folder that exists")
    groups = {}
    for name in args.groups:
        column, _, cut = name.partition(">")
        groups[name] = (name, "") if name in columns else (column.strip(), cut.strip())
        if groups[name][1] and not re.fullmatch(r"-?\d+(\.\d*)?", groups[name][1]):
            args.usage(f"--groups: {name!r} needs a number after >, as in age>65")
    given = {"--time": [args.time], "--event": [args.event], "--drop": args.drop}
    given["--score"] = [args.score] if args.score else []
    given["--groups"] = [column for column, _ in groups.values()]
    for flag, names in given.items():
        for name in names:
            if name not in columns:
                close = difflib.get_close_matches(name, columns, 1)
                hint = f" did you mean {close[0]!r}?" if close else ""
                found = ", ".join(columns[:20]) + ", ..." * (len(columns) > 20)
                args.usage(f"{flag}: no column {name!r};{hint} {args.file} has: {found}")
    return groups


def _numbers(df, name: str):
    """A column of a user's file as numbers; refuse text, and say where it stands."""
    import pandas as pd

    numbers = pd.to_numeric(df[name], errors="coerce")
    text = numbers.isna() & df[name].notna()
    if text.any():
        row = int(text.argmax())
        where = f"column {name!r} holds the text {df[name][row]!r} for patient {row + 1}"
        raise ValueError(f"{where}; it must hold numbers only")
    return numbers


def _read(args, groups: dict[str, tuple[str, str]]):
    """The file of ``audit`` as data, and the scores in it."""
    import pandas as pd

    from drocox.data import SurvivalData

    try:
        df = pd.read_csv(args.file, encoding="utf-8-sig", skipinitialspace=True, low_memory=False)
    except ValueError as error:  # the reader's complaints are of this kind
        raise ValueError(f"{args.file} cannot be read as CSV: {error}") from error
    df.columns = df.columns.str.strip()
    for name in (args.time, args.event):
        df[name] = _numbers(df, name)
    labels = {name: df[column] for name, (column, _) in groups.items()}
    for name, (column, cut) in groups.items():
        if cut:
            values = _numbers(df, column)
            labels[name] = (values > float(cut)).where(values.notna())
    unused = {args.time, args.event, args.score, *args.drop}
    features = [name for name in df if name not in unused]
    how = {"time": args.time, "event": args.event, "groups": labels, "features": features}
    try:
        data = SurvivalData.from_frame(df, **how, name=args.file.name)
    except (TypeError, ValueError) as error:  # the advice in terms of the command line
        said = str(error).replace("features=[...]", "--drop COLUMN")
        raise ValueError(re.sub(r"groups={.(.*?).: df.*}", r"--groups '\1>65'", said)) from error
    return data, _numbers(df, args.score) if args.score else None


def _audit(args) -> None:
    """Judge how well a model serves groups of patients: one HTML page."""
    groups = _columns(args)
    data, scores = _read(args, groups)
    from drocox.estimator import DROCox
    from drocox.page import page
    from drocox.report import audit
    from drocox.tuning import cross_fit

    if args.score:
        audits = {args.score: audit(data, scores)}
    else:
        models = {"Cox": None, f"DRO-COX, α = {DROCox().alpha:g}": DROCox()}
        audits = {name: audit(data, **cross_fit(data, model)) for name, model in models.items()}
    args.out.write_text(page(audits), encoding="utf-8")
    for name, found in audits.items():
        text = f"{name}\n{found}\n"
        print("".join(c if c.isprintable() or c == "\n" else "?" for c in text))
    print(f"wrote {args.out}")


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
        close = difflib.get_close_matches(argv[0].lower(), commands, 1)
        hint = f" did you mean {close[0]!r}?" if close else ""
        parser.error(f"unknown command {argv[0]!r};{hint} choose one of: {', '.join(commands)}")
    args = parser.parse_args(argv)
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
    except Exception as error:
        from drocox.paper.store import StoreError  # here, not above: slow to import

        if not isinstance(error, StoreError | ValueError | TypeError | ModuleNotFoundError):
            raise
        # an extra that is missing has a name, unlike our own messages of this kind
        advice = '; run: pip install "drocox[paper]"' if getattr(error, "name", None) else ""
        print(paper.fill(f"drocox: {error}{advice}"), file=sys.stderr)
        return 2
    finally:
        gc.freeze()  # what is imported stays: the collection at exit need not look at it


if __name__ == "__main__":
    sys.exit(main())
