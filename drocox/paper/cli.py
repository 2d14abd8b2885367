"""The reproduction's commands: ``data``, ``sweep``, ``verify``, ``table``, ``figure``, ``claims``.

Names are understood in any case and with or without their punctuation: ``T4``, ``FLC``,
``"Cox_∩(Keya)"``, ``dro-cox-split``. Modules that compute are imported when a command runs.
"""

import argparse
import difflib
import math
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from drocox.beyond import STUDIES
from drocox.paper.protocol import ATTRIBUTES, METHODS, METHODS_OF, PROTOCOLS, REPEATS
from drocox.terminal import fill

METHODS_BY_STORE = METHODS_OF | {"beyond": STUDIES}
TABLE_NAMES = [f"t{i}" for i in range(1, 18)]
SELECTION_WORDS = {
    "stated": "the paper's rule, repeat by repeat",
    "one_setting": "the paper's rule, one setting for all repeats",
    "recovered": "forensic, the rule that reproduces the published row",
}
METRIC_WORDS = {"ci_percent": "CI", "f_a": "F_A"}
# the two blocks of a printed table: metric and its heading
BLOCKS = (
    {"ci_percent": "CI (%)", "f_a": "F_A", "f_i": "F_I", "f_g": "F_G", "f_cap": "F_cap"},
    {"c_index": "c-index", "auc": "AUC", "lpl": "LPL", "ibs": "IBS"},
)
SPLIT_TITLES = {"t16": "SPLIT by n2, ", "t17": "SPLIT by sides, "}
NAME_WIDTH = 20
CELL_WIDTH = 12
NOTE = "Detectable: a true difference that the comparisons would have shown with probability 80 %."


def _spelling(name: str) -> str:
    """A name in lower case, without punctuation."""
    return "".join(filter(str.isalnum, name.lower().replace("∩", "cap")))


def _name(kind: str, known: Iterable[str], **aliases: str) -> Callable[[str], str]:
    """A parser of names for argparse; its error for an unknown name lists the right ones."""
    by_spelling = {_spelling(name): name for name in known} | aliases

    def read(text: str) -> str:
        if _spelling(text) in by_spelling:
            return by_spelling[_spelling(text)]
        close = difflib.get_close_matches(_spelling(text), by_spelling, 1)
        hint = f" did you mean {by_spelling[close[0]]!r}?" if close else ""
        choices = ", ".join(dict.fromkeys(by_spelling.values()))
        raise argparse.ArgumentTypeError(f"unknown {kind} {text!r};{hint} choose one of: {choices}")

    return read


def _drop(args, why: str, *names: str) -> None:
    """Refuse those of the named arguments that were given: they would have no effect."""
    flags = [f"--{n.replace('_', '-')}" for n in names if getattr(args, n) is not None]
    if flags:
        args.usage(f"{why}: drop {', '.join(flags).replace('--attribute', 'the attribute')}")


def _data(args) -> None:
    """Describe the three data sets."""
    from drocox.paper.datasets import dataset_summary

    for name, facts in dataset_summary().iterrows():
        print(name.upper())
        for key, value in facts.items():
            text = f"{value:.3f}" if isinstance(value, float) else str(value)
            print(fill(f"{key.replace('_', ' ')}: {text}", "  ", "    "))


def _sweep(args) -> None:
    """Train the missing runs of a protocol; interrupt and resume at will."""
    known = METHODS_BY_STORE[args.protocol]
    lacking = [name for name in args.method or () if name not in known]
    if lacking:
        what = f"{args.protocol} has no {', '.join(lacking)}"
        args.usage(f"{what}; choose --method of: {', '.join(known)}")
    if args.jobs is not None and args.jobs < 1:
        args.usage(f"--jobs is {args.jobs}; choose 1 or more")
    parts = {"datasets": args.dataset, "methods": args.method, "repeats": args.repeats}
    how = parts | {"jobs": args.jobs or -1, "out": args.out}
    how["dry_run"] = args.dry_run
    if args.protocol == "beyond":
        from drocox.beyond import run

        count = f"{run.sweep(**how)} jobs"
    else:
        from drocox.paper import sweep

        count = f"{sweep.sweep(args.protocol, **how)} models"
    if args.dry_run:
        print(f"missing: {count}; run the command without --dry-run to train them")
    else:
        print(f"trained: {count}; nothing of this is missing now")


def _plans(protocol: str, out: Path | None) -> list:
    """The stores of a protocol as plans of :mod:`drocox.paper.sweep`."""
    if protocol == "beyond":
        from drocox.beyond import run

        return [run.plan(study, out) for study in STUDIES]
    from drocox.paper import sweep

    return [sweep.plan(protocol, out)]


