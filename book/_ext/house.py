"""Draws the house, ``book/_static/house.svg``: floors and modules of the package, by its imports.

``python book/_ext/house.py`` writes it again; a test holds the file to what the imports say. A
floor imports no floor above it. Within a floor, a module stands one row above the highest module
that it imports; what is imported inside a function, when it is needed, moves nothing.
"""

import ast
import html
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "book" / "_static" / "house.svg"
# From the ground up: name, what it is for, and the packages and modules that belong to it.
FLOORS = (
    ("drocox", "the library: for your own data", ("drocox",)),
    ("drocox.paper", "the reproduction: only because of the paper", ("drocox.paper",)),
    ("drocox.beyond", "the studies of part V", ("drocox.beyond",)),
    (
        "the book's rooms",
        "values, drawings and checks of the chapters",
        (
            "drocox.narrow",
            "drocox.bookstyle",
            "drocox.explorables",
            "drocox.exercises",
            "drocox.chapters",
        ),
    ),
)
WHOLE = ("drocox.exercises", "drocox.explorables", "drocox.chapters")  # drawn as one box each
DOOR = "drocox.cli"  # the command line, which shows the commands of the floors above
WIDTH = 360
MARGIN = 10
LETTER = 6.7  # pixels, of the font in boxes
LINE = 28  # pixels from one row of boxes to the next
HEADING = 38


@cache
def modules():
    """Every module of the package by its name: the path of its source."""
    found = {}
    for path in sorted((ROOT / "drocox").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[-1] != "__init__":
            found[".".join(parts)] = path
    return found


def imported(tree, known):
    """Names of modules that a syntax tree imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found & set(known)


def at_once(path, known=None):
    """Modules that are imported as soon as the module at a path is."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return imported(ast.Module(top, []), known or modules())


def floor_of(name):
    """The number of the floor on which a module stands; the ground floor is 0."""
    for number in reversed(range(len(FLOORS))):
        for root in FLOORS[number][2]:
            if name == root or name.startswith(f"{root}."):
                return number
    raise LookupError(f"{name} stands on no floor")


def upward():
    """Imports that go up, which there must not be: pairs of names."""
    pairs = [(name, other) for name, path in modules().items() for other in at_once(path)]
    return [
        (name, other) for name, other in pairs if floor_of(other) > floor_of(name) and name != DOOR
    ]


@cache
def row_of(name):
    """How high above the ground of its floor a module stands."""
    below = [
        row_of(other) for other in at_once(modules()[name]) if floor_of(other) == floor_of(name)
    ]
    return 1 + max(below, default=-1)


def rows(number):
    """The boxes of a floor, row by row from its ground: a box is the words in it."""
    found = {}
    for name in modules():
        if floor_of(name) == number and not name.startswith(WHOLE):
            found.setdefault(row_of(name), []).append(name.rpartition(".")[2])
    whole = [package.partition(".")[2] for package in WHOLE if floor_of(package) == number]
    return [found[row] for row in sorted(found)] + [whole] * bool(whole)


def lines(boxes):
    """The boxes of a row on as many lines as they need, each a list of (x, width, words)."""
    done, x = [[]], MARGIN + 8
    for words in boxes:
        width = round(LETTER * len(words) + 12)
        if x + width > WIDTH - MARGIN - 8 and done[-1]:
            done.append([])
            x = MARGIN + 8
        done[-1].append((x, width, words))
        x += width + 6
    return done


def drawn():
    """The picture, as text: the roof on top, the library at the bottom."""
    parts, y = [], 4
    for number in reversed(range(len(FLOORS))):
        name, words, _ = FLOORS[number]
        body = []
        inside = y + HEADING
        for row in reversed(rows(number)):
            for line in lines(row):
                for x, width, label in line:
                    body.append(
                        f'<rect class="module" x="{x}" y="{inside}" width="{width}" height="22"'
                        f' rx="4"/><text x="{x + width / 2:g}" y="{inside + 15}"'
                        f' text-anchor="middle">{html.escape(label)}</text>'
                    )
                inside += LINE
            inside += 4
        height = inside - y + 2
        parts.append(
            f'<rect class="floor floor-{number}" x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}"'
            f' height="{height}" rx="6"/>\n'
            f'<text x="{MARGIN + 8}" y="{y + 16}" font-weight="600">{html.escape(name)}</text>\n'
            f'<text x="{MARGIN + 8}" y="{y + 31}">{html.escape(words)}</text>\n' + "\n".join(body)
        )
        y += height + 8
    says = "; ".join(f"{name}, {words}" for name, words, _ in FLOORS)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img"'
        ' aria-labelledby="house-title house-text" font-size="12" fill="currentColor"'
        ' style="display:block;width:100%;max-width:460px;margin:1rem 0">\n'
        '<title id="house-title">Floors and modules of the package</title>\n'
        f'<desc id="house-text">From the ground up: {html.escape(says)}. In each floor a module'
        " imports only modules of the rows below it.</desc>\n"
        "<style>.floor { fill: currentColor; fill-opacity: .04; stroke: currentColor;"
        " stroke-opacity: .5 } .module { fill: currentColor; fill-opacity: .09 }</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf8")
