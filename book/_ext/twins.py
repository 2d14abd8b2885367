"""The executed twin X.ipynb beside each chapter X.md: opened on Colab and Binder, run by nbval.

A twin has a first cell that installs the package on Colab, the cells of its chapter, with the text
in plain Markdown (:mod:`plain`), and the outputs of the last build in which a reader would have
seen a difference (:func:`as_before`), so that building the book on another kind of processor
changes no file. `make book` refreshes twins, see :func:`refresh`.

    python book/_ext/twins.py --check    exit 1 if a twin is missing, stale or unexecuted
"""

import collections
import functools
import hashlib
import re
import sys
from pathlib import Path

import nbformat
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import plain
from plain import ROOT, read

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# By name and address, not from a clone: a folder called drocox would be taken for the package.
COLAB = """\
# On Colab this installs the package; everywhere else it does nothing.
import sys

if "google.colab" in sys.modules:
    %pip install --quiet "drocox[notebooks] @ git+https://github.com/drocox/drocox"
"""
SVG = "image/svg+xml"
# ``{glue:text}`chapter :: name:format` ``, with chapter and format where they are needed
PRINTED = re.compile(r"\{glue:text\}`(?:([\w/-]+) :: )?([\w-]+):?([^`]*)`")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
ID = re.compile(r"(?<=[\"#])[a-z][0-9a-f]{10}(?=[\")])")  # which matplotlib makes from all digits
INVISIBLE = 1e-4  # of a number in a picture, or of a point
PICTURE = ROOT / "book" / "_static" / "verdict.svg"  # of the README


def chapters():
    """The pages that have code cells."""
    return [page for page in plain.pages() if plain.has_code(page)]


def code_cells(notebook):
    """The cells that are executed."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def load(path):
    """A twin from its file."""
    return nbformat.read(path, as_version=4)


def outputs(source):
    """The outputs of a twin by cell, or None if its code is not that of the chapter."""
    twin = source.with_suffix(".ipynb")
    cells = code_cells(load(twin))[1:] if twin.exists() else []  # the first is for Colab
    if [cell.source for cell in cells] != [cell.source for cell in code_cells(read(source))]:
        return None
    return [cell.outputs for cell in cells]


def skeleton(source, outputs):
    """The twin of a chapter with these outputs, from which the numbers in its text are taken."""
    twin = read(source)
    for cell, cell_outputs in zip(code_cells(twin), outputs, strict=True):
        cell.outputs = cell_outputs
    twin.nbformat = 4
    twin.nbformat_minor = 5
    twin.metadata = nbformat.from_dict(METADATA)
    first = nbformat.v4.new_code_cell(COLAB.strip(), metadata={"jupyter": {"source_hidden": True}})
    twin.cells = [first, *plain.cells(twin, source, plain.values(twin))]
    seen = {}
    for cell in twin.cells:
        name = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        seen[name] = seen.get(name, 0) + 1
        cell.id = name if seen[name] == 1 else f"{name}-{seen[name]}"
    for count, cell in enumerate(code_cells(twin), start=1):
        cell.execution_count = count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    return twin


def dumps(twin):
    """The text of a twin's file."""
    nbformat.validate(twin)
    return nbformat.writes(twin, version=4, indent=1, sort_keys=True).rstrip("\n") + "\n"


def write(twin, path):
    """Write a twin."""
    path.write_text(dumps(twin), encoding="utf8")


@functools.lru_cache
def printed():
    """``{(chapter, name): formats}``: how sentences and slides print the values that cells glue."""
    found = collections.defaultdict(set)
    for page in (ROOT / "book").rglob("*.md"):
        for chapter, name, style in PRINTED.findall(page.read_text(encoding="utf8")):
            source = ROOT / "book" / f"{chapter}.md" if chapter else page
            found[source, name].add(style)
    return found


def alike(one, two):
    """Whether two pictures look the same: equal but for ids and digits that nobody sees."""
    (words, numbers), (others, values) = map(_words_and_numbers, (one, two))
    return words == others and np.allclose(numbers, values, rtol=INVISIBLE, atol=INVISIBLE)