def _verify(args) -> bool:
    """Train a fixed sample of the stored runs again, or all of them, and compare."""
    if args.jobs is not None and args.jobs < 1:
        args.usage(f"--jobs is {args.jobs}; choose 1 or more")
    if not args.all:
        _drop(args, "only --all keeps what it trains", "work")
    from drocox.paper.store import load_provenance
    from drocox.paper.sweep import verify_plan

    # in a given folder: the protocols that it holds
    there = list(load_provenance(args.out)) if args.out else list(METHODS_BY_STORE)
    everything = (args.work or Path("_build/verified")) if args.all else None
    any_problem = False
    for protocol in args.protocol or there or PROTOCOLS:
        for plan in _plans(protocol, args.out):
            verdict = verify_plan(plan, jobs=args.jobs or -1, everything=everything)
            any_problem |= bool(verdict.problems)
            word = "PROBLEMS" if verdict.problems else "complete and unchanged"
            print(f"{plan.store.name}: {word}")
            for line in [*verdict.problems, *verdict.lines]:
                print(fill(line, "  ", "    "), flush=True)
    if everything:
        print(f"what was trained is in {everything}; delete it before the next --all")
    return any_problem


def _check_table(args) -> None:
    """Refuse arguments of ``table`` that are missing, impossible or without effect."""
    if args.name not in ATTRIBUTES:
        why = f"{args.name} is a table of the paper as it stands"
        of_runs = ["protocol", "selection", "out"] if args.name == "t1" else []
        _drop(args, why, "tune_by", *of_runs, "attribute")
    elif args.attribute not in ATTRIBUTES[args.name]:
        what = f"no attribute {args.attribute!r}:" if args.attribute else "which attribute?"
        args.usage(f"{what} {args.name} has {', '.join(ATTRIBUTES[args.name])}")


def _table(args) -> None:
    """Print a table of the paper, beside the published numbers."""
    _check_table(args)
    from drocox.paper import store, tables

    protocol = args.protocol or "as_published"
    selection = args.selection or "stated"
    exhibit = args.name
    if exhibit in ATTRIBUTES:
        exhibit = tables.exhibit_id(exhibit, args.attribute, args.tune_by or "ci_percent")
    t1 = exhibit == "t1"
    if t1:
        table = tables.dataset_table()
    else:
        table = tables.exhibit_table(exhibit, protocol=protocol, selection=selection, out=args.out)
    if args.csv or t1:
        print(table.to_csv(index=False).rstrip() if args.csv else table.to_string(index=False))
        return
    dataset, attribute, tune_by = tables.EXHIBITS.get(exhibit, ("flc", "age", "ci_percent"))
    runs = store.load_runs(protocol, out=args.out)
    repeats = runs[runs["dataset"] == dataset].groupby("method")["repeat"].nunique()
    few = "" if repeats.min() == repeats.max() else f"{repeats.min()} to "
    below = "SD, distance to the paper in its SDs" if table["paper_mean"].notna().any() else "SD"
    what = f"{dataset.upper()}, {attribute}, {SPLIT_TITLES.get(exhibit, '')}"
    print(f"{exhibit.upper()}  {what}tuned by {METRIC_WORDS[tune_by]}")
    print(f"protocol {protocol}")
    print(f"selection {selection}: {SELECTION_WORDS[selection]}")
    print(f"mean over {few}{repeats.max()} repeats; below: {below}")
    for block in BLOCKS:
        print("\n" + _block(table, block))


def _block(table, block: dict[str, str]) -> str:
    """Some metrics of a table in 80 columns, two lines for each method."""
    from drocox.paper.tables import METRICS

    def line(name: str, cells: Iterable[str]) -> str:
        return f"{name:{NAME_WIDTH}s}" + "".join(f"{cell:>{CELL_WIDTH}s}" for cell in cells)

    directions = ["higher" if METRICS[metric][1] else "lower" for metric in block]
    lines = [line("", block.values()), line("better:", directions)]
    for model, of_model in table.groupby("model", sort=False):
        lines.append(model)
        for method, rows in of_model.groupby("method", sort=False):
            cells = rows.set_index("metric").loc[list(block)]
            names = [*textwrap.wrap(method, NAME_WIDTH - 2), ""]
            lines.append(line("  " + names[0], map(_short, cells["mean"])))
            lines.append(line("  " + names[1], [_spread(cell) for _, cell in cells.iterrows()]))
    return "\n".join(lines)


def _short(value: float) -> str:
    """Four decimals; fewer from 10 on, so that a number keeps six characters and a sign."""
    if not abs(value) < 1e5:  # so are infinity and NaN
        return f"{value:.1e}"
    digits = len(str(int(abs(value))))
    return f"{value:.{5 - digits}f}"


def _spread(cell) -> str:
    """SD of a cell and, where published, its distance to the paper's mean."""
    gap = (cell["mean"] - cell["paper_mean"]) / cell["paper_std"]
    far = f" {gap:+.{1 if abs(gap) < 9.95 else 0}f}" if abs(gap) < 999 else " far"
    return _short(cell["std"]) + ("" if math.isnan(gap) else far)


