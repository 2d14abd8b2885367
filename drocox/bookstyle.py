"""What every chapter of the book uses: its style, soft asserts, six patients.

Figures are SVG with reproducible bytes. An ``assert`` holds a sentence to its numbers: in the build
and in tests it stops, elsewhere a reader who has changed a number is told and goes on.

Chapters import what they need of this in their first cell.
"""

import ast
import os

import matplotlib.pyplot as plt
from IPython import get_ipython
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats

from drocox.exercises.patients import SIX  # noqa: F401, chapters import it from here
from drocox.narrow import ABOUT, svg_and_narrow

# Okabe and Ito's palette without yellow and black: distinct for colour-blind readers, on white and
# on black. The book's style sheet adjusts each to the ground (--dc-0, --dc-1, ...).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


class _Guards(ast.NodeTransformer):
    """Turns ``assert test`` into ``if not test: say so``."""

    def visit_Assert(self, node):
        note = f"Note: `{ast.unparse(node.test)}` does not hold now; the text has other numbers."
        printing = ast.parse(f"print({note!r})").body
        guard = ast.If(ast.UnaryOp(ast.Not(), node.test), printing, [])
        return ast.fix_missing_locations(ast.copy_location(guard, node))


def use_book_style() -> None:
    """Draw inline figures as SVG whose bytes depend on the picture alone; soften the guards.

    With ``DROCOX_STRICT`` in the environment, as in the build and in tests, guards stay asserts;
    with ``DROCOX_NARROW``, as in the build, a figure comes with its variant for phones.
    """
    shell = get_ipython()
    set_matplotlib_formats("svg", metadata=ABOUT)
    if shell is not None and os.environ.get("DROCOX_NARROW"):
        pictures = shell.display_formatter.formatters["image/svg+xml"]
        pictures.for_type(Figure, svg_and_narrow)
    if shell is not None and not os.environ.get("DROCOX_STRICT"):
        shell.ast_transformers.append(_Guards())
    plt.rcParams.update(
        {
            "svg.hashsalt": "drocox",
            "svg.fonttype": "path",
            "figure.figsize": (6.4, 3.6),
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


def guard(holds: bool, sentence: str) -> None:
    """Hold a sentence of the book to its numbers.

    With ``DROCOX_STRICT`` in the environment, as in the build and in tests, a sentence that does
    not hold is an error; elsewhere the reader is told and goes on.

    Parameters
    ----------
    holds : bool
        Whether the numbers bear the sentence out.
    sentence : str
        What the chapter says.
    """
    if holds:
        return
    note = f"the text says {sentence!r}, which does not hold for these numbers"
    if os.environ.get("DROCOX_STRICT"):
        raise AssertionError(note)
    print(f"Note: {note}.")
