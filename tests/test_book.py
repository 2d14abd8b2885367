"""The book's sources and twins, without running or building anything.

That the outputs are what the code prints today is for nbval to check: ``make test`` runs it too.
"""

import html
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import fresh
import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from jupyter_cache import get_cache
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

import drocox
from drocox.bookstyle import SIX

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import audit_picture  # noqa: E402
import bookpages  # noqa: E402
import cache_key  # noqa: E402
import golden  # noqa: E402
import house  # noqa: E402
import picture  # noqa: E402
import plain  # noqa: E402

PAGES = golden.pages()
CHAPTERS = golden.chapters()
EXEMPTING = {"nbval-ignore-output", "nbval-skip", "nbval-raises-exception", "raises-exception"}
# Directives, roles, targets, classes and comments of MyST: nothing that a plain viewer could show.
MARKUP = re.compile(r"^\s*(`{3,}|:{3,})\{|\{[\w:.-]+\}`|^\([\w-]+\)=|\]\{\.|^%|^:::", re.MULTILINE)
EXEMPTING_COMMENT = re.compile(r"#\s*(NBVAL_|PYTEST_VALIDATE)")


def name(path):
    return path.relative_to(ROOT / "book").as_posix()


def twin(chapter):
    return nbformat.read(chapter.with_suffix(".ipynb"), as_version=4)


def code_cells(chapter):
    return golden.code_cells(twin(chapter))


def exempt(cell):
    return EXEMPTING & set(cell.metadata.get("tags", []))


def test_every_page_of_the_contents_exists_and_no_page_is_forgotten():
    missing = [page for page in PAGES if not page.exists()]
    on_disk = {path for path in (ROOT / "book").rglob("*.md") if "_ext" not in path.parts}
    course = {"slides", "sheets", "jose"}  # folders of book/teaching whose files are no pages
    assert not missing
    assert {path for path in on_disk if path.parent.name not in course} == {*PAGES}


def test_there_is_something_to_check():
    assert CHAPTERS


@pytest.fixture(scope="module")
def an_empty_cache(tmp_path_factory):
    return get_cache(str(tmp_path_factory.mktemp("cache")))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_the_build_finds_the_cells_that_the_twin_has(chapter, an_empty_cache):
    """The build reads chapters by itself and looks outputs up by the hash of what it read."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
    extensions = set(config["parse"]["myst_enable_extensions"])
    text = chapter.read_text(encoding="utf8")
    of_build = read_myst_markdown_notebook(text, MdParserConfig(enable_extensions=extensions))
    of_twin = golden.read(chapter)
    hashes = [an_empty_cache.create_hashed_notebook(book)[1] for book in (of_build, of_twin)]
    assert hashes[0] == hashes[1]
    assert [cell.source for cell in of_build.cells] == [cell.source for cell in of_twin.cells]
    assert [cell.metadata for cell in of_build.cells] == [cell.metadata for cell in of_twin.cells]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_twin_is_in_step(chapter):
    assert golden.problems(chapter) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_twin_is_plain_markdown_around_the_chapters_code(chapter):
    cells = twin(chapter).cells
    left = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert [MARKUP.search(text).group() for text in left if MARKUP.search(text)] == []
    first, *others = code_cells(chapter)
    assert first.source == cells[0].source == golden.COLAB.strip()
    own = golden.code_cells(golden.read(chapter))
    assert [cell.source for cell in others] == [cell.source for cell in own]
    for cell in cells:  # links to other pages of the book lead somewhere
        for target in re.findall(r"\]\(([\w./-]+\.(?:ipynb|md))\)", cell.source):
            assert (chapter.parent / target).exists(), target


@pytest.mark.parametrize("chapter", [c for c in CHAPTERS if plain.pages()[c]], ids=name)
def test_every_chapter_has_something_to_change(chapter):
    cells = golden.code_cells(golden.read(chapter))
    marked = [cell for cell in cells if "change-me" in cell.metadata.get("tags", [])]
    assert marked and all(cell.source.startswith("# Change me: ") for cell in marked)


FOLDED = {"hide-input", "hide-cell", "hide-output"}
LABEL = re.compile(r"Show (?!code)[^:#]{3,55}")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_a_folded_cell_says_what_is_inside(chapter):
    for cell in golden.code_cells(golden.read(chapter)):
        if FOLDED & set(cell.metadata.get("tags", [])):
            label = cell.metadata.get("mystnb", {}).get("code_prompt_show", "")
            assert LABEL.fullmatch(label), f"{label!r} above\n{cell.source}"


PAGE = """\
(top)=
## A title [paper (3)]{.paper}

