"""The command line: ``drocox data | sweep | verify | table | figure | claims``."""

import argparse
import gc
import sys
from pathlib import Path

from drocox.paper.protocol import ATTRIBUTES, METHODS, MODELS, PROTOCOLS
from drocox.paper.store import StoreError


def _data(args) -> None:
    from drocox.paper.datasets import dataset_summary

    print(dataset_summary().T.to_string())


def _sweep(args) -> bool | None:
    from drocox.paper.sweep import revalidate, sweep

    if args.revalidate:
        problems = revalidate(args.protocol, out=args.out)
        print("\n".join(problems) or "the sample agrees; the runs are stamped as today's")
        return bool(problems)
    trained = sweep(
        args.protocol,
        datasets=args.dataset,
        methods=args.method,
        repeats=args.repeats,
        jobs=args.jobs,
        scheduler=args.scheduler,
        out=args.out,
    )
    return print(f"trained {trained} models; nothing of this is missing now")


def _verify(args) -> bool:
    from drocox.paper.sweep import verify

    bad = 0
    for protocol in args.protocol or PROTOCOLS:
        problems = verify(protocol, out=args.out)
        bad += len(problems)
        print(f"{protocol}: " + ("complete and unchanged" if not problems else "PROBLEMS"))
        print("".join(f"  {p}\n" for p in problems), end="")
    return bool(bad)


def _table(args) -> None:
    import pandas as pd

    from drocox.paper import tables

    how = {"protocol": args.protocol, "selection": args.selection}
    if args.name in ("t16", "t17"):
        make = tables.split_share_table if args.name == "t16" else tables.one_side_table
        table = pd.concat([make(model, **how) for model in MODELS], ignore_index=True)
    else:
        dataset, attribute, tune_by = tables.EXHIBITS.get(
            args.name, (args.name, args.attribute, args.tune_by)
        )
        table = tables.main_table(dataset, attribute, tune_by=tune_by, **how)
    if args.csv:
        return print(table.to_csv(index=False), end="")
    gap = (table["mean"] - table["paper_mean"]) / table["paper_std"]
    text = table["mean"].map("{:.4f}".format) + gap.map(" {:+.1f}".format, "ignore").fillna("")
    wide = table.assign(text=text).pivot(index=["model", "method"], columns="metric", values="text")
    order = pd.MultiIndex.from_frame(table[["model", "method"]]).unique()
    print(wide.loc[order, list(tables.METRICS)].to_string())
    print("means over ten repeats; signed: distance to the published mean, in published SDs")


def _figure(args) -> None:
    from drocox.paper.figures import alpha_sensitivity

    for dataset in args.dataset or ATTRIBUTES:
        path = Path(f"alpha_{dataset}.svg")
        alpha_sensitivity(dataset, protocol=args.protocol).savefig(path)
        print(f"wrote {path}")


def _claims(args) -> None:
    from drocox.paper.claims import claims, ledger

    for name, rows in ledger().groupby("id", sort=False):
        claim = claims()[name]
        print(
            f"{name}  {claim['claim']}\n     {claim['paper']}; {claim['number']}, of "
            f"{claim['of']}: reproduced from {claim['reproduced']}"
            + (f", partly from {claim['partly']}" if "partly" in claim else "")
            + f"; see book/{claim['chapter']}"
        )
        for row in rows.itertuples():
            print(f"     {row.view:13s} {row.verdict:11s} {row.value:g} of {row.of}  {row.where}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "drocox",
        description="Distributionally robust Cox models: "
        "the data, the experiments and their tables.",
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, run, text: str, example: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, epilog=f"example: {example}")
        sub.set_defaults(run=run)
        return sub

    protocol = {"choices": PROTOCOLS, "default": "as_published"}
    store = {"type": Path, "metavar": "DIR", "help": "folder of the results (default: the book's)"}
    command("data", _data, "Describe the three data sets.", "drocox data")
    sub = command(
        "sweep",
        _sweep,
        "Train what is missing of a protocol; interrupt and resume at will.",
        'drocox sweep --dataset seer --method Cox "DRO-COX" --out try',
    )
    sub.add_argument("--protocol", **protocol)
    sub.add_argument("--dataset", nargs="+", choices=ATTRIBUTES)
    sub.add_argument(
        "--method",
        nargs="+",
        choices=METHODS,
        metavar="METHOD",
        help=f"any of: {', '.join(METHODS)}".replace("%", "%%"),
    )
    sub.add_argument("--repeats", nargs="+", type=int, choices=range(1, 11), metavar="1..10")
    sub.add_argument("--jobs", type=int, default=-1, help="worker processes (default: all cores)")
    sub.add_argument("--scheduler", metavar="ADDRESS", help="dask scheduler, e.g. tcp://host:8786")
    sub.add_argument("--out", **store)
    sub.add_argument(
        "--revalidate",
        action="store_true",
        help="recompute a sample of linear runs "
        "and, if it agrees to 1e-6, stamp the stored runs as made by today's code",
    )
    sub = command(
        "verify",
        _verify,
        "Check stored runs: completeness, hashes, a recomputed sample.",
        "drocox verify",
    )
    sub.add_argument("--protocol", nargs="+", choices=PROTOCOLS)
    sub.add_argument("--out", **store)
    sub = command(
        "table", _table, "Print a table of test scores.", "drocox table flc age; drocox table t16"
    )
    sub.add_argument(
        "name",
        choices=[*ATTRIBUTES, *(f"t{i}" for i in range(2, 18))],
        metavar="NAME",
        help="data set, or t2 to t17",
    )
    sub.add_argument("attribute", nargs="?", help="of a data set: age, gender or race")
    sub.add_argument("--tune-by", choices=("ci_percent", "f_a"), default="ci_percent")
    sub.add_argument("--protocol", **protocol)
    sub.add_argument("--selection", choices=("stated", "recovered"), default="stated")
    sub.add_argument("--csv", action="store_true", help="long form, with deviations and the paper")
    sub = command("figure", _figure, "Draw the figure of the paper.", "drocox figure alpha")
    sub.add_argument("figure", choices=["alpha"])
    sub.add_argument("--dataset", nargs="+", choices=ATTRIBUTES)
    sub.add_argument("--protocol", **protocol)
    command("claims", _claims, "Judge the paper's claims by their thresholds.", "drocox claims")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    args = _parser().parse_args(argv)
    gc.freeze()  # what is imported stays: collections need not look at it, nor wait for it at exit
    try:
        return int(args.run(args) or 0)
    except (StoreError, ValueError, TypeError) as error:
        print(f"drocox: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "drocox: interrupted; what was finished is kept, run the same command to resume",
            file=sys.stderr,
        )
        return 130


if __name__ == "__main__":
    sys.exit(main())
