"""The book's sources and notebooks, and what the extensions make of a small page.

That the outputs are what the code prints today is for nbval to check: ``make test`` runs it too.
"""

import html
import platform
import re
import sys
from pathlib import Path

import fresh
import nbformat
import numpy as np
import pytest
from docutils import nodes

import drocox

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import bookbuild  # noqa: E402
import formulas  # noqa: E402
import plain  # noqa: E402
import twins  # noqa: E402

PAGES = list(plain.pages())
CHAPTERS = twins.chapters()
EXEMPTING = {"nbval-ignore-output", "nbval-skip", "nbval-raises-exception", "raises-exception"}
# What must not get into a tracked file: addresses of objects, folders of a machine.
PERSONAL = re.compile(r"\bat 0x[0-9a-f]{6,}|site-packages|/tmp/ipykernel|/home/\w+|/Users/\w+")
EXEMPTING_COMMENT = re.compile(r"#\s*(NBVAL_|PYTEST_VALIDATE)")


def name(path):
    return path.relative_to(ROOT / "book").as_posix()


def twin(chapter):
    return twins.load(chapter.with_suffix(".ipynb"))


def code_cells(chapter):
    return twins.code_cells(twin(chapter))


def exempt(cell):
    return EXEMPTING & set(cell.metadata.get("tags", []))


def test_every_page_of_the_contents_exists_and_no_page_is_forgotten():
    missing = [page for page in PAGES if not page.exists()]
    on_disk = {path for path in (ROOT / "book").rglob("*.md") if "_ext" not in path.parts}
    course = {
        "slides",
        "sheets",
        "notebooks",
        "jose",
    }  # folders of book/teaching whose files are no pages
    assert not missing
    assert {path for path in on_disk if path.parent.name not in course} == {*PAGES}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_the_notebook_of_a_chapter_is_up_to_date(chapter):
    assert twins.problem(chapter) == ""


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_figures_have_letters_that_a_phone_can_show(chapter):
    """Ten points or more, at about five inches."""
    code = "\n".join(cell.source for cell in twins.code_cells(plain.read(chapter)))
    sizes = re.findall(r"(?:fontsize|labelsize)=([\d.]+)", code)
    widths = re.findall(r"figsize=\(([\d.]+)", code)
    assert [size for size in sizes if float(size) < 10] == []
    assert [width for width in widths if float(width) > 5.2] == []
    assert not re.search(r"(?:font|label)size=\"(?:xx-|x-)?small", code)


def test_an_old_address_leads_to_a_page():
    moved = ROOT / "book" / "_moved"
    for page in moved.rglob("*.html"):
        target = re.search(r"url=([^\"]+)\.html", page.read_text(encoding="utf8")).group(1)
        found = (page.parent / target).resolve().relative_to(moved)
        assert (ROOT / found).with_suffix(".md") in PAGES, page


def test_no_twin_without_chapter():
    assert twins.orphans() == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_links_of_a_twin_lead_somewhere(chapter):
    for cell in twin(chapter).cells:
        for target in re.findall(r"\]\(([\w./-]+)\)", cell.source):
            assert cell.cell_type == "code" or (chapter.parent / target).exists(), target


FOLDED = {"hide-input", "hide-cell", "hide-output"}
LABEL = re.compile(r"Show (?!code)[^:#]{3,55}|What the text relies on")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_a_folded_cell_says_what_is_inside(chapter):
    for cell in twins.code_cells(plain.read(chapter)):
        if FOLDED & set(cell.metadata.get("tags", [])):
            label = cell.metadata.get("mystnb", {}).get("code_prompt_show", "")
            assert LABEL.fullmatch(label), f"{label!r} above\n{cell.source}"


PAGE = """\
(top)=
## A title [paper (3)]{.paper}

% a comment
By {eq}`eq-here` and {eq}`eq-there`, {cite:t}`hu2022distributionally` get {glue:text}`n` of
`{eq}` in {prf:ref}`thm-here`; see [the dual](dual.md), [top](#a-title) and {ref}`it <ex-here>`.
[At 0.1](explore:dual?alpha=0.1,best) one patient is left.

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

```{prf:corollary}
:label: cor-here
{cite:t}`polsterl2020scikitsurvival`.
```

````{tab-set}
```{tab-item} One
:sync: one
{glue:text}`n`
```
````

```{glue} table
```

```{exercise-start} By hand
:label: ex-here
```
Do it.
```{exercise-end}
```

```{index} ! words to search for
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
    "table": {"text/html": '<style>td {}</style><td class="best win" data-csv="1.0">1<br></td>'},
}
MARKED = '<td class="best win" style="background-color:#cde8d5;color:#000"><b>1</b><br></td>'
PLAIN = """\
## A title *(paper (3))*

