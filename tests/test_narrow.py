"""Figures for phones: panels below each other, labels and legends where they are needed."""

import base64
import gzip
import hashlib
import re
import sys
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn

from drocox import narrow

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import figures  # noqa: E402
import golden  # noqa: E402
import plain  # noqa: E402


@pytest.fixture(autouse=True)
def usual_letters():
    """Whatever style other tests have left: room and words are those of Matplotlib's own."""
    with plt.rc_context():
        plt.rcdefaults()
        yield
    plt.close("all")


def forest(columns):
    """Panels of one row that share the names of their rows."""
    figure, axes = plt.subplots(1, columns, figsize=(9, 3), sharey=True, layout="constrained")
    for k, panel in enumerate(axes):
        panel.errorbar([k, 2, 3], [0, 1, 2], xerr=1, fmt="o", label="a model")
        panel.set_title(f"metric {k}")
    axes[0].set_yticks([0, 1, 2], ["first", "second", "third"])
    axes[0].set_ylabel("rows")
    axes[1].set_xlabel("points")
    return figure, axes


def names_of_rows(panel):
    return [label.get_text() for label in panel.get_yticklabels() if label.get_visible()]


def boxes(figure):
    figure.canvas.draw()
    return [panel.get_position() for panel in figure.axes]


def test_three_panels_stand_below_each_other_each_with_names_and_labels():
    figure, axes = forest(3)
    narrow.make_narrow(figure)
    places = boxes(figure)
    assert figure.get_figwidth() == narrow.WIDTH and figure.get_figheight() == 9
    for upper, lower in pairwise(places):
        assert upper.y0 > lower.y1 and upper.x0 == pytest.approx(lower.x0)
    for panel in axes:
        assert names_of_rows(panel) == ["first", "second", "third"]
        assert (panel.get_xlabel(), panel.get_ylabel()) == ("points", "rows")


def test_four_panels_that_share_rows_share_them_in_pairs():
    figure, axes = forest(4)
    narrow.make_narrow(figure)
    places = boxes(figure)
    assert places[0].y0 == pytest.approx(places[1].y0) and places[1].y0 > places[2].y1
    assert [bool(names_of_rows(panel)) for panel in axes] == [True, False, True, False]
    assert [panel.get_ylabel() for panel in axes] == ["rows", "", "rows", ""]


def test_two_rows_become_two_columns():
    figure, axes = plt.subplots(2, 3, figsize=(9, 5), sharex="col", layout="constrained")
    for k, panel in enumerate(axes[0]):
        panel.set_title(f"data {k}")
        axes[1, k].set_xlabel(f"a label of many words {k}")
    axes[0, 0].set_ylabel("c-index")
    axes[1, 0].set_ylabel("CI")
    narrow.make_narrow(figure)
    places = boxes(figure)
    assert figure.get_figheight() == 7.5
    for k in range(3):
        left, right = places[k], places[k + 3]
        assert left.y0 == pytest.approx(right.y0) and left.x1 < right.x0
        assert axes[1, k].get_title() == f"data {k}"
        assert [panel.get_ylabel() for panel in axes[:, k]] == ["c-index", "CI"]
        assert [panel.get_xlabel() for panel in axes[:, k]] == 2 * [f"a label of many words {k}"]


def test_words_of_two_columns_are_broken_and_crowded_numbers_thinned():
    figure, axes = plt.subplots(2, 2, figsize=(9, 5), layout="constrained")
    title = axes[0, 0].set_title("a title that is longer than a column", fontsize=9)
    axes[1, 1].set_xticks(
        [0.1, 0.2, 0.3, 0.4], ["0.1000000", "0.2000000", "0.3000000", "0.4000000"]
    )
    narrow.make_narrow(figure)
    assert title.get_text().count("\n") == 1 and title.get_fontsize() == 9
    shown = [label.get_text() for label in axes[1, 1].get_xticklabels()]
    assert shown == ["0.1000000", "0.3000000"]


def test_words_that_collide_are_turned_and_their_panel_keeps_its_height():
    names = ["FLC\nage", "SUPPORT\ngender", "SUPPORT\nrace", "after-\nwards"] * 2
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(6.4, 4), sharex=True, layout="constrained")
    lower.set_xticks(range(8), names)
    before = 4 * upper.get_position().height
    narrow.make_narrow(figure)
    shown = [label.get_text() for label in lower.get_xticklabels()]
    assert shown[:4] == ["FLC age", "SUPPORT gender", "SUPPORT race", "afterwards"]
    assert {label.get_rotation() for label in lower.get_xticklabels()} == {90}
    assert not narrow.collide(narrow.labels_below(lower))
    height = figure.get_figheight()
    assert height > 4.3 and height * upper.get_position().height > 0.9 * before


