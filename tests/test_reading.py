"""Chapters are as easy to read as the book promises, by the measure of ``book/_ext/reading.py``."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import reading  # noqa: E402

CHAPTERS = reading.chapters()
WITH_A_PICTURE = [chapter for chapter in CHAPTERS if chapter.stem != "instructors-guide"]
LONGEST_PARAGRAPH = 90  # words
LATEST_PICTURE = 16  # percent of the words of a chapter
MOST_MINUTES = 30
MOST_MINUTES_OF_A_SPLIT_READING = 25


def name(chapter):
    return chapter.relative_to(ROOT / "book").with_suffix("").as_posix()


def most_minutes(chapter):
    split = chapter.startswith("method/split")
    return MOST_MINUTES_OF_A_SPLIT_READING if split else MOST_MINUTES


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_a_chapter_is_one_sitting(chapter):
    assert reading.measure(chapter).minutes <= most_minutes(name(chapter))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_stated_minutes_are_honest(chapter):
    found = reading.measure(chapter)
    assert found.stated in (None, found.rounded), f"{found.minutes:.1f} minutes"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_no_paragraph_is_too_long(chapter):
    paragraphs = reading.measure(chapter).paragraphs
    assert [text for text in paragraphs if reading.length(text) > LONGEST_PARAGRAPH] == []


@pytest.mark.parametrize("chapter", WITH_A_PICTURE, ids=name)
def test_a_picture_comes_first(chapter):
    assert reading.measure(chapter).picture_at <= LATEST_PICTURE


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_numbers_are_not_bold(chapter):
    assert reading.measure(chapter).bold_numbers == []


def test_glued_numbers_are_not_bold():
    """The notebook extension's style sheet prints them in bold; ours must take that back."""
    style = (ROOT / "book" / "_static" / "custom.css").read_text(encoding="utf8")
    assert re.search(r"span\.pasted-text \{\s*font-weight: inherit;", style)


PAGE = """\
---
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A title

:::{admonition} In this chapter
:class: goals
- **You need** nothing.
- **Time** 5 minutes.
:::

Six words, one of them {glue:text}`glued`: $x^2$.

:::{admonition} More
:class: dropdown
These words are folded.
:::

$$
x = y
$$ (eq-x)

```{code-cell} ipython3
---
tags: [hide-input]
mystnb:
  figure:
    caption: Four words, a caption
---
draw()
```

```{code-cell} ipython3
one = 1

two = 2
```

| a | b |
|---|---|
| **3** | **three words here** |

```
drocox data
```

## Exercises

```{exercise-start} By hand
```
Not counted $x$.
```{code-cell} ipython3
not_counted = 1
```
```{exercise-end}
```
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf8")
    return reading.measure(path)


def test_what_is_counted(page):
    before = 2 + (3 + 3 + 3) + 6 + 1  # title, box, sentence, title of the folded box
    caption, cells = 4, 6
    assert page.words == before + caption + cells
    assert (page.displays, page.inline, page.code) == (1, 1, 2 + 1)
    assert page.first_picture == before
    assert page.bold_numbers == ["3"]
    assert page.longest == 7
    assert page.stated == 5


def test_minutes_are_those_of_the_definition(page):
    minutes = page.words / 150 + 1.5 * page.displays + 4 * (page.inline + page.code) / 60
    assert page.minutes == pytest.approx(minutes)
    assert page.rounded == 5


def test_a_page_without_a_picture_has_it_at_the_end():
    assert reading.Reading(words=100).picture_at == 100


def test_both_tables_have_a_row_for_each_chapter():
    text, marked = reading.table(CHAPTERS).splitlines(), reading.markdown(CHAPTERS).splitlines()
    assert (len(text), len(marked)) == (len(CHAPTERS) + 1, len(CHAPTERS) + 2)
    assert {line.count("|") for line in marked} == {len(reading.COLUMNS) + 2}
    dual = ROOT / "book" / "method" / "dual.md"
    (row,) = [line for line in marked if "method/dual " in line]
    assert f"| {reading.measure(dual).minutes:.1f} | {reading.measure(dual).stated} |" in row


@pytest.mark.parametrize(
    ("bold", "bare"),
    [
        ("**0.5**", True),
        ("**+1.96 \N{PLUS-MINUS SIGN} 0.53**", True),
        ("**{glue:text}`c-index`**", True),
        ("**5 / 5 / 4 (9)**", True),
        ("**five of six**", False),
        ("**Breslow**", False),
        ("**Figure 2**", False),
    ],
)
def test_bare_numbers(bold, bare):
    assert bool(reading.bare_numbers(f"Words {bold} words.")) == bare


SHOWS_ITS_IMPORTS = "beyond/your-own-data"  # which readers are to copy


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_imports_are_folded(chapter):
    hidden = reading.NOT_ON_THE_PAGE
    cells = [cell for cell in reading.read(chapter).cells if cell.cell_type == "code"]
    shown = [cell.source for cell in cells if not hidden & set(cell.metadata.get("tags", []))]
    imports = [len(re.findall(r"^(?:import|from) ", code, re.MULTILINE)) for code in shown]
    assert max(imports, default=0) <= 2 or name(chapter) == SHOWS_ITS_IMPORTS


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_a_chapter_opens_with_a_question(chapter):
    cells = [cell.source for cell in reading.read(chapter).cells if cell.cell_type != "code"]
    opening = re.split(r"^## ", "\n".join(cells), flags=re.MULTILINE)[0]
    without_goals = re.sub(
        r":::\{admonition\} In this.*?^:::", "", opening, flags=re.DOTALL | re.MULTILINE
    )
    assert "?" in without_goals
