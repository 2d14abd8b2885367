"""Write the executed twin X.ipynb beside each chapter X.md, from the cache of the last build.

    python book/_ext/golden.py           write every twin (run after the book is built)
    python book/_ext/golden.py --check   exit 1 if a twin is missing, stale, unexecuted or orphaned

A twin has a first cell that installs the package on Colab, the cells of its chapter, with the text
in plain Markdown (:mod:`plain`), the outputs that the built page shows, and the platform they were
computed on: digits far behind the point differ between processors. It has nothing else that depends
on when or where it was made: writing it twice gives the same bytes.
"""

import argparse
import hashlib
import re
import sys
from pathlib import Path

import nbformat
from jupyter_cache import get_cache

sys.path.insert(0, str(Path(__file__).parent))
import plain
from cache_key import ROOT, cache_path, here, made_on
from plain import read

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
PICTURE = ROOT / "book" / "_static" / "verdict.svg"
# What must not get into a tracked file: addresses of objects, folders of this machine.
PERSONAL = re.compile(r"\bat 0x[0-9a-f]{6,}|site-packages|/tmp/ipykernel|/home/\w+|/Users/\w+")


class Stale(Exception):
    """A twin that does not match its chapter or the cache."""


def pages(root=ROOT):
    """Every page that the table of contents names, as a path to its source."""
    return list(plain.pages(root))


def chapters(root=ROOT):
    """The pages that have code cells."""
    return [page for page in pages(root) if code_cells(read(page))]


def code_cells(notebook):
    """The cells that are executed."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def twin_cells(source):
    """The executed cells of a chapter's twin, but for the first, which is for Colab."""
    twin = source.with_suffix(".ipynb")
    return code_cells(nbformat.read(twin, as_version=4))[1:] if twin.exists() else []


def skeleton(source, outputs, root=ROOT):
    """The twin of a chapter: cells, stable ids, pinned metadata, and outputs given code cell by
    code cell, from which the numbers in its sentences are taken.
    """
    notebook = read(source)
    for cell, cell_outputs in zip(code_cells(notebook), outputs, strict=True):
        cell.outputs = cell_outputs
    notebook.nbformat = 4
    notebook.nbformat_minor = 5
    notebook.metadata = nbformat.from_dict(METADATA | {"drocox": {"platform": here()}})
    first = nbformat.v4.new_code_cell(COLAB.strip(), metadata={"jupyter": {"source_hidden": True}})
    notebook.cells = [first, *plain.cells(notebook, source, plain.values(notebook), root)]
    seen = {}
    for cell in notebook.cells:
        name = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        seen[name] = seen.get(name, 0) + 1
        cell.id = name if seen[name] == 1 else f"{name}-{seen[name]}"
    for count, cell in enumerate(code_cells(notebook), start=1):
        cell.execution_count = count
        cell.outputs = [tidy(output, count) for output in merged(cell.outputs)]
    return notebook


def executed_notebook(source, root=ROOT, cache=None):
    """The twin, filled from a cache; by default the one of today's package and results."""
    name = source.relative_to(root)
    as_built = read(source)
    try:
        _, as_built = get_cache(str(cache or cache_path(root))).merge_match_into_notebook(as_built)
    except KeyError:
        raise Stale(f"{name}: not built with today's cells, package and results") from None
    notebook = skeleton(source, [cell.outputs for cell in code_cells(as_built)], root)
    for count, cell in enumerate(code_cells(notebook), start=1):
        found = PERSONAL.search(str(cell.outputs))
        if found or str(root) in str(cell.outputs):
            what = found.group() if found else "the folder of the repository"
            raise Stale(f"{name}, code cell {count}: the output shows {what}, different elsewhere")
    return notebook


def merged(outputs):
    """Join neighbouring pieces of one stream: where they were cut depends on timing."""
    result = []
    for output in outputs:
        if (
            result
            and output.output_type == result[-1].output_type == "stream"
            and output.name == result[-1].name
        ):
            result[-1].text += output.text
        else:
            result.append(output)
    return result


