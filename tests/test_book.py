"""The book's sources and twins, without running or building anything.

That the outputs are what the code prints today is for nbval to check: ``make test`` runs it too.
"""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from jupyter_cache import get_cache
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import cache_key  # noqa: E402
import golden  # noqa: E402

PAGES = golden.pages()
CHAPTERS = golden.chapters()
EXEMPTING = {"nbval-ignore-output", "nbval-skip", "nbval-raises-exception", "raises-exception"}
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
    assert not missing
    assert on_disk == set(PAGES)


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


def test_the_picture_of_the_readme_is_the_landing_page_figure():
    assert golden.PICTURE.read_text(encoding="utf8") == golden.front_picture()
    assert f"({golden.PICTURE.relative_to(ROOT).as_posix()})" in (ROOT / "README.md").read_text()


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
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))["sphinx"]["config"]
    script = ROOT / "book" / "_static" / config["mathjax_path"]
    assert script.stat().st_size > 1_000_000
    assert (script.parent / "LICENSE").exists()


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
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--nbval", "--nbval-current-env", tmp_path],
        cwd=ROOT / "book",  # so that its conftest is the one found
        capture_output=True,
        text=True,
    )
    lines = re.findall(r"^(PASSED|FAILED) \S*?(\w+)\.ipynb", done.stdout, re.MULTILINE)
    found = {label: outcome for outcome, label in lines}
    assert found == {label: outcome for label, (_, _, outcome) in twins.items()}, done.stdout


def test_every_reference_is_complete_and_keys_are_unique():
    text = (ROOT / "book" / "references.bib").read_text(encoding="utf8")
    entries = re.findall(r"@(\w+)\{([^,]+),(.*?)\n\}", text, re.DOTALL)
    keys = [key for _, key, _ in entries]
    assert len(keys) == len(set(keys))
    for kind, key, body in entries:
        fields = set(re.findall(r"^\s*(\w+)\s*=", body, re.MULTILINE))
        place = {"article": "journal", "inproceedings": "booktitle", "misc": "howpublished"}[kind]
        needed = {"author", "title", "year", place}
        assert needed <= fields, key
        assert fields & {"doi", "url"} or key == "breslow1972discussion", key
