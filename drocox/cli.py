"""The command line, ``drocox COMMAND``; the reproduction's commands are in ``drocox.paper.cli``.

Arguments are checked before anything slow is imported, so a usage error comes at once.
"""

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from drocox import __version__, _checks
from drocox.paper import StoreError
from drocox.paper import cli as paper


class _Parser(argparse.ArgumentParser):
    """A parser whose error messages fit the window."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, paper.fill(f"{self.prog}: error: {message}") + "\n")


def _parser() -> tuple[_Parser, dict[str, argparse.ArgumentParser]]:
    """The parser, and those of its commands by name."""
    words = "Distributionally robust Cox models: an audit of your own data, and the paper's data, "
    more = "drocox COMMAND --help shows the arguments of a command, with an example."
    parser = _Parser("drocox", description=words + "experiments and tables.", epilog=more)
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
    add("--groups", required=True, type=_names, metavar="A,B", help="columns, or cuts like age>65")
    words = "held-out scores to be judged (default: Cox and DRO-COX, fitted here by cross-fitting)"
    add("--score", metavar="COLUMN", help=words)
    add("--drop", type=_names, default=[], metavar="A,B", help="no features, such as identifiers")
    add("--out", type=Path, metavar="PAGE", help="the page to write (default: FILE-audit.html)")

    paper.add_commands(command)
    return parser, commands.choices


def _names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _read(args) -> tuple:
    """The file of ``audit`` as data, and the scores in it."""
    import pandas as pd

    from drocox.data import SurvivalData, _column

    try:
        df = pd.read_csv(args.file, encoding="utf-8-sig", skipinitialspace=True, low_memory=False)
    except (OSError, ValueError) as error:  # the reader's complaints are of this kind
        args.usage(f"cannot read {args.file}: {error}")
    df.columns = df.columns.str.strip()
    if df.empty:
        args.usage(f"{args.file} is empty; pass at least one patient")

    named = [("--time", args.time), ("--event", args.event), *(("--drop", c) for c in args.drop)]
    unused = [_column(df, name, option).name for option, name in named] + [args.score]
    scores = _column(df, args.score, "--score") if args.score else None
    groups = {}
    for name in args.groups:
        of, over, cut = name.partition(">")
        if name in df or not over:
            groups[name] = _column(df, name, "--groups")
        elif not re.fullmatch(r" *-?\d+(\.\d*)? *", cut):
            args.usage(f"--groups: {name!r} needs a number after >, as in age>65")
        else:
            values = pd.to_numeric(_column(df, of.strip(), "--groups"))
            groups[name] = (values > float(cut)).where(values.notna())
    how = {"time": args.time, "event": args.event, "groups": groups, "name": args.file.name}
    how["features"] = df.columns.drop(unused, errors="ignore")
    try:
        return SurvivalData.from_frame(df, **how), scores
    except (TypeError, ValueError) as error:  # the advice in terms of the command line
        said = str(error).replace("features=[...]", "--drop COLUMN")
        raise ValueError(re.sub(r"groups={.(.*?).: df.*}", r"--groups '\1>65'", said)) from error


def _audit(args) -> None:
    """Judge how well a model serves groups of patients: one HTML page."""
    out = args.out or Path(f"{args.file.stem}-audit.html")
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        args.usage(f"cannot write {out}; name a file in a folder that exists")
    if not args.file.exists():
        args.usage(f"cannot read {args.file}: there is no such file; check its name")
    data, scores = _read(args)
    from drocox.estimator import DROCox
    from drocox.report import audit, page
    from drocox.tuning import cross_fit

    if args.score:
        audits = {args.score: audit(data, scores)}
    else:
        models = {"Cox": None, f"DRO-COX, α = {DROCox().alpha:g}": DROCox()}
        audits = {name: audit(data, **cross_fit(data, model)) for name, model in models.items()}
    out.write_text(page(audits), encoding="utf-8")
    text = "".join(f"{name}\n{found}\n\n" for name, found in audits.items())
    print("".join(c if c.isprintable() or c == "\n" else "?" for c in text) + f"wrote {out}")


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
