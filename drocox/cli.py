"""The command line: ``drocox data | sweep | verify | table | figure``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from drocox.protocol import ATTRIBUTES, METHODS, PROTOCOLS
from drocox.results import StoreError


def _data(args) -> int:
    from drocox.data import dataset_summary

    print(dataset_summary().T.to_string())
    return 0


def _sweep(args) -> int:
    from drocox.sweep import revalidate, sweep

    if args.revalidate:
        problems = revalidate(args.protocol, out=args.out)
        print("\n".join(problems) or "the sample agrees; the runs are stamped as today's")
        return bool(problems)
    trained = sweep(args.protocol, datasets=args.dataset, methods=args.method,
                    repeats=args.repeats, jobs=args.jobs, scheduler=args.scheduler, out=args.out)
    print(f"trained {trained} models; nothing of this is missing now")
    return 0


def _verify(args) -> int:
    from drocox.sweep import verify

    bad = 0
    for protocol in args.protocol or PROTOCOLS:
        problems = verify(protocol, out=args.out)
        bad += len(problems)
        print(f"{protocol}: " + ("complete and unchanged" if not problems else "PROBLEMS"))
        print("".join(f"  {p}\n" for p in problems), end="")
    return bool(bad)


def _table(args) -> int:
    from drocox.tables import METRICS, main_table

    table = main_table(args.dataset, args.attribute, tune_by=args.tune_by,
                       protocol=args.protocol, selection=args.selection)
    if args.csv:
        print(table.to_csv(index=False), end="")
    else:
        wide = table.pivot(index=["model", "method"], columns="metric", values="mean")
        order = table.drop_duplicates(["model", "method"])[["model", "method"]]
        print(wide.loc[list(order.itertuples(index=False, name=None)), list(METRICS)]
              .round(4).to_string())
    return 0


def _figure(args) -> int:
    from drocox.figures import alpha_sensitivity

    for dataset in args.dataset or ATTRIBUTES:
        path = Path(f"alpha_{dataset}.svg")
        alpha_sensitivity(dataset, protocol=args.protocol).savefig(path)
        print(f"wrote {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("drocox", description="Distributionally robust Cox models: "
                                     "the data, the experiments and their tables.")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, run, text: str, example: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, epilog=f"example: {example}")
        sub.set_defaults(run=run)
        return sub

    protocol = {"choices": PROTOCOLS, "default": "as_published"}
    store = {"type": Path, "metavar": "DIR", "help": "folder of the results (default: the book's)"}
    command("data", _data, "Describe the three data sets.", "drocox data")
    sub = command("sweep", _sweep, "Train what is missing of a protocol; interrupt and resume at "
                  "will.", 'drocox sweep --dataset seer --method Cox "DRO-COX" --out try')
    sub.add_argument("--protocol", **protocol)
    sub.add_argument("--dataset", nargs="+", choices=ATTRIBUTES)
    sub.add_argument("--method", nargs="+", choices=METHODS, metavar="METHOD",
                     help=f"any of: {', '.join(METHODS)}".replace("%", "%%"))
    sub.add_argument("--repeats", nargs="+", type=int, choices=range(1, 11), metavar="1..10")
    sub.add_argument("--jobs", type=int, default=-1, help="worker processes (default: all cores)")
    sub.add_argument("--scheduler", metavar="ADDRESS", help="dask scheduler, e.g. tcp://host:8786")
    sub.add_argument("--out", **store)
    sub.add_argument("--revalidate", action="store_true", help="recompute a sample of linear runs "
                     "and, if it agrees to 1e-6, stamp the stored runs as made by today's code")
    sub = command("verify", _verify, "Check stored runs: completeness, hashes, a recomputed "
                  "sample.", "drocox verify")
    sub.add_argument("--protocol", nargs="+", choices=PROTOCOLS)
    sub.add_argument("--out", **store)
    sub = command("table", _table, "Print a table of test scores.", "drocox table flc age")
    sub.add_argument("dataset", choices=ATTRIBUTES)
    sub.add_argument("attribute", help="age, gender or race")
    sub.add_argument("--tune-by", choices=("ci_percent", "f_a"), default="ci_percent")
    sub.add_argument("--protocol", **protocol)
    sub.add_argument("--selection", choices=("stated", "recovered"), default="stated")
    sub.add_argument("--csv", action="store_true", help="long form, with deviations and the paper")
    sub = command("figure", _figure, "Draw the figure of the paper.", "drocox figure alpha")
    sub.add_argument("figure", choices=["alpha"])
    sub.add_argument("--dataset", nargs="+", choices=ATTRIBUTES)
    sub.add_argument("--protocol", **protocol)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (StoreError, ValueError, TypeError) as error:
        print(f"drocox: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("drocox: interrupted; what was finished is kept, run the same command to resume",
              file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