% a comment
By {eq}`eq-here` and {eq}`eq-there`, {cite:t}`hu2022distributionally` get {glue:text}`n` of
`{eq}` in {prf:ref}`thm-here`; see [the dual](dual.md), [top](#a-title) and {ref}`it <ex-here>`.

:::{admonition} In this chapter
:class: goals
- a formula $x
  + y$ and {glue:text}`n`
:::

$$
x
$$ (eq-here)

- in a list

  ```sh
  if x:
      echo "{eq}"
  ```

```{prf:theorem} A name
:label: thm-here
True.
```

```{prf:proof}
Clear.
```

````{tab-set}
```{tab-item} One
:sync: one
{glue:text}`n`
```
````

```{glue} table
```

```{glue:figure} picture
:alt: a line
:name: fig-here

The caption.
```

```{exercise-start} By hand
:label: ex-here
```
Do it.
```{exercise-end}
```

```{solution-start} ex-here
:class: dropdown
```
Done.
```{solution-end}
```
"""
GLUED = {
    "n": {"text/plain": "'\N{MINUS SIGN}3'"},
    "table": {"text/html": '<style>td {}</style><td class="best win">1<br></td>'},
    "picture": {"image/svg+xml": "<svg/>"},
}
MARKED = '<td class="best win" style="background-color:#cde8d5;color:#000"><b>1</b><br></td>'
PLAIN = """\
## A title *(paper (3))*

By (8.1) and [(7.1)](worst-case.ipynb), [Hu and Chen (2022)](URL) get \N{MINUS SIGN}3 of
`{eq}` in Theorem 8.1; see [the dual](dual.ipynb), [top](#A-title) and it.

> **In this chapter**
>
> - a formula $x + y$ and \N{MINUS SIGN}3

$$
x \\tag{8.1}
$$

- in a list

  ```sh
  if x:
      echo "{eq}"
  ```

**Theorem 8.1** (A name)**.** True.

*Proof.* Clear. ∎

**One**

\N{MINUS SIGN}3

TABLE

![a line][picture]

**Fig. 8.1:** The caption.

[picture]: data:image/svg+xml;base64,PHN2Zy8+
### Exercise 8.1: By hand

Do it.
#### Solution
Done."""


def test_plain_markdown_of_everything(monkeypatch):
    page = ROOT / "book" / "method" / "dual.md"
    known = {"eq-here": "8.1", "thm-here": "Theorem 8.1", "ex-here": "Exercise 8.1"}
    known = {label: (text, page) for label, text in (known | {"fig-here": "Fig. 8.1"}).items()}
    known["eq-there"] = ("7.1", page.with_name("worst-case.md"))
    monkeypatch.setattr(plain, "labels", lambda root: known)
    monkeypatch.setattr(plain, "headings", lambda source: ["A title"])
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(PAGE)])
    cells = plain.cells(notebook, page, GLUED)
    url = plain.citations()["hu2022distributionally"][2]
    wanted = PLAIN.replace("URL", url).replace("TABLE", MARKED)
    assert "\n".join(cell.source for cell in cells) == wanted
    assert [cell.metadata for cell in cells] == [{}, {}, {"jp-MarkdownHeadingCollapsed": True}, {}]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_no_text_is_folded_with_a_solution_that_is_not_its_own(chapter):
    text = chapter.read_text(encoding="utf8")
    for after in re.findall(r"^```\{solution-end\}\n```\s*^(.+)$", text, re.MULTILINE):
        assert re.match(r"#|```\{exercise-start\}|```\{code-cell\}", after), after


@pytest.mark.parametrize(
    "text, what",
    [
        ("```{mermaid}\nx\n```", "{mermaid}"),
        ("{kbd}`x`", "{kbd}"),
        ("{eq}`eq-nowhere`", "'eq-nowhere'"),
        ("{glue:text}`nothing`", "'nothing'"),
    ],
)
def test_what_has_no_plain_form_is_an_error(text, what):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    with pytest.raises(plain.Untranslated, match=re.escape(what)):
        plain.cells(notebook, CHAPTERS[0], {})


def test_a_stale_twin_is_found(tmp_path):
    chapter = ROOT / "book" / "running-it.md"
    copy = tmp_path / "twin.ipynb"

    def problems(change):
        notebook = twin(chapter)
        change(notebook)
        golden.write(notebook, copy)
        return golden.problems(chapter, twin=copy)

    assert problems(lambda notebook: None) == []
    assert problems(lambda notebook: notebook.cells[1].update(source="# Another title"))
    assert problems(lambda notebook: code_cell(notebook, -1).update(source="1"))
    assert problems(lambda notebook: code_cell(notebook, -1).update(execution_count=None))
    assert problems(lambda notebook: notebook.cells.pop(0))


def code_cell(notebook, index):
    return golden.code_cells(notebook)[index]


def test_no_twin_without_chapter():
    assert golden.orphans() == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_outputs_are_there(chapter):
    """A cell that prints or draws, and is not told to stay quiet, has an output in the twin."""
    for cell in code_cells(chapter):
        if re.search(r"^(print|slider|plt\.show)\(", cell.source, re.MULTILINE):
            assert cell.outputs, cell.source


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_twin_is_small_and_tells_nothing_about_the_machine(chapter):
    text = chapter.with_suffix(".ipynb").read_text(encoding="utf8")
    assert len(text) < 3_000_000
    assert not golden.PERSONAL.search(text)
    assert str(ROOT) not in text


def test_the_picture_of_the_readme_is_the_forest_plot_of_the_answer():
    assert golden.PICTURE.read_text(encoding="utf8") == golden.front_picture()
    assert f"({golden.PICTURE.relative_to(ROOT).as_posix()})" in (ROOT / "README.md").read_text()


def test_the_picture_of_an_audit_is_what_the_audit_draws():
    """To a tenth of a pixel: the last digits are those of the machine."""
    kept = audit_picture.FILE.read_text(encoding="utf8")
    now = audit_picture.drawn()
    number = re.compile(r"\d+\.\d+")
    assert number.sub("#", kept) == number.sub("#", now), "python book/_ext/audit_picture.py"
    values = [np.array(number.findall(text), float) for text in (kept, now)]
    np.testing.assert_allclose(*values, atol=0.11)
    assert (
        f"({audit_picture.FILE.relative_to(ROOT).as_posix()})" in (ROOT / "README.md").read_text()
    )


def test_few_cells_are_exempt_and_each_says_why():
    cells = [(chapter, cell) for chapter in CHAPTERS for cell in code_cells(chapter)]
    excused = [(chapter, cell) for chapter, cell in cells if exempt(cell)]
    for chapter, cell in excused:
        reason = cell.metadata.get("reason", "")
        assert len(reason) > 10, f"{name(chapter)}: give a :reason: for\n{cell.source}"
    assert len(excused) < 0.05 * len(cells)
    hidden = [name(chapter) for chapter, cell in cells if EXEMPTING_COMMENT.search(cell.source)]
    assert not hidden, "exempt a cell by tag and :reason:, not by a comment"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_pictures_have_caption_and_alternative_text(chapter):
    for cell in code_cells(chapter):
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        assert "image/png" not in kinds, f"not compared by nbval, draw SVG:\n{cell.source}"
        if "image/svg+xml" in kinds:
            options = cell.metadata.get("mystnb", {})
            assert options.get("figure", {}).get("caption", "").strip(), cell.source
            assert options.get("figure", {}).get("name", "").startswith("fig-"), cell.source
            assert len(options.get("image", {}).get("alt", "")) > 20, cell.source


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_images_in_text_have_alternative_text(page):
    text = page.read_text(encoding="utf8")
    assert not re.search(r"!\[\s*\]\(", text)
    for directive in re.findall(r"\{(?:figure|image)\}[^\n]*\n((?::[^\n]*\n)*)", text):
        assert ":alt:" in directive


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_load_nothing_from_elsewhere(page):
    """Links to other sites are fine; scripts, styles, pictures and frames from them are not."""
    text = page.read_text(encoding="utf8")
    if page.with_suffix(".ipynb").exists():
        text += page.with_suffix(".ipynb").read_text(encoding="utf8")
    loads = re.findall(
        r"""(?:\bsrc\s*=\s*\\?["']|url\(\s*\\?["']?|@import\s+\\?["']|!\[[^\]]*\]\(|\{(?:figure|image)\}\s*|<link[^>]*href=\\?["'])\s*((?:https?:)?//[^\s"')]+)""",
        text,
    )
    assert loads == []


def test_mathematics_is_local():
    katex = ROOT / "book" / "_static" / "katex"
    style = (katex / "katex.css").read_text(encoding="utf8")
    fonts = re.findall(r"url\(([^)]+)\)", style)
    assert fonts and all((katex / font).exists() for font in fonts)
    assert (katex / "LICENSE").exists()


SMALL_BOOK = """\
# The choice of α

:::{note}
Not the description.
:::

Each patient has a *loss* $\\ell_i(\\theta)$ & a weight. MORE

## A table

::::{tab-set}
:::{tab-item} Corrected
<table class="results"><tr><th></th><th colspan="2">a</th></tr>
<tr><th rowspan="2">x, y</th><td>−1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>
:::
::::

A share of 95 % and 1 ± 2 in `95 %`, as ({eq}`eq-small`) says.

$$
x
$$ (eq-small)

```{figure} wide.svg
:alt: wide
A wide picture.
```

![narrow](narrow.svg)

```{prf:proof}
First.
```

```{prf:proof}
Second.
```

```{exercise}
First.
```

```{exercise}
Second.
```
"""


@pytest.fixture(scope="module")
def small_site(tmp_path_factory):
    """A page with one of each thing that ``bookpages`` looks after, and one without anything."""
    source = tmp_path_factory.mktemp("small")
    extensions = ["myst_parser", "sphinx_design", "sphinx_proof", "sphinx_exercise"]
    extensions += ["bookpages", "figures", "metadata"]
    settings = {
        "extensions": extensions,
        "project": "Small book",
        "html_title": "Small book",
        "html_theme": "sphinx_book_theme",
        "html_theme_options": {"extra_footer": "drocox {version}."},
        "myst_enable_extensions": ["colon_fence", "dollarmath"],
        "html_baseurl": "https://example.org/",
    }
    lines = [f"{key} = {value!r}\n" for key, value in settings.items()]
    (source / "conf.py").write_text("".join(lines))
    text = SMALL_BOOK.replace("MORE", 20 * "A second sentence. ")
    (source / "alpha.md").write_text(text, encoding="utf8")
    (source / "index.md").write_text("# Small book\n\n```{toctree}\nalpha\n```\n")
    for label, points in (("wide", 620), ("narrow", 340)):
        head = f'xmlns="http://www.w3.org/2000/svg" width="{points}pt" height="9pt"'
        (source / f"{label}.svg").write_text(f"<svg {head}/>")
    extensions = str(ROOT / "book" / "_ext")
    done = fresh.run("-m", "sphinx", "-W", "-q", source, source / "built", PYTHONPATH=extensions)
    assert done.returncode == 0, done.stderr
    return source / "built"


def test_a_page_describes_itself(small_site):
    page = (small_site / "alpha.html").read_text(encoding="utf8")
    tags = re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)"', page)
    tags = {key: html.unescape(text) for key, text in tags}
    assert tags["description"] == tags["og:description"]
    assert tags["description"].startswith("Each patient has a loss ℓ_i(θ) & a weight. A second")
    assert 150 < len(tags["description"]) <= 200
    assert tags["description"].endswith("sentence.")
    assert (tags["og:title"], tags["og:site_name"]) == ("The choice of α", "Small book")
    assert tags["og:url"] == "https://example.org/alpha.html"
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert f"drocox {version.group(1)}." in page
    assert "<title>Small book</title>" in (small_site / "index.html").read_text(encoding="utf8")


def test_a_page_can_be_found_and_cited(small_site):
    page = (small_site / "alpha.html").read_text(encoding="utf8")
    front = (small_site / "index.html").read_text(encoding="utf8")
    assert '<link rel="canonical" href="https://example.org/alpha.html" />' in page
    tags = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)"', page))
    assert tags["citation_title"] == "The choice of α"
    assert tags["citation_author"] == "drocox contributors"
    assert tags["og:image"] == "https://example.org/_static/preview.png"
    assert (small_site / "_static" / "preview.png").read_bytes().startswith(b"\x89PNG")
    records = [json.loads(ld_json(each)) for each in (page, front)]
    assert [record["@type"] for record in records] == ["Chapter", "Book"]
    assert records[0]["isPartOf"]["name"] == records[1]["name"]
    assert records[1]["version"] == drocox.__version__
    tree = ElementTree.parse(small_site / "sitemap.xml").getroot()
    wanted = ["https://example.org/alpha.html", "https://example.org/index.html"]
    assert [place.text for place in tree.iter() if place.tag.endswith("loc")] == wanted


def ld_json(page):
    """The record of schema.org that a page holds."""
    return re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)[1]


