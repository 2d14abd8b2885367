"""How long and how hard the chapters are to read, measured on their sources.

    python book/_ext/reading.py [--markdown] [chapter ...]    a table; all chapters if none is named

What is counted is what a reader meets without opening anything: text, captions, tables and boxes,
formulas, and lines of code that are on the page. Left out are the sections *Exercises* and *Quiz*
with their solutions, boxes that are folded, folded and removed cells, and what cells print. A glued
value counts as one word. An inline formula is no word, but it counts as one in the length of a
paragraph.

A minute is 150 words; a formula on lines of its own takes 1.5 minutes, a formula within a sentence
or a line of code 4 seconds.
"""

import argparse
import dataclasses
import functools
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from plain import ROOT, pages, read

WORDS_PER_MINUTE = 150
MINUTES_PER_DISPLAY = 1.5
SECONDS_PER_SYMBOL = 4  # an inline formula, or a line of code
WORDS_PER_LINE = 12  # of a page, to compare code with text by height
LINES_PER_DISPLAY = 3
ROUNDED = 5  # minutes are stated in steps of five

NOT_ON_THE_PAGE = {"remove-cell", "remove-input", "hide-cell", "hide-input"}
NOT_READ = {"raw", "image", "glue", "bibliography", "list-table", "index"}
PICTURES = {"figure", "image", "glue:figure"}
DRAWS = re.compile(r"_slider\(|show_flow\(|\bexplor|<svg|<canvas")  # of code, or of raw HTML
LEFT_OUT = re.compile(r"(Exercises?|Quiz)\b")
STATED = re.compile(r"\*\*Time\*\* (\d+) minutes")

HEADING = re.compile(r"(#+) (.*)")
OPENING = re.compile(r"\s*(`{3,}|:{3,})\{([\w:.-]+)\}(.*)")
FENCE = re.compile(r"\s*(`{3,}|:{3,})")
OPTION = re.compile(r"\s*:[\w-]+:")
ITEM = re.compile(r"\s*([-*]|\d+\.)\s")
DISPLAY = re.compile(r"\$\$.+?\$\$(\s*\([\w-]+\))?", re.DOTALL)
INLINE = re.compile(r"(?<![\\$])\$[^$]+\$")
BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
ROLE = re.compile(r"\{[\w:.-]+\}`[^`]*`")
LINK = re.compile(r"\[([^][]*)\](\([^()\s]*\)|\{\.[\w-]+\})")


@dataclasses.dataclass
class Reading:
    """What was counted in one chapter."""

    words: int = 0
    displays: int = 0
    inline: int = 0
    code: int = 0
    first_picture: int | None = None  # words that stand before it
    paragraphs: list[str] = dataclasses.field(default_factory=list)
    bold_numbers: list[str] = dataclasses.field(default_factory=list)
    stated: int | None = None

    @property
    def minutes(self) -> float:
        """Honest minutes."""
        symbols = self.inline + self.code
        seconds = SECONDS_PER_SYMBOL * symbols
        return self.words / WORDS_PER_MINUTE + MINUTES_PER_DISPLAY * self.displays + seconds / 60

    @property
    def rounded(self) -> int:
        """Minutes to state in the opening of the chapter."""
        return max(ROUNDED, ROUNDED * round(self.minutes / ROUNDED))

    @property
    def formulas(self) -> float:
        """Formulas per 100 words."""
        return 100 * (self.displays + self.inline) / max(1, self.words)

    @property
    def code_share(self) -> float:
        """Percent of the height of code, text and formulas that is code."""
        text = self.words / WORDS_PER_LINE + LINES_PER_DISPLAY * self.displays
        return 100 * self.code / max(1, self.code + text)

    @property
    def picture_at(self) -> float:
        """Percent of the words that stand before the first picture; 100 where there is none."""
        if self.first_picture is None:
            return 100.0
        return 100 * self.first_picture / max(1, self.words)

    @property
    def longest(self) -> int:
        """Words of the longest paragraph."""
        return max(map(length, self.paragraphs), default=0)


