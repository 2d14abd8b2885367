"""The executed twin X.ipynb beside each chapter X.md: opened on Colab and Binder, run by nbval.

A twin has a first cell that installs the package on Colab, the cells of its chapter, with the text
in plain Markdown (:mod:`plain`), the outputs of the last build that changed them, and the platform
they were computed on: digits far behind the point differ between processors. Nothing else in it
depends on when or where it was made. `make book` refreshes twins, see :func:`refresh`.

    python book/_ext/twins.py --check    exit 1 if a twin is missing, stale or unexecuted
"""

import copy
import hashlib
import itertools
import platform
import re
import sys
from pathlib import Path

import nbformat

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
PICTURE = ROOT / "book" / "_static" / "verdict.svg"  # of the README


def here():
    """The platform of this process, such as "Linux x86_64"."""
    return f"{platform.system()} {platform.machine()}"


def made_on(notebook):
    """The platform on which a twin's outputs were computed."""
    return notebook.metadata.drocox.platform


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
    twin.metadata = nbformat.from_dict(METADATA | {"drocox": {"platform": here()}})
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
            output.get("metadata", {}).pop("execution", None)
    return twin


def dumps(twin):
    """The text of a twin's file."""
    nbformat.validate(twin)
    return nbformat.writes(twin, version=4, indent=1, sort_keys=True).rstrip("\n") + "\n"


def write(twin, path):
    """Write a twin."""
    path.write_text(dumps(twin), encoding="utf8")


def without_figures(outputs):
    """Outputs of cells without their figures, whose last digits differ between platforms."""
    outputs = copy.deepcopy(outputs)
    for output in itertools.chain.from_iterable(outputs):
        for content in (output.get("data", {}), output.get("metadata", {})):
            content.pop(SVG, None)
    return outputs


def refresh(source, executed):
    """Write the twin of an executed chapter if text, code or outputs have changed; return whether.

    A twin of another platform keeps its figures if everything printed by the cells is the same:
    otherwise building an unchanged book would change files.
    """
    path = source.with_suffix(".ipynb")
    new = skeleton(source, [cell.outputs for cell in code_cells(executed)])
    if path.exists():
        old = load(path)
        known = outputs(source)
        found = [cell.outputs for cell in code_cells(new)[1:]]
        if (
            known is not None
            and made_on(old) != here()
            and without_figures(known) == without_figures(found)
        ):
            new = skeleton(source, known)
            new.metadata = old.metadata
        if dumps(old) == dumps(new):
            return False
    write(new, path)
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
    wanted.metadata.drocox.platform = made_on(found)
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