By (8.1) and [(7.1)](worst-case.ipynb), [Hu and Chen (2022)](URL) get \N{MINUS SIGN}3 of
`{eq}` in Theorem 8.1; see [the dual](dual.ipynb), [top](#A-title) and it.
[At 0.1](SITE/book/method/dual.html?alpha=0.1,best#explore-dual) one patient is left.

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

**Corollary 8.1.** [Pölsterl (2020)](POLSTERL).

**One**

\N{MINUS SIGN}3

TABLE
### Exercise 8.1: By hand

Do it.
#### Solution
Done."""


def test_notebooks_get_plain_markdown_for_all_markup(monkeypatch):
    page = ROOT / "book" / "method" / "dual.md"
    known = {
        "eq-here": "8.1",
        "thm-here": "Theorem 8.1",
        "cor-here": "Corollary 8.1",
        "ex-here": "Exercise 8.1",
    }
    known = {label: (text, page) for label, text in known.items()}
    known["eq-there"] = ("7.1", page.with_name("worst-case.md"))
    monkeypatch.setattr(plain, "labels", lambda: known)
    monkeypatch.setattr(plain, "headings", lambda source: ["A title"])
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(PAGE)])
    cells = plain.cells(notebook, page, GLUED)
    wanted = PLAIN.replace("TABLE", MARKED).replace("SITE/", plain.base())
    wanted = wanted.replace("URL", plain.citations()["hu2022distributionally"][2])
    wanted = wanted.replace("POLSTERL", plain.citations()["polsterl2020scikitsurvival"][2])
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
        ("```{glue} n\n```", "'n' is no table; use {glue:text}"),
    ],
)
def test_markup_without_a_translation_is_an_error(text, what):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    with pytest.raises(plain.Untranslated, match=re.escape(what)):
        plain.cells(notebook, CHAPTERS[0], GLUED)


def test_a_stale_twin_is_found(tmp_path):
    chapter = ROOT / "book" / "running-it.md"
    copy = tmp_path / "twin.ipynb"

    def problems(change):
        notebook = twin(chapter)
        change(notebook)
        twins.write(notebook, copy)
        return twins.problem(chapter, copy)

    assert not problems(lambda notebook: None)
    assert problems(lambda notebook: notebook.cells[1].update(source="# Another title"))
    assert problems(lambda notebook: code_cell(notebook, -1).update(source="1"))
    assert problems(lambda notebook: code_cell(notebook, -1).update(execution_count=None))
    assert problems(lambda notebook: notebook.cells.pop(0))


def code_cell(notebook, index):
    return twins.code_cells(notebook)[index]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_twins_do_not_reveal_the_machine(chapter):
    text = chapter.with_suffix(".ipynb").read_text(encoding="utf8")
    assert not PERSONAL.search(text)
    assert str(ROOT) not in text


def test_the_picture_of_the_readme_is_that_of_the_landing_page():
    assert twins.PICTURE.read_text(encoding="utf8") == twins.front_picture()
    assert f"({twins.PICTURE.relative_to(ROOT).as_posix()})" in (ROOT / "README.md").read_text()


def test_the_numbers_of_the_readme_are_those_of_the_landing_page():
    value = {}
    for cell in code_cells(ROOT / "book" / "index.md"):
        for output in cell.outputs:
            if kept := output.get("metadata", {}).get("scrapbook"):
                value[kept["name"]] = output["data"][kept["mime_prefix"] + "text/plain"]
    shown = [f"{int(value['tested'])} data sets", f"{float(value['gap']):.1f} points"]
    shown += [
        f"{float(value[name]):.1f} points ({float(value[name + '-low']):.1f} to "
        f"{float(value[name + '-high']):.1f})"
        for name in ("dro-c", "split-worst")
    ]
    readme = " ".join((ROOT / "README.md").read_text("utf-8").replace("−", "-").split())
    assert [text for text in shown if text not in readme] == []


def test_cells_that_are_not_compared_say_why():
    cells = [(chapter, cell) for chapter in CHAPTERS for cell in code_cells(chapter)]
    excused = [(chapter, cell) for chapter, cell in cells if exempt(cell)]
    for chapter, cell in excused:
        reason = cell.metadata.get("reason", "")
        assert len(reason) > 10, f"{name(chapter)}: give a :reason: for\n{cell.source}"
    hidden = [name(chapter) for chapter, cell in cells if EXEMPTING_COMMENT.search(cell.source)]
    assert not hidden, "exempt a cell by tag and :reason:, not by a comment"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_pictures_have_caption_and_alternative_text(chapter):
    """Glued figures have them in the text; one to redraw stands below its question, which serves
    as its caption."""
    for cell in code_cells(chapter):
        shown = [output for output in cell.outputs if "scrapbook" not in output.get("metadata", {})]
        kinds = {kind for output in shown for kind in output.get("data", {})}
        assert "image/png" not in kinds, f"not compared by nbval, draw SVG:\n{cell.source}"
        options = cell.metadata.get("mystnb", {})
        if twins.SVG in kinds:
            assert len(options.get("image", {}).get("alt", "")) > 20, cell.source
        if twins.SVG in kinds and "change-me" not in cell.metadata.get("tags", []):
            assert options.get("figure", {}).get("caption", "").strip(), cell.source
            assert options.get("figure", {}).get("name", "").startswith("fig-"), cell.source


SMALL_BOOK = """\
# The choice of α

:::{note}
Not the description.
:::

Each patient has a *loss* $\\ell_i(\\theta)$ & a weight. MORE

## A table

::::{tab-set}
:::{tab-item} Corrected
<table class="results"><tr><th></th><th>a</th><th>b</th></tr>
<tr><th>x, y</th><td>−1</td><td data-csv="4.01">4</td></tr></table>
:::
::::

<table><tr><td>1</td></tr></table>

A share of 95 % and 1 ± 2 in `95 %`, as {eq}`eq-small` says.

$$
x
$$ (eq-small)
"""


@pytest.fixture(scope="module")
def small_site(tmp_path_factory):
    """A page with one of each thing that ``bookpages`` looks after, and one without anything."""
    source = tmp_path_factory.mktemp("small")
    settings = {
        "extensions": ["myst_parser", "sphinx_design", "bookpages"],
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
    preview = tags["og:image"].removeprefix("https://example.org/")
    assert (ROOT / "book" / preview).read_bytes().startswith(b"\x89PNG")
    assert f"drocox {drocox.__version__}." in page
    assert "<title>Small book</title>" in (small_site / "index.html").read_text(encoding="utf8")


def test_a_table_that_knows_more_decimals_comes_as_csv(small_site):
    page = (small_site / "alpha.html").read_text(encoding="utf8")
    (address,) = re.findall(r'<a href="([^"]+\.csv)" download>', page)
    rows = (small_site / address).read_text(encoding="utf8").splitlines()
    assert rows == [",a,b", '"x, y",−1,4.01']


def test_units_stay_with_their_numbers_and_no_header_is_empty(small_site):
    page = (small_site / "alpha.html").read_text(encoding="utf8")
    assert "95\N{NO-BREAK SPACE}% and 1\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}2" in page
    assert '>95</span> <span class="pre">%<' in page  # code stays as it is
    assert not re.search(r"<th[^>]*></th>", page)


def test_a_formula_keeps_the_full_stop_behind_it_and_no_other():
    parts = [nodes.emphasis("", "female"), nodes.Text(". "), nodes.math("", "F"), nodes.Text(". ")]
    paragraph = nodes.paragraph("", "", *parts)
    formulas.hold(None, paragraph, "page")
    assert paragraph.astext() == r"female. F\text{.} "


def test_the_reference_names_all_of_its_pages():
    map_of_pages = (ROOT / "book" / "api.md").read_text(encoding="utf8")
    for page in (ROOT / "book" / "api").glob("*.md"):
        assert page in PAGES and f"(api/{page.name})" in map_of_pages


def test_outputs_are_computed_again_when_package_results_or_libraries_change(tmp_path, monkeypatch):
    for name in ("results/parts/corrected", "__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "results" / "corrected.csv").write_text("x\n1\n")
    (tmp_path / "a.py").write_text("C = 1.0\n")
    keys = [bookbuild.cache_key(tmp_path)]
    (tmp_path / "__pycache__" / "a.pyc").write_bytes(b"1")
    (tmp_path / "results" / "parts" / "corrected" / "seer.csv").write_text("x\n1\n")  # a sweep
    assert bookbuild.cache_key(tmp_path) == keys[0]
    (tmp_path / "a.py").write_text("C = 1.1\n")
    keys.append(bookbuild.cache_key(tmp_path))
    (tmp_path / "results" / "corrected.csv").write_text("x\n2\n")
    keys.append(bookbuild.cache_key(tmp_path))
    monkeypatch.setattr(bookbuild.metadata, "version", lambda package: "0")
    keys.append(bookbuild.cache_key(tmp_path))
    assert len(set(keys)) == 4


def stream(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def shown(svg):
    return nbformat.v4.new_output("display_data", data={twins.SVG: svg})


def test_output_printed_in_pieces_is_joined():
    cell = nbformat.v4.new_code_cell("", outputs=[stream("2.12 "), stream("and"), shown("<svg/>")])
    cell.outputs += [stream("b"), stream("c", "stderr")]
    bookbuild.merge_streams(nbformat.v4.new_notebook(cells=[cell]))
    assert [output.get("text") for output in cell.outputs] == ["2.12 and", None, "b", "c"]


CHAPTER = """\
---
kernelspec: {name: python3}
jupytext: {text_representation: {format_name: myst}}
---
# A title

```{code-cell} ipython3
draw()
```
"""


def test_a_build_refreshes_the_twin_where_a_reader_sees_a_difference(tmp_path):
    source = tmp_path / "a.md"

    def refreshed(printed="3", svg="<svg/>", text=CHAPTER):
        source.write_text(text)
        notebook = plain.read(source)
        twins.code_cells(notebook)[0].outputs = [stream(printed), shown(svg)]
        return twins.refresh(source, notebook)

    assert refreshed() and not refreshed()
    assert refreshed(printed="4") and refreshed(text=CHAPTER + "More.")
    assert refreshed(svg='<svg><path d="M 10.0 20" clip-path="url(#p0123456789)"/></svg>')
    assert not refreshed(svg='<svg><path d="M 10.00001 20" clip-path="url(#p9876543210)"/></svg>')
    assert refreshed(svg='<svg><path d="M 10.1 20" clip-path="url(#p0123456789)"/></svg>')


def glued(value, name="gap"):
    prefix = "application/papermill.record/"
    metadata = {"scrapbook": {"mime_prefix": prefix, "name": name}}
    data = {f"{prefix}text/plain": repr(value)}
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata)


def test_a_glued_value_is_compared_as_its_sentence_prints_it(monkeypatch):
    page = ROOT / "book" / "a.md"
    monkeypatch.setattr(twins, "printed", lambda: {(page, "gap"): {".2f", ".1e"}})

    def same(new, old):
        return twins.as_before(page, [glued(new)], [glued(old)]) == [glued(old)]

    assert same(3.6248879, 3.6248881)
    assert not same(3.63, 3.62)  # one unit of the last digit
    assert twins.as_before(page, [glued(1.0)], []) == [glued(1.0)]


def test_no_value_is_glued_for_nothing():
    for chapter in CHAPTERS:
        text = chapter.read_text(encoding="utf8")
        for label in plain.values(twin(chapter)):
            assert twins.printed().get((chapter, label)) or f"{{glue}} {label}\n" in text, label


def test_nbval_compares_what_a_reader_sees(tmp_path):
    """By ``book/conftest.py``."""
    draw = "from IPython.display import display, SVG\ndisplay(SVG('<svg><g x=\"{}\"/></svg>'))"
    picture = shown('<svg><g x="5"/></svg>')
    picture.data["text/plain"] = "<IPython.core.display.SVG object>"
    cases = [
        ("print(3)", stream("3\n"), "PASSED"),
        ("print(4)", stream("3\n"), "FAILED"),
        (draw.format(5.00001), picture, "PASSED"),
        (draw.format(5.1), picture, "FAILED"),
    ]
    cells = [
        nbformat.v4.new_code_cell(code, outputs=[output], execution_count=count)
        for count, (code, output, _) in enumerate(cases, start=1)
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    options = ["-rA", "-p", "conftest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    options += ["--nbval", "--nbval-current-env", tmp_path]
    done = fresh.run("-m", "pytest", *options, folder=ROOT / "book", PYTHONPATH=str(ROOT / "book"))
    lines = re.findall(r"^(PASSED|FAILED) \S*a\.ipynb::Cell (\d)", done.stdout, re.MULTILINE)
    found = {int(count): outcome for outcome, count in lines}
    assert found == dict(enumerate(case[-1] for case in cases)), done.stdout
    assert "the output of 2 cells is the same for a reader, with 1 figures" in done.stdout


@pytest.mark.slow
def test_another_kind_of_processor_shows_a_reader_the_same():
    """Imitated: OpenBLAS and NumPy without this processor's vector instructions sum in another
    order. A picture and an explorable of this chapter have other last digits."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    switches = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(found),
        "OPENBLAS_CORETYPE": "ARMV8" if platform.machine() == "aarch64" else "Nehalem",
    }
    notebook = ROOT / "book" / "method" / "who-gets-the-weight.ipynb"
    options = ["-q", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env", notebook]
    done = fresh.run("-m", "pytest", *options, **switches)
    assert done.returncode == 0, done.stdout[-3000:]