def _figure(args) -> None:
    """Draw the figure of the paper, a file per data set."""
    from drocox.paper.figures import alpha_sensitivity

    args.to.mkdir(parents=True, exist_ok=True)
    for dataset in args.dataset or ATTRIBUTES:
        path = args.to / f"alpha_{dataset}_{args.protocol}.svg"
        alpha_sensitivity(dataset, protocol=args.protocol, out=args.out).savefig(path)
        print(f"wrote {path}")


def _claims(args) -> None:
    """Judge the paper's claims by their thresholds."""
    from drocox.paper.claims import claims, ledger

    known = claims()
    print(fill(NOTE) + "\n")
    for name, rows in ledger(out=args.out).groupby("id", sort=False):
        claim = known[name]
        unit = " %" if claim["number"].startswith("per cent") else ""
        bars = f"reproduced from {claim['reproduced']}{unit}"
        if "partly" in claim:
            bars += f", partly from {claim['partly']}{unit}"
        print(fill(claim["claim"], f"{name:4s} ", " " * 5))
        print(fill(f"{claim['paper']}; see book/{claim['chapter']}", " " * 5, " " * 5))
        print(fill(f"{claim['number']} (of {claim['of']}): {bars}", " " * 5, " " * 5))
        for row in rows.itertuples():
            value = f"{row.value:.1f} %" if unit else f"{row.value:g} of {row.of}"
            print(f"     {row.view:24s}{row.verdict:12s}{value}")
            below = [row.where, f"detectable: {row.detectable}" if row.detectable else ""]
            for text in filter(None, below):
                print(fill(text, " " * 29, " " * 29))
        print()


def add_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands of the reproduction.

    ``command`` is called with a name, a function of the parsed arguments, whose docstring describes
    the command, and an example; it returns the parser of the new command.
    """

    def names(kind: str, known: Iterable[str], default: str) -> dict[str, Any]:
        """The keyword arguments of an argparse argument that is a name."""
        words = f"{', '.join(known)} (default: {default})"
        return {"type": _name(kind, known), "metavar": "NAME", "help": words}

    store: dict[str, Any] = {
        "type": Path,
        "metavar": "DIR",
        "help": "folder of the runs (default: the book's)",
    }
    datasets = names("data set", ATTRIBUTES, "all") | {"nargs": "+"}
    protocol = names("protocol", PROTOCOLS, "as_published")
    number: dict[str, Any] = {"type": int, "metavar": "N"}

    command("data", _data, "drocox data")

    example = "drocox sweep --dataset seer --method Cox DRO-COX --out try"
    add = command("sweep", _sweep, example).add_argument
    add("--protocol", default="as_published", **names("protocol", METHODS_BY_STORE, "as_published"))
    add("--dataset", **datasets)
    add(
        "--method",
        nargs="+",
        **names("method", [*METHODS, *STUDIES], f"all; last {len(STUDIES)} with beyond"),
    )
    add("--repeats", nargs="+", choices=REPEATS, help="from 1 to 10 (default: all)", **number)
    add("--dry-run", action="store_true", help="only list what is missing")
    add("--jobs", help="worker processes (default: one per core)", **number)
    add("--out", **store)

    add = command("verify", _verify, "drocox verify --protocol corrected").add_argument
    add("--protocol", nargs="+", **names("protocol", METHODS_BY_STORE, "all"))
    add("--out", **store)
    add("--jobs", help="worker processes (default: one per core)", **number)
    add("--all", action="store_true", help="all runs (hours); interrupt and resume at will")
    kept = "for what --all trains (default: _build/verified)"
    add("--work", type=Path, metavar="DIR", help=kept)

    add = command("table", _table, "drocox table flc age; drocox table T16").add_argument
    known = _name("table", [*ATTRIBUTES, *TABLE_NAMES])
    add("name", type=known, metavar="NAME", help="a data set (flc, support, seer), or t1 to t17")
    add("attribute", nargs="?", type=str.lower, help="of a data set: age, gender or race")
    metric = _name("metric", METRIC_WORDS, ci="ci_percent")
    add("--tune-by", type=metric, metavar="METRIC", help="tuned by ci_percent (default) or f_a")
    add("--protocol", **protocol)
    add("--selection", **names("selection", SELECTION_WORDS, "stated"))
    add("--out", **store)
    add("--csv", action="store_true", help="long form, all digits")

    add = command("figure", _figure, "drocox figure alpha --dataset flc --to pics").add_argument
    add("figure", type=_name("figure", ["alpha"], f1="alpha"), metavar="NAME", help="alpha, or f1")
    add("--dataset", **datasets)
    add("--protocol", default="as_published", **protocol)
    add("--out", **store)
    add("--to", type=Path, default=Path(), metavar="DIR", help="for the pictures (default: here)")

    command("claims", _claims, "drocox claims").add_argument("--out", **store)
