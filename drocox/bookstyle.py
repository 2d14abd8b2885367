"""Imports shared by all chapters of the book: figure style, soft asserts, the six patients.

Figures are SVG files with reproducible bytes. An ``assert`` checks a conclusion of the text against
its numbers: in the build and in tests it fails; for readers who change a number it prints a note.
"""

import ast
import os

import matplotlib.pyplot as plt
from IPython import get_ipython
from matplotlib_inline.backend_inline import set_matplotlib_formats

from drocox.exercises.patients import SIX  # noqa: F401, chapters import it from here

# Okabe and Ito's palette without yellow and black: distinct for colour-blind readers, on white and
# on black. The book's style sheet adjusts each to the ground (--dc-0, --dc-1, ...).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


class _Guards(ast.NodeTransformer):
    """Turns ``assert test`` into ``if not test: print(note)``."""

    def visit_Assert(self, node):
        note = f"Note: `{ast.unparse(node.test)}` does not hold now; the text has other numbers."
        printing = ast.parse(f"print({note!r})").body
        guard = ast.If(ast.UnaryOp(ast.Not(), node.test), printing, [])
        return ast.fix_missing_locations(ast.copy_location(guard, node))


def use_book_style() -> None:
    """Draw inline figures as reproducible SVG, and turn asserts into notes for interactive readers.

    With ``DROCOX_STRICT`` in the environment, as in the build and in tests, asserts stay asserts.
    """
    shell = get_ipython()
    # no date, so that the bytes do not change; little padding, so that five inches stay five inches
    set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None}, pad_inches=0.02)
    if shell is not None and not os.environ.get("DROCOX_STRICT"):
        shell.ast_transformers.append(_Guards())
    plt.rcParams.update(
        {
            "svg.hashsalt": "drocox",
            "svg.fonttype": "path",
            "figure.figsize": (5, 3),
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "axes.prop_cycle": plt.cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "font.size": 11,
        }
    )