def words(text: str) -> list[str]:
    """The words of a piece of Markdown; a role, such as a glued value, is one."""
    text = LINK.sub(r"\1", ROLE.sub("value", text))
    return [word for word in text.split() if re.search(r"\w", word)]


def length(paragraph: str) -> int:
    """Words of a paragraph, with every inline formula as one."""
    return len(words(INLINE.sub(" formula ", paragraph)))


def bare_numbers(text: str) -> list[str]:
    """Bold pieces that hold a number, or a glued value, and no word."""
    numbers = []
    for bold in BOLD.findall(text):
        rest = re.sub(r"\{glue:text\}`[^`]*`", "0", bold)
        if re.search(r"\d", rest) and not re.search(r"[^\W\d_]{2,}", INLINE.sub("", rest)):
            numbers.append(bold)
    return numbers


class Counter:
    """Goes through the cells of a chapter in order and counts."""

    def __init__(self):
        self.reading = Reading()
        self.blocks = []  # open directives: (fence, name, is read)
        self.in_left_out_section = False
        self.in_exercise = False
        self.in_code = None  # the fence of a plain code block
        self.lines = []  # of the paragraph under way

    @property
    def is_read(self) -> bool:
        """Whether the reader meets this place without opening anything."""
        open_blocks = all(is_read for _, _, is_read in self.blocks)
        return open_blocks and not self.in_left_out_section and not self.in_exercise

    def picture(self):
        """Note where the first picture stands."""
        taught = not self.in_left_out_section and not self.in_exercise
        if taught and self.reading.first_picture is None:
            self.reading.first_picture = self.reading.words

    def paragraph(self):
        """Close the paragraph under way and count it."""
        text = "\n".join(self.lines)
        self.lines = []
        if not text.strip() or not self.is_read:
            return
        self.reading.displays += len(DISPLAY.findall(text))
        text = DISPLAY.sub(" ", text)
        self.reading.bold_numbers += bare_numbers(text)
        self.reading.inline += len(INLINE.findall(text))
        self.reading.words += len(words(INLINE.sub(" ", text)))
        if text.strip() and not text.lstrip().startswith("|"):
            self.reading.paragraphs.append(" ".join(text.split()))

    def caption(self, text: str):
        """Count a text that stands for itself."""
        self.lines = text.splitlines()
        self.paragraph()

    def text_cell(self, source: str):
        """Count text, and keep track of what is open in it."""
        in_formula = False
        options = False  # whether options of a directive may still come
        for line in source.splitlines():
            if in_formula or line.strip().startswith("$$"):
                self.lines.append(line)
                if line.count("$$") == 1:
                    in_formula = not in_formula
                continue
            if options and OPTION.match(line):
                self.option(line)
                continue
            options = False
            if self.in_code:
                self.code_line(line)
            elif opening := OPENING.fullmatch(line):
                self.paragraph()
                self.open(*opening.groups())
                options = True
            elif fence := FENCE.match(line):
                self.paragraph()
                self.close_or_code(fence[1])
            elif heading := HEADING.fullmatch(line):
                self.paragraph()
                self.heading(*heading.groups())
            elif line.startswith("%") or re.fullmatch(r"\([\w-]+\)=|\+\+\+.*", line):
                self.paragraph()
            else:
                if self.blocks and self.blocks[-1][1] == "raw" and DRAWS.search(line):
                    self.picture()
                if not line.strip() or ITEM.match(line) or line.startswith("|"):
                    self.paragraph()
                self.lines.append(line)
        self.paragraph()

    def open(self, fence: str, name: str, title: str):
        """A directive begins."""
        if name in ("exercise-start", "solution-start"):
            self.in_exercise = True
        elif name in ("exercise-end", "solution-end"):
            self.in_exercise = False
        if name in PICTURES or "explor" in name:
            self.picture()
        is_read = name not in NOT_READ and name != "dropdown"
        self.blocks.append((fence, name, is_read))
        if name.startswith("prf:") or name == "admonition":
            self.caption(title)

    def option(self, line: str):
        """An option of the directive that has just begun: folded boxes are not read."""
        if line.strip().startswith(":class:") and "dropdown" in line:
            fence, name, _ = self.blocks.pop()
            self.blocks.append((fence, name, False))

    def close_or_code(self, fence: str):
        """A fence without a name ends the innermost directive, or begins a block of code."""
        if self.blocks and self.blocks[-1][0] == fence:
            self.blocks.pop()
        else:
            self.in_code = fence

    def code_line(self, line: str):
        """A line of a block of code in the text."""
        if line.strip() == self.in_code:
            self.in_code = None
        elif line.strip() and self.is_read:
            self.reading.code += 1

    def heading(self, marks: str, title: str):
        """A heading; those of level 2 decide whether what follows is counted."""
        if len(marks) <= 2:
            self.in_left_out_section = bool(LEFT_OUT.match(title))
        self.caption(title)

    def code_cell(self, cell):
        """Lines on the page, and whether the cell shows a picture."""
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if figure or DRAWS.search(cell.source):
            self.picture()
        if figure:
            self.caption(figure.get("caption", ""))
        hidden = NOT_ON_THE_PAGE & set(cell.metadata.get("tags", []))
        if self.is_read and not hidden:
            self.reading.code += sum(bool(line.strip()) for line in cell.source.splitlines())