def test_a_computed_table_comes_as_csv(small_site):
    page = (small_site / "alpha.html").read_text(encoding="utf8")
    (address,) = re.findall(r'<a href="([^"]+\.csv)" download>', page)
    rows = (small_site / address).read_text(encoding="utf8").splitlines()
    assert rows == [",a,a", '"x, y",-1,2', '"x, y",3,4']


def test_what_is_mended_in_a_page(small_site):
    page = (small_site / "alpha.html").read_text(encoding="utf8")
    assert "95\N{NO-BREAK SPACE}% and 1\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}2" in page
    assert '>95</span> <span class="pre">%<' in page  # code stays as it is
    assert "((" not in re.sub("<[^>]+>", "", page[page.index("<article") :])
    assert not re.search(r"<th[^>]*></th>", page)


def test_ids_are_unique_and_wide_things_marked(small_site):
    page = (small_site / "alpha.html").read_text(encoding="utf8")
    article = page[page.index("<article") : page.index("</article>")]
    ids = re.findall(r'\sid="([^"]+)"', article)
    assert {"proof", "proof-2", "exercise-content", "exercise-content-2"} <= set(ids)
    assert len(ids) == len(set(ids))
    assert (
        '<div class="wide-picture" style="--least: 39.3rem"><img width="827" height="12" alt="wide"'
        in article
    )
    assert article.count("wide-picture") == 1
    assert re.search(r'class="sd-tab-set[^"]* full-width', article)


