"""The manifest of a CODECHECK: which files a checker recomputes, and by which commands.

``python -m drocox.paper.codecheck > codecheck.yml`` writes the file at the top of the repository.
"""

from __future__ import annotations

import yaml

from drocox.paper.protocol import ATTRIBUTES
from drocox.paper.tables import EXHIBITS

FOLDER = "exhibits"
TUNED_BY = {"ci_percent": "concordance imparity", "f_a": "the average of F_I, F_G and F_cap"}
PAPER = {
    "title": "Distributionally Robust Survival Analysis: "
    "A Novel Fairness Loss Without Demographics",
    "authors": [{"name": "Shu Hu"}, {"name": "George H. Chen"}],
    "reference": "https://proceedings.mlr.press/v193/hu22a.html",
}
HEAD = """\
---
# CODECHECK manifest, written by: python -m drocox.paper.codecheck > codecheck.yml
#
# The paper (PMLR 193:62-87, arXiv:2211.10508) has seventeen tables, T1 to T17, and a figure, F1,
# of three panels. A checker installs with `make setup`, makes the folder (`mkdir exhibits`) and
# writes the files with the commands in the comments. Tables are long CSV files with our mean and
# SD beside the published ones, where there are any. The commands read the trained models that come
# with the package; `drocox sweep --out DIR` trains them again, and with `--out DIR` the commands of
# T2 to T17 and F1 read those.
#
# The people who check fill in: codechecker, summary, check_time, certificate, report, and the
# authors' ORCID identifiers.
"""


def _table_title(exhibit: str) -> str:
    """What a table shows, and its number in the paper."""
    number = int(exhibit.removeprefix("t"))
    printed = f"Table {number}" if number <= 4 else f"Table E.{number - 4}"
    if number == 1:
        return f"{printed}: characteristics of the three data sets"
    if number == 16:
        return f"{printed}: DRO-COX (SPLIT) on FLC (age) with n2 = 0.1n to 0.5n"
    if number == 17:
        return f"{printed}: DRO-COX (SPLIT) on FLC (age), one side and both sides"
    dataset, attribute, tune_by = EXHIBITS[exhibit]
    return (
        f"{printed}: sixteen methods on {dataset.upper()} ({attribute}), tuned by "
        f"{TUNED_BY[tune_by]}"
    )


def entries() -> list[dict[str, str]]:
    """The exhibits of the paper: the file of each, and a comment with its command.

    Returns
    -------
    list of dict
        With ``file`` and ``comment``; one for each table, one for each panel of the figure.
    """
    out = []
    for exhibit in [f"t{number}" for number in range(1, 18)]:
        path = f"{FOLDER}/{exhibit}.csv"
        command = f"drocox table {exhibit} --csv > {path}"
        title = _table_title(exhibit)
        out.append({"file": path, "comment": f"{exhibit.upper()}, {title}; {command}"})
    for dataset in ATTRIBUTES:
        title = f"Figure 1: sensitivity to alpha, {dataset.upper()} (age)"
        command = f"drocox figure alpha --dataset {dataset} --to {FOLDER}"
        path = f"{FOLDER}/alpha_{dataset}_as_published.svg"
        out.append({"file": path, "comment": f"F1, {title}; {command}"})
    return out


def manifest() -> str:
    """Text of ``codecheck.yml``.

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
    return HEAD + yaml.safe_dump(content, sort_keys=False, width=1000)


if __name__ == "__main__":
    print(manifest(), end="")