def _words_and_numbers(picture):
    """The text of a picture without its numbers, ids counted from 0, and its numbers."""
    ids = {}
    text = ID.sub(lambda found: ids.setdefault(found[0], f"id-{len(ids)}"), picture)
    return NUMBER.sub("#", text), np.array(NUMBER.findall(text), dtype=float)


def as_before(source, outputs, before):
    """The outputs of a cell, each as it was before if a reader sees no difference.

    This decides what "the same output" is, for nbval and for :func:`refresh`. Text and tables are
    the same to the last character, a glued value is the same as its sentences print it, and a
    picture as the eye sees it: the digits behind differ between processors.
    """
    if len(outputs) != len(before):
        return outputs
    pairs = zip(outputs, before, strict=True)
    return [old if _looks_the_same(source, new, old) else new for new, old in pairs]


def _looks_the_same(source, new, old):
    """Whether a reader sees no difference between two outputs of a cell."""
    data, known = new.get("data", {}), old.get("data", {})
    glued = new.get("metadata", {}).get("scrapbook", {})
    if data.keys() != known.keys() or glued != old.get("metadata", {}).get("scrapbook", {}):
        return False
    if not data:  # printed
        return new == old
    for kind, content in data.items():
        seen, seen_before = [content], [known[kind]]
        if glued and kind.endswith("text/plain"):
            styles = printed()[source, glued["name"]]
            seen, seen_before = (
                [plain.format_plain_text(text, style) for style in styles]
                for text in (content, known[kind])
            )
        picture = kind == SVG or "data-explore" in content
        if seen != seen_before and not (picture and alike(content, known[kind])):
            return False
    return True


def refresh(source, executed):
    """Write the twin of an executed chapter if a reader sees a difference; return whether.

    Cells that nbval does not compare, because they differ from machine to machine, stay as they are
    as long as the code is the same.
    """
    path = source.with_suffix(".ipynb")
    known = outputs(source)
    found = []
    for k, cell in enumerate(code_cells(executed)):
        if known is None:
            found.append(cell.outputs)
        elif "nbval-ignore-output" in cell.metadata.get("tags", []):
            found.append(known[k])
        else:
            found.append(as_before(source, cell.outputs, known[k]))
    new = dumps(skeleton(source, found))
    if path.exists() and path.read_text(encoding="utf8") == new:
        return False
    path.write_text(new, encoding="utf8")
    return True


def problem(source, path=None):
    """How a twin is out of step with its chapter, or unexecuted; empty if it is in order."""
    path = path or source.with_suffix(".ipynb")
    if not path.exists():
        return f"{path} is missing: make book writes it"
    found = load(path)
    cells = code_cells(found)[1:]
    if [cell.source for cell in cells] != [cell.source for cell in code_cells(read(source))]:
        return f"{path} has other code than its chapter: make book refreshes it"
    wanted = skeleton(source, [cell.outputs for cell in cells])
    if dumps(wanted) == path.read_text(encoding="utf8"):
        return ""
    pairs = enumerate(zip(found.cells, wanted.cells, strict=False))
    different = [number for number, (have, want) in pairs if have != want]
    return f"{path} differs from its chapter, cells {different}: make book refreshes it"


def orphans():
    """Notebooks without a chapter."""
    known = {chapter.with_suffix(".ipynb") for chapter in chapters()}
    found = sorted((ROOT / "book").rglob("*.ipynb"))
    return [path for path in found if path not in known and ".ipynb_checkpoints" not in path.parts]


def front_picture():
    """The figure of the landing page, on white ground, for the README."""
    cells = load(ROOT / "book" / "index.ipynb").cells
    (cell,) = [cell for cell in cells if "fig-answer" in str(cell.metadata)]
    svg = next(output.data[SVG] for output in cell.outputs if SVG in output.data)
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return re.sub(r"(<svg[^>]*>)", lambda tag: tag.group() + ground, svg, count=1)


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        sys.exit(__doc__)
    wrong = [text for text in map(problem, chapters()) if text]
    wrong += [f"{path} has no chapter" for path in orphans()]
    print("\n".join(wrong) or f"{len(chapters())} twins in step")
    sys.exit(bool(wrong))