def test_columns_of_long_cells_take_several_lines():
    frame = pd.DataFrame({"rule": ["a rule that is told in many words", "short"], "n": [1, 2]})
    frame.index = ["how the row is called", "b"]
    table, pixels = bookpages.laid_out(frame.to_html())
    assert re.findall(r'class="(\w+)">([^<]*)<', table)[1:] == [
        ("label", ""),
        ("sentence", "rule"),
        ("label", "how the row is called"),
        ("sentence", "a rule that is told in many words"),
        ("label", "b"),
        ("sentence", "short"),
    ]
    assert (
        pixels < bookpages.COLUMN < bookpages.laid_out(pd.concat([frame] * 3, axis=1).to_html())[1]
    )


def test_search_knows_greek_letters_and_the_order_of_chapters(small_site):
    text = (small_site / "searchindex.js").read_text(encoding="utf8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert index["docnames"][index["titleterms"]["alpha"]] == "alpha"
    scorer = (ROOT / "book" / "_static" / "scorer.js").read_text(encoding="utf8")
    assert scorer in (small_site / "_static" / "language_data.js").read_text(encoding="utf8")


def test_chapters_are_located_in_the_picture_of_the_method():
    groups = ElementTree.parse(picture.FILE).getroot().findall("{http://www.w3.org/2000/svg}g[@id]")
    assert set(bookpages.BOXES.values()) == {group.get("id") for group in groups}
    for page in bookpages.BOXES:
        assert ":class: goals" in (ROOT / f"{page}.md").read_text(encoding="utf8")


def test_the_picture_of_the_method_is_drawn_to_scale():
    """Bars of the six patients' losses and of their worst-case weights, as the package has them."""
    assert picture.FILE.read_text(encoding="utf8") == picture.drawn()
    time, event, x = (SIX[column].to_numpy() for column in ("time", "event", "x"))
    losses = drocox.cox_losses(torch.tensor(np.log(2) * x), time, event)
    weights = drocox.worst_case_weights(losses, 0.5, rule="sharp")
    drawing = ElementTree.parse(picture.FILE).getroot()
    assert {"title", "desc"} <= {element.tag.split("}")[1] for element in drawing}
    for kind, values, scale in (("loss", losses, 30), ("weight", weights, 90)):
        bars = [float(e.get("height")) for e in drawing.iter() if e.get("class") == kind]
        np.testing.assert_allclose(bars, scale * values.numpy(), atol=0.006)


def test_the_map_of_the_package_is_what_its_imports_say():
    assert house.FILE.read_text(encoding="utf8") == house.drawn(), "python book/_ext/house.py"
    assert house.upward() == []
    text = (ROOT / "book" / "api.md").read_text(encoding="utf8")
    assert house.FILE.name in text
    newcomers = text[text.index("## A map for newcomers") : text.index("## How to read this page")]
    named = set(re.findall(r"`(drocox(?:\.\w+)+)`", newcomers))
    packages = {package for _, _, packages in house.FLOORS for package in packages}
    assert named <= set(house.modules()) | packages


def test_the_reference_names_all_of_its_pages():
    map_of_pages = (ROOT / "book" / "api.md").read_text(encoding="utf8")
    for page in (ROOT / "book" / "api").glob("*.md"):
        assert page in PAGES and f"(api/{page.name})" in map_of_pages


RESULTS = Path("drocox", "paper", "results")


def copy_of_inputs(folder):
    (folder / RESULTS / "parts" / "corrected").mkdir(parents=True)
    (folder / RESULTS / "corrected.csv").write_text("x\n1\n")
    (folder / "drocox" / "a.py").write_text("C = 1.0\n")


def test_cache_key_follows_package_and_results(tmp_path):
    copy_of_inputs(tmp_path)
    first = cache_key.cache_key(tmp_path)
    assert first == cache_key.cache_key(tmp_path)
    (tmp_path / "drocox" / "__pycache__").mkdir()
    (tmp_path / "drocox" / "__pycache__" / "a.pyc").write_bytes(b"1")
    (tmp_path / RESULTS / "parts" / "corrected" / "seer.csv").write_text("x\n1\n")  # a sweep
    (tmp_path / RESULTS / ".lock").write_text("")
    assert first == cache_key.cache_key(tmp_path)
    (tmp_path / "drocox" / "a.py").write_text("C = 1.1\n")
    second = cache_key.cache_key(tmp_path)
    (tmp_path / RESULTS / "corrected.csv").write_text("x\n2\n")
    third = cache_key.cache_key(tmp_path)
    assert len({first, second, third}) == 3


FILL = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
import bookbuild, cache_key, golden
os.environ.update(cache_key.kernel_environment())
root, cache, *chapters = sys.argv[1:]
golden.chapters = lambda root: [Path(chapter) for chapter in chapters]
if bookbuild.from_twins():
    bookbuild.single_nb_execution = None  # nothing is left to run
config = SimpleNamespace(nb_execution_cache_path=cache, nb_execution_timeout=120)
app = SimpleNamespace(srcdir=root, config=config)
bookbuild.copy_twins(app)
bookbuild.fill_cache(app)
"""


@pytest.mark.slow
def test_the_build_runs_chapters_and_tests_of_pages_take_their_twins(tmp_path):
    """Two ways into a cache, of which `make book` goes the first, and the same cells at the end."""
    chapters = [ROOT / "book" / "running-it.md", ROOT / "book" / "teaching/instructors-guide.md"]
    executed = {}
    for outputs in ("build", "twins"):
        cache = tmp_path / outputs
        extensions = str(ROOT / "book" / "_ext")
        environment = {"DROCOX_OUTPUTS": outputs, "PYTHONPATH": extensions}
        done = fresh.run("-c", FILL, ROOT, cache, *chapters, **environment)
        assert done.returncode == 0, done.stderr
        executed[outputs] = [golden.executed_notebook(each, ROOT, cache) for each in chapters]
    for chapter, by_build, by_twin in zip(chapters, *executed.values(), strict=True):
        assert [cell.source for cell in by_build.cells] == [cell.source for cell in by_twin.cells]
        outputs = [cell.outputs for cell in golden.code_cells(by_twin)]
        assert outputs == [cell.outputs for cell in code_cells(chapter)]
        if golden.made_on(twin(chapter)) == golden.here():
            assert golden.dumps(by_build) == golden.dumps(by_twin)


def test_the_pages_of_tests_are_read_again_when_a_twin_changes(tmp_path):
    copy_of_inputs(tmp_path)
    (tmp_path / "book").mkdir()
    twin = tmp_path / "book" / "a.ipynb"
    twin.write_text("1")
    first = cache_key.twins_path(tmp_path)
    twin.write_text("2")
    assert len({first, cache_key.twins_path(tmp_path), cache_key.cache_path(tmp_path)}) == 3


def test_cache_key_follows_versions(tmp_path, monkeypatch):
    copy_of_inputs(tmp_path)
    before = cache_key.cache_key(tmp_path)
    monkeypatch.setattr(cache_key.metadata, "version", lambda package: "0")
    assert cache_key.cache_key(tmp_path) != before


def test_outputs_are_compared_on_the_platform_that_made_them(tmp_path):
    """By ``book/conftest.py``. Elsewhere every cell runs, and only an error fails."""
    twins = {
        "same": (golden.here(), "print(3)", "PASSED"),
        "differs": (golden.here(), "print(4)", "FAILED"),
        "differs_elsewhere": ("Plan9 mips", "print(4)", "PASSED"),
        "breaks_elsewhere": ("Plan9 mips", "print(1 / 0)", "FAILED"),
    }
    for label, (platform, code, _) in twins.items():
        printed = nbformat.v4.new_output("stream", name="stdout", text="3\n")
        cell = nbformat.v4.new_code_cell(code, outputs=[printed], execution_count=1)
        notebook = nbformat.v4.new_notebook(cells=[cell])
        notebook.metadata["drocox"] = {"platform": platform}
        nbformat.write(notebook, tmp_path / f"{label}.ipynb")
    options = ["-rA", "-p", "conftest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    options += ["--nbval", "--nbval-current-env", tmp_path]
    done = fresh.run("-m", "pytest", *options, folder=ROOT / "book", PYTHONPATH=str(ROOT / "book"))
    lines = re.findall(r"^(PASSED|FAILED) \S*?(\w+)\.ipynb", done.stdout, re.MULTILINE)
    found = {label: outcome for outcome, label in lines}
    assert found == {label: outcome for label, (_, _, outcome) in twins.items()}, done.stdout


def test_outputs_are_compared_in_one_job_of_the_public_workflow():
    """All twins were made on one platform, and a job runs there; `make test` compares them."""
    workflow = ROOT / ".github" / "workflows" / "book.yml"
    jobs = yaml.safe_load(workflow.read_text(encoding="utf8"))["jobs"]["build"]
    platforms = [job["platform"] for job in jobs["strategy"]["matrix"]["include"]]
    makers = {golden.made_on(twin(chapter)) for chapter in CHAPTERS}
    assert len(makers) == 1
    assert makers < set(platforms)


NO_ADDRESS = {"greenwood1926natural", "mantel1966evaluation", "breslow1972discussion"}


PLACES = {  # which field of an entry says where it appeared
    "article": "journal",
    "book": "publisher",
    "inproceedings": "booktitle",
    "misc": "howpublished",
}


def test_every_reference_is_complete_and_keys_are_unique():
    text = (ROOT / "book" / "references.bib").read_text(encoding="utf8")
    entries = re.findall(r"@(\w+)\{([^,]+),(.*?)\n\}", text, re.DOTALL)
    keys = [key for _, key, _ in entries]
    assert len(keys) == len(set(keys))
    for kind, key, body in entries:
        fields = set(re.findall(r"^\s*(\w+)\s*=", body, re.MULTILINE))
        place = PLACES[kind]
        needed = {"author", "title", "year", place}
        assert needed <= fields, key
        assert fields & {"doi", "url"} or key in NO_ADDRESS, key
