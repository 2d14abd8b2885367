"""Every exhibit of the paper in the built pages, found by its anchor, with the store's values."""

import re
from functools import cache

import pytest
from bs4 import BeautifulSoup

from drocox.paper import tables
from drocox.paper.protocol import ATTRIBUTES

pytestmark = pytest.mark.slow  # reads built pages

EXHIBITS = ["t1", *tables.EXHIBITS, *tables.SPLIT_EXHIBITS, "f1"]
TABS = {"reproduced": "as_published", "corrected": "corrected"}  # and their protocols


@cache
def page_with(built, anchor):
    """The one page that has an anchor."""
    pages = [path.read_text(encoding="utf8") for path in (built / "book").rglob("*.html")]
    (page,) = (page for page in pages if f'id="{anchor}"' in page)
    return page


@cache
def parsed(page):
    soup = BeautifulSoup(page, "html.parser")
    for tag in soup.find_all(["br", "small"]):
        tag.insert_before(" ")
    return soup


def tables_after(built, anchor):
    """Rows of cell texts of all tables that follow an anchor, in order."""
    found = parsed(page_with(built, anchor)).find(id=anchor).find_all_next("table")
    rows = [[row.find_all(["td", "th"]) for row in table.find_all("tr")] for table in found]
    return [[[cell.get_text().strip() for cell in row] for row in table] for table in rows]


@pytest.mark.parametrize("exhibit", [e for e in EXHIBITS if e not in ("t1", "f1")])
def test_tables_show_the_stored_values(built, exhibit):
    found = tables_after(built, exhibit)
    metrics = {}
    for metric, (name, up) in tables.METRICS.items():
        metrics[re.sub("<[^>]+>", "", name) + (" ↑" if up else " ↓")] = metric
    results = [t for t in found if t[0][0] == "method" and set(t[0][1:]) == set(metrics)]
    assert len(results) >= len(TABS)
    for shown, (view, protocol) in zip(results, TABS.items(), strict=False):
        table = tables.exhibit_table(exhibit, protocol=protocol)
        columns = [metrics[head] for head in shown[0][1:]]
        assert columns[:2] == ["ci_percent", "f_a"]
        rows = table.groupby(["model", "method"], sort=False)
        assert len(shown) == 1 + len(rows)
        for cells, ((model, method), part) in zip(shown[1:], rows, strict=True):
            name = method.replace("_cap", "_∩")
            assert cells[0] == (f"{model}, {name}" if exhibit == "t16" else name)
            part = part.set_index("metric").loc[columns]
            printed = view == "reproduced" and part["paper_mean"].notna().any()
            for cell, (metric, row) in zip(cells[1:], part.iterrows(), strict=True):
                digits = 2 if metric == "ci_percent" else 3
                wanted = [row["mean"], row["paper_mean"]] if printed else [row["mean"]]
                texts = [f"{m:.{digits if abs(m) < 10 else 1}f}" for m in wanted]
                assert cell.replace("\N{MINUS SIGN}", "-").split()[: len(texts)] == texts


def test_table_one_shows_the_loaded_data(built):
    found = tables_after(built, "t1")
    text = " ".join(cell for row in found[0] for cell in row)
    facts = tables.dataset_table()
    for value in facts.loc[facts["quantity"] != "sensitive attributes", "ours"]:
        assert value in text


def test_the_figure_is_there_with_its_numbers(built):
    page, found = page_with(built, "f1"), tables_after(built, "f1")
    assert len(re.findall(r'<img[^>]*alt="[^"]{20,}', page)) >= len(ATTRIBUTES)
    # in a cell, ours and the printed mean
    text = {word for table in found for row in table for cell in row for word in cell.split()}
    for dataset in ATTRIBUTES:
        points = tables.alpha_table(dataset).dropna(subset="paper_mean")
        assert {f"{m:.4f}" for m in points["mean"]} <= text


def test_each_exhibit_names_the_command_that_recomputes_it(built):
    for exhibit in EXHIBITS:
        plain = re.sub(r"<[^>]+>", "", page_with(built, exhibit))
        assert re.search(r"drocox (sweep|table|figure|data)", plain), exhibit
