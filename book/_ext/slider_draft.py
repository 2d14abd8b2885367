"""Figures for static pages: reproducible SVG, and sliders that need no server and no library.

Draft of two functions for ``drocox.figures``.
"""

import html
import itertools
import json

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from matplotlib_inline.backend_inline import set_matplotlib_formats

# Okabe and Ito's palette, without yellow: distinct for colour-blind readers, on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2")


def use_book_style():
    """Draw inline figures as SVG whose bytes depend on the picture alone."""
    set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None})
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


class SliderFigure:
    """HTML of a slider, with a sentence in its place where only text is shown."""

    def __init__(self, markup, description):
        self.markup = markup
        self.description = description

    def _repr_html_(self):
        return self.markup

    def __repr__(self):
        return f"<interactive figure: {self.description}>"


def slider(name, controls, x, curves, *, alt, xlabel="", ylabel="", start=None, marks=None,
           readouts=None, ylim=None, bars=(), formats=None):
    r"""A line chart with one range input per control, everything computed beforehand.

    Parameters
    ----------
    name : str
        Unique in the chapter; the HTML id is ``slider-<name>``.
    controls : dict of str to array
        Label and the values that its slider steps through.
    x : array of shape (m,)
    curves : dict of str to array
        Shape ``(m,)`` for a curve that stays, ``(*sizes of the controls, m)`` for one that moves.
    alt : str
        What the picture shows, for those who do not see it.
    start : dict of str to int, optional
        Index at which each slider starts; the middle by default. The picture for these values is
        part of the page, so it is there without JavaScript and in print.
    marks : dict of str to array, optional
        Vertical lines: a position for each combination of the controls.
    readouts : dict of str to array, optional
        Numbers shown below the sliders, one for each combination.
    bars : collection of str
        Curves drawn as bars from zero.
    formats : dict of str to str, optional
        Format of a control's or readout's values; ``"{:.3g}"`` by default.

    Returns
    -------
    SliderFigure
        Shown by a notebook. No other host is asked for anything; equal input gives equal bytes.
    """
    start, marks, readouts, formats = start or {}, marks or {}, readouts or {}, formats or {}
    labels = list(controls)
    sizes = [len(controls[label]) for label in labels]
    index = [int(start.get(label, size // 2)) for label, size in zip(labels, sizes)]
    flat = int(np.ravel_multi_index(index, sizes))
    x = np.asarray(x, dtype=float)
    curves = {key: np.asarray(value, dtype=float) for key, value in curves.items()}
    for key, value in curves.items():
        if value.shape not in {(len(x),), (*sizes, len(x))}:
            raise ValueError(f"curve {key!r} has shape {value.shape}, expected {(len(x),)} or {(*sizes, len(x))}")
    for key, value in itertools.chain(marks.items(), readouts.items()):
        if np.shape(value) != tuple(sizes):
            raise ValueError(f"{key!r} has shape {np.shape(value)}, expected {tuple(sizes)}")

    # Pixels. Small enough that the labels can be read on a phone.
    width, height, left, right, top, bottom = 520, 320, 54, 12, 12, 46
    finite = np.concatenate([value[np.isfinite(value)].ravel() for value in curves.values()])
    low, high = ylim if ylim is not None else (min(finite.min(), 0 if bars else np.inf), finite.max())
    pad = 0.0 if ylim is not None else 0.04 * (high - low or 1.0)
    low, high = low - (0 if bars and low == 0 else pad), high + pad

    def px(value):
        return left + (np.asarray(value, float) - x.min()) / (x.max() - x.min()) * (width - left - right)

    def py(value):
        share = np.clip((np.asarray(value, float) - low) / (high - low), -0.5, 1.5)
        return height - bottom - share * (height - top - bottom)

    xs, base = [round(float(v), 1) for v in px(x)], round(float(py(max(low, min(0.0, high)))), 1)

    def path(ys, kind):
        pieces = []
        for a, b in zip(xs, ys):
            if b is None:
                continue
            if kind == "bars":
                pieces.append(f"M{a:g} {base:g}V{b:g}")
            else:
                pieces.append(f"{'L' if pieces else 'M'}{a:g} {b:g}")
        return "".join(pieces)

    def pixels(row):
        return [round(float(v), 1) if np.isfinite(v) else None for v in py(row)]

    def text(value, label):
        return formats.get(label, "{:.3g}").format(value).replace("-", "\u2212")

    svg, legend, moving = [], [], []
    for tick in MaxNLocator(6).tick_values(x.min(), x.max()):
        if x.min() - 1e-12 <= tick <= x.max() + 1e-12:
            svg.append(f'<text x="{px(tick):.1f}" y="{height - bottom + 20}" text-anchor="middle">{text(tick, "")}</text>')
    for tick in MaxNLocator(5).tick_values(low, high):
        if low - 1e-12 <= tick <= high + 1e-12:
            y = float(py(tick))
            svg.append(f'<path d="M{left} {y:.1f}H{width - right}" stroke="currentColor" stroke-opacity=".15"/>')
            svg.append(f'<text x="{left - 8}" y="{y + 5:.1f}" text-anchor="end">{text(tick, "")}</text>')
    svg.append(f'<path d="M{left} {top}V{height - bottom}H{width - right}" fill="none" stroke="currentColor"/>')
    svg.append(f'<text x="{(left + width - right) / 2:.1f}" y="{height - 6}" text-anchor="middle">{html.escape(xlabel)}</text>')
    svg.append(f'<text transform="translate(14 {(top + height - bottom) / 2:.1f}) rotate(-90)" text-anchor="middle">{html.escape(ylabel)}</text>')
    svg.append(f'<svg x="{left}" y="{top}" width="{width - left - right}" height="{height - top - bottom}" '
               f'viewBox="{left} {top} {width - left - right} {height - top - bottom}">')
    for number, (key, value) in enumerate(curves.items()):
        kind = "bars" if key in bars else "line"
        colour, dash = COLOURS[number % 6], DASHES[number % 6] if kind == "line" else ""
        ink = f'style="color:var(--dc-{number % 6},{colour})" stroke="currentColor" stroke-width="2.5" stroke-dasharray="{dash}" fill="none"'
        if value.ndim == 1:
            svg.append(f'<path {ink} d="{path(pixels(value), kind)}"/>')
        else:
            rows = [pixels(row) for row in value.reshape(-1, len(x))]
            svg.append(f'<path {ink} data-curve="{len(moving)}" d="{path(rows[flat], kind)}"/>')
            moving.append({"kind": kind, "y": rows})
        legend.append(f'<span style="white-space:nowrap"><svg width="28" height="10" aria-hidden="true"><path {ink} d="M1 5H27"/></svg> {html.escape(key)}</span>')
    lines = []
    for number, (key, value) in enumerate(marks.items()):
        positions = [round(float(v), 1) for v in px(np.ravel(value))]
        svg.append(f'<path data-mark="{number}" d="M{positions[flat]:g} 0V{height}" stroke="currentColor" stroke-width="1.5" stroke-dasharray="3 3"/>')
        legend.append(f'<span style="white-space:nowrap">┆ {html.escape(key)}</span>')
        lines.append(positions)
    svg.append("</svg>")

    inputs = []
    for label, size, position in zip(labels, sizes, index):
        shown = text(controls[label][position], label)
        inputs.append(
            f'<label style="display:flex;gap:.75em;align-items:center"><span style="min-width:7.5em">{html.escape(label)} = '
            f'<output>{shown}</output></span><input type="range" min="0" max="{size - 1}" step="1" value="{position}" '
            f'aria-valuetext="{shown}" style="flex:1;min-width:0"></label>'
        )
    numbers = [
        f'<span style="white-space:nowrap">{html.escape(key)}: <output>{text(np.ravel(value)[flat], key)}</output></span>'
        for key, value in readouts.items()
    ]
    data = {
        "sizes": sizes,
        "values": [[text(v, label) for v in controls[label]] for label in labels],
        "x": xs,
        "base": base,
        "height": height,
        "curves": moving,
        "marks": lines,
        "readouts": [[text(v, key) for v in np.ravel(value)] for key, value in readouts.items()],
    }
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("</", "<\\/")
    if len(packed) > 400_000:
        raise ValueError(f"{len(packed)} bytes of data: take fewer values of the controls or fewer points")
    row = 'style="display:flex;flex-wrap:wrap;gap:.2em 1.4em;margin:.3em 0"'
    markup = (
        f'<div class="slider-figure tex2jax_ignore" id="slider-{name}" role="group" aria-label="{html.escape(alt)}">'
        f'<svg viewBox="0 0 {width} {height}" width="100%" style="max-width:640px;display:block" font-size="14" fill="currentColor" role="img">'
        f'<title>{html.escape(alt)}</title>{"".join(svg)}</svg>'
        f'<div {row}>{"".join(legend)}</div><div style="max-width:640px">{"".join(inputs)}</div>'
        f'<div class="slider-readouts" aria-live="polite" {row}>{"".join(numbers)}</div>'
        f'<script type="application/json">{packed}</script><script>{SCRIPT.replace("NAME", name)}</script></div>'
    )
    return SliderFigure(markup, alt)


SCRIPT = """(function () {
  var root = document.getElementById("slider-NAME");
  if (!root) return;
  var data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  var all = function (what) { return Array.prototype.slice.call(root.querySelectorAll(what)); };
  var inputs = all("input"), shown = all("label output"), numbers = all(".slider-readouts output");
  function path(ys, kind) {
    var d = "";
    ys.forEach(function (y, i) {
      if (y === null) return;
      d += kind === "bars" ? "M" + data.x[i] + " " + data.base + "V" + y
                           : (d ? "L" : "M") + data.x[i] + " " + y;
    });
    return d;
  }
  function draw() {
    var at = 0;
    inputs.forEach(function (input, i) {
      at = at * data.sizes[i] + Number(input.value);
      shown[i].textContent = data.values[i][input.value];
      input.setAttribute("aria-valuetext", data.values[i][input.value]);
    });
    data.curves.forEach(function (curve, i) {
      root.querySelector('[data-curve="' + i + '"]').setAttribute("d", path(curve.y[at], curve.kind));
    });
    data.marks.forEach(function (mark, i) {
      root.querySelector('[data-mark="' + i + '"]').setAttribute("d", "M" + mark[at] + " 0V" + data.height);
    });
    data.readouts.forEach(function (values, i) { numbers[i].textContent = values[at]; });
  }
  inputs.forEach(function (input) { input.addEventListener("input", draw); });
})();"""
