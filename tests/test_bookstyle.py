"""Guards of sentences: asserts in the build and in tests, notes for readers."""

import json
import re

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from drocox import bookstyle


@pytest.fixture
def shell(monkeypatch):
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    monkeypatch.setattr(bookstyle, "get_ipython", lambda: shell)
    monkeypatch.setattr(bookstyle, "set_matplotlib_formats", lambda *a, **k: None)
    return shell


def test_a_reader_is_told_and_goes_on(shell, monkeypatch, capsys):
    monkeypatch.delenv("DROCOX_STRICT", raising=False)
    bookstyle.use_book_style()
    result = shell.run_cell("alpha = 0.3\nassert alpha == 0.2, 'written for 0.2'\nreached = True")
    assert result.success and shell.user_ns["reached"]
    assert "`alpha == 0.2` does not hold now" in capsys.readouterr().out
    assert shell.run_cell("assert alpha == 0.3").success
    assert capsys.readouterr().out == ""


def test_the_build_stops(shell, monkeypatch, capsys):
    monkeypatch.setenv("DROCOX_STRICT", "1")
    bookstyle.use_book_style()
    assert isinstance(shell.run_cell("assert 1 == 2").error_in_exec, AssertionError)


def data_of(figure):
    data = re.search(r'<script type="application/json">(.*?)</script>', figure.markup)
    return json.loads(data[1])


def test_frames_show_the_start_and_hold_the_rest():
    pictures = ['<circle r="1"/>', '<circle r="2"/>', '<circle r="3"/>']
    said = {"radius": ["one", "two", "three"]}
    figure = bookstyle.frames(
        "disc", "r", ["1", "2", "3"], pictures, alt="a disc", size=(9, 9), readouts=said, start=2
    )
    assert '<g data-frames><circle r="3"/></g>' in figure.markup
    assert "radius: <output>three</output>" in figure.markup
    assert data_of(figure)["frames"] == pictures
    assert figure.markup.count('type="range"') == 1
    with pytest.raises(ValueError, match="3 pictures for 2 values"):
        bookstyle.frames("disc", "r", ["1", "2"], pictures, alt="a disc", size=(9, 9))


def test_a_slider_that_follows_has_no_inputs():
    shared = {"a": np.arange(3)}
    rows = np.arange(12.0).reshape(3, 4)
    lead = bookstyle.slider("lead", shared, np.arange(4), {"y": rows}, alt="a line")
    bars = bookstyle.slider(
        "bars",
        shared,
        np.arange(4),
        {"y": rows},
        alt="bars",
        bars=("y",),
        ticks={0: "first", 3: "last"},
        follows="lead",
    )
    assert "<input" in lead.markup and "<input" not in bars.markup
    assert data_of(bars)["follows"] == "lead" == data_of(lead)["follows"]
    assert re.findall(r">(first|last)</text>", bars.markup) == ["first", "last"]
    first, *_, last = data_of(bars)["x"]
    half = float(re.search(r'stroke-width="([\d.]+)"', bars.markup)[1]) / 2
    assert bookstyle._Frame.LEFT < first - half and last + half < bookstyle._Frame.RIGHT
    both = bookstyle.beside(lead, bars)
    assert both.markup.index('id="slider-lead"') < both.markup.index('id="slider-bars"')
