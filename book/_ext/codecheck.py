"""CODECHECK manifest, written by: python book/_ext/codecheck.py > codecheck.yml

The paper (PMLR 193:62-87, arXiv:2211.10508) has seventeen tables, T1 to T17, and a figure, F1,
of three panels. `make exhibits` installs what is needed and writes all files below; the command
of each is in its comment. Tables are long CSV files with our mean and SD beside the published
ones, where there are any. The commands read the trained models that come with the package;
`drocox sweep --out DIR` trains them again, and with `--out DIR` the commands of T2 to T17 and F1
read those.

The people who check fill in: codechecker, summary, check_time, certificate, report, and the
authors' ORCID identifiers.
"""

import argparse
import contextlib
import os
import shlex
from pathlib import Path

import yaml

from drocox import cli
from drocox.paper.protocol import ATTRIBUTES
from drocox.paper.tables import EXHIBITS

PAPER = {
    "title": "Distributionally Robust Survival Analysis: "
    "A Novel Fairness Loss Without Demographics",
    "authors": [{"name": "Shu Hu"}, {"name": "George H. Chen"}],
    "reference": "https://proceedings.mlr.press/v193/hu22a.html",
}
TUNED_BY = {"ci_percent": "concordance imparity", "f_a": "the average of F_I, F_G and F_cap"}
TITLES = {
    exhibit: f"sixteen methods on {dataset.upper()} ({attribute}), tuned by {TUNED_BY[tune_by]}"
    for exhibit, (dataset, attribute, tune_by) in EXHIBITS.items()
} | {
    "t1": "characteristics of the three data sets",
    "t16": "DRO-COX (SPLIT) on FLC (age) with n2 = 0.1n to 0.5n",
    "t17": "DRO-COX (SPLIT) on FLC (age), one side and both sides",
}


def entries() -> list[dict[str, str]]:
    """The exhibits of the paper: the file of each, and a comment with its command.

    Returns
    -------
    list of dict
        With ``file`` and ``comment``; one for each table, one for each panel of the figure.
    """
    out = []
    for number in range(1, 18):
        file = f"exhibits/t{number}.csv"
        title = f"Table {number if number <= 4 else f'E.{number - 4}'}: {TITLES[f't{number}']}"
        comment = f"T{number}, {title}; drocox table t{number} --csv > {file}"
        out.append({"file": file, "comment": comment})
    for dataset in ATTRIBUTES:
        title = f"Figure 1: sensitivity to alpha, {dataset.upper()} (age)"
        comment = f"F1, {title}; drocox figure alpha --dataset {dataset} --to exhibits"
        out.append({"file": f"exhibits/alpha_{dataset}_as_published.svg", "comment": comment})
    return out


def manifest() -> str:
    """Text of ``codecheck.yml``: the words at the top of this module, then the entries.

    Returns
    -------
    str
    """
    content = {
        "version": "https://codecheck.org.uk/spec/config/2.0/",
        "paper": PAPER,
        "repository": "https://github.com/drocox/drocox",
        "manifest": entries(),
    }
    head = [f"# {line}".rstrip() for line in __doc__.splitlines()]
    return "\n".join(["---", *head, yaml.safe_dump(content, sort_keys=False, width=1000)])


def write(folder: Path, wanted: list[dict[str, str]] | None = None) -> None:
    """Write the files that the manifest lists, each by its command.

    Parameters
    ----------
    folder : Path
        Where the folder ``exhibits`` is made.
    wanted : list of dict, optional
        Entries to write; all by default.
    """
    (folder / "exhibits").mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        for entry in wanted or entries():
            words = shlex.split(entry["comment"].rpartition("; drocox ")[2])
            command, _, file = (" ".join(words)).partition(" > ")
            with open(file or os.devnull, "w", encoding="utf-8") as out:
                with contextlib.redirect_stdout(out):
                    status = cli.main(command.split())
            if status or not Path(entry["file"]).exists():
                raise SystemExit(f"{entry['file']} was not written by: drocox {command}")
            print(entry["file"], flush=True)


def main() -> None:
    """Print the manifest, or write what it lists."""
    parser = argparse.ArgumentParser(description="The manifest of the paper's exhibits.")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the exhibits there")
    folder = parser.parse_args().write
    if folder is None:
        print(manifest(), end="")
    else:
        write(folder)


if __name__ == "__main__":
    main()