def tidy(output, count):
    if output.output_type == "execute_result":
        output.execution_count = count
    if "metadata" in output:
        output.metadata = nbformat.from_dict(
            {key: value for key, value in output.metadata.items() if key != "execution"}
        )
    return output


def write(notebook, path):
    nbformat.validate(notebook)
    path.write_text(dumps(notebook), encoding="utf8")


def dumps(notebook):
    return nbformat.writes(notebook, version=4, indent=1, sort_keys=True).rstrip("\n") + "\n"


def problems(source, root=ROOT, twin=None):
    """Why the twin of a chapter is not in order, in words; empty if it is."""
    twin = twin or source.with_suffix(".ipynb")
    name = source.relative_to(root)
    if not twin.exists():
        return [f"{name}: no twin"]
    text = twin.read_text(encoding="utf8")
    found = nbformat.reads(text, as_version=4)
    outputs = [cell.outputs for cell in code_cells(found)[1:]]  # the first is for Colab
    if len(outputs) != len(code_cells(read(source))):
        return [f"{name}: the twin has other code cells"]
    try:
        wanted = skeleton(source, outputs, root)
    except plain.Untranslated as error:
        return [str(error)]
    bad = []
    if made_on(found):
        wanted.metadata.drocox.platform = made_on(found)  # any platform will do, none will not
    if dumps(found) != text:
        bad.append(f"{name}: the twin was not written by this script")
    if found.metadata != wanted.metadata:
        bad.append(f"{name}: the twin's metadata differ")
    if len(found.cells) != len(wanted.cells):
        return [*bad, f"{name}: {len(wanted.cells)} cells, the twin has {len(found.cells)}"]
    for index, (have, want) in enumerate(zip(found.cells, wanted.cells, strict=True)):
        for key in ("cell_type", "source", "id", "metadata", "execution_count"):
            if have.get(key) != want.get(key):
                bad.append(f"{name}: {key} of cell {index} differs")
    return bad


def orphans(root=ROOT):
    twins = {chapter.with_suffix(".ipynb") for chapter in chapters(root)}
    return [
        path
        for path in sorted((root / "book").rglob("*.ipynb"))
        if path not in twins and ".ipynb_checkpoints" not in path.parts
    ]


def figure_name(cell):
    """The label of the figure that a cell draws, or an empty string."""
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "")


def front_picture(root=ROOT):
    """The forest plot of fourteen gaps, on white ground, for the README."""
    chapter = root / "book" / "verdict" / "should-you-use-it.ipynb"
    cells = nbformat.read(chapter, as_version=4).cells
    (cell,) = [cell for cell in cells if figure_name(cell) == "fig-use-gaps"]
    svg = next(o.data["image/svg+xml"] for o in cell.outputs if "image/svg+xml" in o.data)
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return re.sub(r"(<svg[^>]*>)", lambda tag: tag.group() + ground, svg, count=1)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, report what is wrong")
    options = parser.parse_args(arguments)
    if options.check:
        bad = [problem for chapter in chapters() for problem in problems(chapter)]
        bad += [f"{path.relative_to(ROOT)}: no chapter of this name" for path in orphans()]
        print("\n".join(bad) or f"{len(chapters())} twins in step")
        return 1 if bad else 0
    failed = False
    for chapter in chapters():
        twin = chapter.with_suffix(".ipynb")
        before = twin.read_text(encoding="utf8") if twin.exists() else None
        try:
            write(executed_notebook(chapter), twin)
        except Stale as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        state = "unchanged" if twin.read_text(encoding="utf8") == before else "written"
        print(f"{twin.relative_to(ROOT)}: {state}")
    PICTURE.write_text(front_picture(), encoding="utf8")
    for path in orphans():
        print(f"{path.relative_to(ROOT)}: no chapter of this name; delete it or move it away")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
