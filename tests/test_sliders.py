"""Sliders: what the page shows at first, and the numbers that its script draws from."""

import json
import re

import numpy as np
import pytest

from drocox import sliders


def data_of(figure):
    data = re.search(r'<script type="application/json">(.*?)</script>', figure.markup)
    return json.loads(data[1])


def test_frames_show_the_start_and_hold_the_rest():
    pictures = ['<circle r="1"/>', '<circle r="2"/>', '<circle r="3"/>']
    said = {"radius": ["one", "two", "three"]}
    figure = sliders.frames(
        "disc", "r", ["1", "2", "3"], pictures, alt="a disc", size=(9, 9), readouts=said, start=2
    )
    assert '<g data-frames><circle r="3"/></g>' in figure.markup
    assert "radius: <output>three</output>" in figure.markup
    assert data_of(figure)["frames"] == pictures
    assert figure.markup.count('type="range"') == 1
    with pytest.raises(ValueError, match="3 pictures for 2 values"):
        sliders.frames("disc", "r", ["1", "2"], pictures, alt="a disc", size=(9, 9))


def test_a_slider_that_follows_has_no_inputs():
    shared = {"a": np.arange(3)}
    rows = np.arange(12.0).reshape(3, 4)
    lead = sliders.slider("lead", shared, np.arange(4), {"y": rows}, alt="a line")
    bars = sliders.slider(
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
    assert sliders._Frame.LEFT < first - half and last + half < sliders._Frame.RIGHT
    both = sliders.beside(lead, bars)
    assert both.markup.index('id="slider-lead"') < both.markup.index('id="slider-bars"')