def test_titles_that_collide_are_broken():
    figure, axes = forest(4)
    axes[0].set_yticks([0, 1, 2], ["DRO-COX (SPLIT), sharp 0.5"] * 3)
    for panel in axes:
        panel.set_title("own c-index, over 65")
    narrow.make_narrow(figure)
    for left, right in (axes[:2], axes[2:]):
        assert not narrow.collide([left.title, right.title])
        assert left.get_title().replace("\n", " ") == "own c-index, over 65"


def test_a_scale_has_two_numbers_that_do_not_collide():
    figure, axes = forest(4)
    axes[0].set_yticks([0, 1, 2], ["DRO-COX (SPLIT), sharp 0.5"] * 3)
    for panel, reach in zip(axes, (4, 40, 0.3, 2.6), strict=True):
        panel.set_xlim(-reach, reach)
    narrow.make_narrow(figure)
    for panel in axes:
        labels = narrow.labels_below(panel)
        assert len(labels) >= 2 and not narrow.collide(labels)


def test_a_corner_that_was_left_empty_is_filled():
    figure, axes = plt.subplots(3, 3, figsize=(6.4, 6.4), layout="constrained")
    axes[0, 2].set_visible(False)
    axes[2, 1].set_visible(False)
    narrow.make_narrow(figure)
    assert len(figure.axes) == 7
    assert sorted(narrow.panels_by_place(figure)) == [divmod(k, 2) for k in range(7)]


def test_one_panel_only_becomes_narrower():
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    axes.set_title("alone")
    narrow.make_narrow(figure)
    assert tuple(figure.get_size_inches()) == (narrow.WIDTH, 3.6)
    assert axes.get_title() == "alone"


def test_a_legend_is_folded_and_keeps_its_markers():
    figure, axes = forest(2)
    handles = [axes[0].errorbar([0], [0], xerr=1, fmt="o", label=f"a long name {k}") for k in "abc"]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    narrow.make_narrow(figure)
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"a long name {k}" for k in "abc"]
    assert legend.get_window_extent().width < figure.bbox.width
    assert boxes(figure)[0].y1 < legend.get_window_extent().y0 / figure.bbox.height


def test_both_drawings_are_the_same_on_every_run():
    seen = set()
    for _ in range(2):
        with plt.rc_context({"svg.hashsalt": "drocox"}):
            wide, about = narrow.svg_and_narrow(forest(3)[0])
        drawn = gzip.decompress(base64.b64decode(about[narrow.NARROW])).decode("utf8")
        seen.add(hashlib.sha256((wide + drawn).encode("utf8")).hexdigest())
    assert len(seen) == 1
    assert figures.size(wide)[0] > figures.WIDE >= figures.size(drawn)[0]


def test_a_small_figure_has_no_second_drawing():
    assert narrow.svg_and_narrow(plt.figure(figsize=(4, 3)))[1] == {}


def test_the_build_finds_the_narrow_variant_of_a_figure(tmp_path):
    source = tmp_path / "chapter.md"
    twin = ROOT / "book" / "method" / "dual.md"
    source.write_text(twin.read_text(encoding="utf8"), encoding="utf8")
    wide, about = narrow.svg_and_narrow(forest(3)[0])
    notebook = plain.read(source)
    output = nbformat.v4.new_output(
        "display_data", data={figures.SVG: wide}, metadata={figures.SVG: about}
    )
    cells = golden.code_cells(notebook)
    for cell in cells:
        cell.execution_count = 1
    cells[-1].outputs = [output]
    folder = str(tmp_path / "cache")
    assert figures.narrow_variants(source, folder) == {}
    bundle = CacheBundleIn(notebook, str(source), data={"execution_seconds": 0.0})
    get_cache(folder).cache_notebook_bundle(bundle, check_validity=False)
    ((of_page, variant),) = figures.narrow_variants(source, folder).items()
    assert of_page == "\n".join(wide.splitlines())
    assert re.search(r"<svg[^>]*>", variant) and figures.size(variant)[0] <= figures.WIDE