@functools.lru_cache
def measure(chapter: Path) -> Reading:
    """Count one chapter, given the path of its source."""
    counter = Counter()
    for cell in read(chapter).cells:
        if cell.cell_type == "code":
            counter.code_cell(cell)
        else:
            counter.text_cell(cell.source)
    stated = STATED.search(chapter.read_text(encoding="utf8"))
    counter.reading.stated = int(stated[1]) if stated else None
    return counter.reading


def chapters(root: Path = ROOT) -> list[Path]:
    """The pages of the book that have a number or state a time, in their order."""
    texts = {page: page.read_text(encoding="utf8") for page in pages(root)}
    return [page for page, number in pages(root).items() if number or STATED.search(texts[page])]


# What the tables tell of a chapter: heading, format, and where it is found.
COLUMNS = {
    "words": ("d", lambda reading: reading.words),
    "formulas per 100": (".1f", lambda reading: reading.formulas),
    "code %": (".0f", lambda reading: reading.code_share),
    "picture at %": (".0f", lambda reading: reading.picture_at),
    "longest paragraph": ("d", lambda reading: reading.longest),
    "bold numbers": ("d", lambda reading: len(reading.bold_numbers)),
    "minutes": (".1f", lambda reading: reading.minutes),
    "stated": ("", lambda reading: reading.stated or ""),
}


def rows(of: list[Path]) -> list[list[str]]:
    """Headings, then a row per chapter."""
    found = [["chapter", *COLUMNS]]
    for chapter in of:
        reading = measure(chapter)
        name = chapter.relative_to(ROOT / "book").with_suffix("").as_posix()
        found.append([name, *(format(get(reading), form) for form, get in COLUMNS.values())])
    return found


def table(of: list[Path]) -> str:
    """Columns below their headings."""
    cells = rows(of)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for name, *numbers in cells:
        right = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *right]))
    return "\n".join(lines)


def markdown(of: list[Path]) -> str:
    """The same as a table of Markdown."""
    head, *body = rows(of)
    rule = ["---", *["--:"] * len(COLUMNS)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *body])


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description="How long and how hard the chapters are to read.")
    parser.add_argument("chapter", nargs="*", type=Path, help="source; all chapters if none")
    parser.add_argument("--markdown", action="store_true", help="print a table of Markdown")
    options = parser.parse_args()
    of = [chapter.resolve() for chapter in options.chapter] or chapters()
    print(markdown(of) if options.markdown else table(of))


if __name__ == "__main__":
    main()
