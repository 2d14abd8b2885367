"""Sliders: charts that readers move, computed beforehand, with no server and no library.

A chart is a piece of HTML. It holds the picture for the first position of its inputs, the numbers
for all others, and a short script that redraws; without scripts and on paper the first picture
stays.
"""

import html
import json

import numpy as np
from matplotlib.ticker import MaxNLocator

from drocox.bookstyle import COLOURS

DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2")


class SliderFigure:
    """HTML of a slider, with a sentence in its place where only text is shown."""

    def __init__(self, markup, description):
        self.markup = markup
        self.description = description

    def _repr_html_(self):
        return self.markup

    def __repr__(self):
        return f"<interactive figure: {self.description}>"


def slider(
    name,
    controls,
    x,
    curves,
    *,
    alt,
    xlabel="",
    ylabel="",
    start=None,
    marks=None,
    readouts=None,
    ylim=None,
    bars=(),
    formats=None,
    ticks=None,
    follows=None,
) -> SliderFigure:
    r"""A chart with one range input per control, everything computed beforehand.

    Parameters
    ----------
    name : str
        Unique in the chapter; the HTML id is ``slider-<name>``.
    controls : dict of str to array
        Label and the values that its slider steps through.
    x, xlabel, ylabel : array of shape (m,), str, str
        What the axes show, and their labels.
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
    ylim : pair of float, optional
    bars : collection of str
        Curves drawn as bars from zero.
    formats : dict of str to str, optional
        Format of a control's or readout's values; ``"{:.3g}"`` by default.
    ticks : dict of float to str, optional
        Labels on the x axis in place of round numbers.
    follows : str, optional
        Name of a slider with the same controls, earlier on the page, whose inputs move this chart
        too; it then has none of its own. See :func:`beside`.

    Returns
    -------
    SliderFigure
        Shown by a notebook. No other host is asked for anything; equal input gives equal bytes.
    """
    marks, readouts, formats = marks or {}, readouts or {}, formats or {}
    x = np.asarray(x, dtype=float)
    curves = {key: np.asarray(value, dtype=float) for key, value in curves.items()}
    page = _Page(controls, start, readouts, formats)
    now = page.now
    _check(page.sizes, len(x), curves, {**marks, **readouts})
    frame = _Frame(x, curves, ylim, with_zero=bool(bars))
    data = {
        "follows": follows or name,
        "x": frame.xs,
        "base": frame.base,
        "curves": [],
        "marks": [[round(float(v), 1) for v in frame.px(np.ravel(v))] for v in marks.values()],
    }
    drawn, legend = [], []
    for number, (key, value) in enumerate(curves.items()):
        kind = "bars" if key in bars else "line"
        ink = _ink(number, width=frame.bar if kind == "bars" else None)
        rows = [frame.heights(row) for row in value.reshape(-1, len(x))]
        moves = value.ndim > 1
        place = f'data-curve="{len(data["curves"])}"' if moves else ""
        drawn.append(f'<path {ink} {place} d="{frame.path(rows[now if moves else 0], kind)}"/>')
        legend.append(_legend(f'<path {ink} d="M1 5H27"/>', key))
        if moves:
            data["curves"].append({"kind": kind, "y": rows})
    for number, (key, positions) in enumerate(zip(marks, data["marks"], strict=True)):
        ink = 'fill="none" stroke="currentColor" stroke-width="1.5" stroke-dasharray="3 3"'
        drawn.append(f'<path {ink} data-mark="{number}" d="M{positions[now]:g} 0V{frame.HEIGHT}"/>')
        legend.append(_legend(f'<path {ink} d="M14 0V10"/>', key))
    ticks = ticks or {tick: page.text(tick) for tick in _ticks(*frame.xlim)}
    content = frame.axes(xlabel, ylabel, ticks, page.text) + frame.clipped("".join(drawn))
    size = (frame.WIDTH, frame.HEIGHT)
    return page.figure(name, alt, size, content, legend, data, with_inputs=not follows)


def frames(
    name, label, values, pictures, *, alt, size, still="", legend=None, readouts=None, start=None
) -> SliderFigure:
    """A drawing with one range input that shows one of several pictures.

    Parameters
    ----------
    name : str
        Unique in the chapter; the HTML id is ``slider-<name>``.
    label : str
        What the input is called.
    values : sequence of str
        What it shows at each step.
    pictures : sequence of str
        SVG elements at each step.
    alt : str
        What the picture shows, for those who do not see it.
    size : pair of int
        Width and height of the drawing.
    still : str
        SVG elements that stay, drawn first.
    legend : dict of str to str, optional
        A name and its sample, SVG elements 28 wide and 10 high.
    readouts : dict of str to sequence of str, optional
        What is shown below the input at each step.
    start : int, optional
        Step shown first, also without JavaScript and in print; the middle by default.

    Returns
    -------
    SliderFigure
    """
    if len(pictures) != len(values):
        raise ValueError(f"{len(pictures)} pictures for {len(values)} values; give one for each")
    readouts = readouts or {}
    text = dict.fromkeys([label, *readouts], "{}")
    begin = None if start is None else {label: start}
    page = _Page({label: values}, begin, readouts, text)
    content = f"{still}<g data-frames>{pictures[page.now]}</g>"
    samples = [_legend(sample, key) for key, sample in (legend or {}).items()]
    data = {"follows": name, "curves": [], "marks": [], "frames": list(pictures)}
    return page.figure(name, alt, size, content, samples, data)


def beside(*figures) -> SliderFigure:
    """Sliders side by side where there is room.

    Parameters
    ----------
    *figures : SliderFigure
        One that others follow comes first.

    Returns
    -------
    SliderFigure
    """
    columns = "repeat(auto-fit,minmax(min(100%,19rem),1fr))"
    inside = "\n".join(figure.markup for figure in figures)
    # half as wide, so letters larger
    style = "<style>.beside svg[role=img] { font-size: 17px }</style>"
    markup = f'<div class="beside" style="display:grid;gap:0 1rem;grid-template-columns:{columns}">'
    return SliderFigure(f"{style}{markup}\n{inside}\n</div>", figures[0].description)


class _Page:
    """The parts that all sliders have: inputs, numbers, data and script."""

    def __init__(self, controls, start, readouts, formats):
        self.controls, self.readouts, self.formats = controls, readouts, formats
        start = {key: len(values) // 2 for key, values in controls.items()} | (start or {})
        self.index = [start[key] for key in controls]
        self.sizes = tuple(len(values) for values in controls.values())
        self.now = int(np.ravel_multi_index(self.index, self.sizes))

    def text(self, value, key=None):
        return self.formats.get(key, "{:.3g}").format(value).replace("-", "\N{MINUS SIGN}")

    def texts(self, of):
        return [[self.text(v, key) for v in np.ravel(array)] for key, array in of.items()]

    def figure(self, name, alt, size, content, legend, data, with_inputs=True):
        values, readouts = self.texts(self.controls), self.texts(self.readouts)
        data = {"sizes": self.sizes, "values": values, "readouts": readouts} | data
        packed = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
        if len(packed) > 400_000:
            raise ValueError(
                f"{len(packed)} bytes of data: take fewer values of the controls or fewer points"
            )
        inputs = [
            _input(key, shown[at], len(shown), at)
            for key, shown, at in zip(self.controls, values, self.index, strict=True)
        ]
        numbers = [
            f'<span style="white-space:nowrap">{html.escape(key)}: '
            f"<output>{shown[self.now]}</output></span>"
            for key, shown in zip(self.readouts, readouts, strict=True)
        ]
        row = 'style="display:flex;flex-wrap:wrap;gap:.2em 1.4em;margin:.3em 0"'
        markup = f"""\
<div class="slider-figure tex2jax_ignore" id="slider-{name}" role="group" aria-label="{html.escape(alt)}">
<svg viewBox="0 0 {size[0]} {size[1]}" width="100%" style="max-width:640px;display:block"
 font-size="14" fill="currentColor" role="img"><title>{html.escape(alt)}</title>
{content}
</svg>
<div {row}>{"".join(legend)}</div>
<div style="max-width:640px">{"".join(inputs) if with_inputs else ""}</div>
<div class="slider-readouts" aria-live="polite" {row}>{"".join(numbers)}</div>
<script type="application/json">{packed}</script>
<script>{_SCRIPT.replace("NAME", name)}</script>
</div>"""  # noqa: E501
        return SliderFigure(markup, alt)


class _Frame:
    """Axes in pixels, small enough that labels can be read on a phone."""

    WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 520, 320, 54, 508, 12, 274

    def __init__(self, x, curves, ylim, with_zero):
        if ylim is None:
            values = np.concatenate([value.ravel() for value in curves.values()])
            values = np.append(values[np.isfinite(values)], [0.0] if with_zero else [])
            low, high = values.min(), values.max()
            pad = 0.04 * (high - low or 1.0)
            ylim = (low if with_zero and low == 0 else low - pad, high + pad)
        between = (x.max() - x.min()) / (len(x) - 1)
        pad = between / 2 if with_zero else 0.0  # room for the first and the last bar
        self.xlim, self.ylim = (x.min() - pad, x.max() + pad), ylim
        self.bar = 0.7 * float(self.px(between) - self.px(0.0))
        self.xs = [round(float(v), 1) for v in self.px(x)]
        self.base = round(float(self.py(np.clip(0.0, *ylim))), 1)

    def px(self, value):
        low, high = self.xlim
        share = (np.asarray(value, float) - low) / (high - low)
        return self.LEFT + share * (self.RIGHT - self.LEFT)

    def py(self, value):
        low, high = self.ylim
        share = np.clip((np.asarray(value, float) - low) / (high - low), -0.5, 1.5)
        return self.BOTTOM - share * (self.BOTTOM - self.TOP)

    def heights(self, row):
        return [round(float(v), 1) if np.isfinite(v) else None for v in self.py(row)]

    def path(self, ys, kind):
        """The same string that the script below builds for other positions of the sliders."""
        d = ""
        for x, y in zip(self.xs, ys, strict=True):
            if y is None:
                continue
            bar, point = f"M{x:g} {self.base:g}V{y:g}", f"{'L' if d else 'M'}{x:g} {y:g}"
            d += bar if kind == "bars" else point
        return d

    def axes(self, xlabel, ylabel, ticks, text):
        left, right, top, bottom = self.LEFT, self.RIGHT, self.TOP, self.BOTTOM
        ink, parts = 'fill="none" stroke="currentColor"', []
        for tick, label in ticks.items():
            parts.append(_label(label, "middle", self.px(tick), bottom + 20))
        for tick in _ticks(*self.ylim):
            y = float(self.py(tick))
            parts.append(f'<path {ink} stroke-opacity=".15" d="M{left} {y:.1f}H{right}"/>')
            parts.append(_label(text(tick), "end", left - 8, y + 5))
        parts.append(f'<path {ink} d="M{left} {top}V{bottom}H{right}"/>')
        parts.append(_label(xlabel, "middle", (left + right) / 2, self.HEIGHT - 6))
        parts.append(f'<g transform="translate(14 {(top + bottom) / 2:.1f}) rotate(-90)">')
        parts.append(_label(ylabel, "middle", 0, 0) + "</g>")
        return "".join(parts)

    def clipped(self, content):
        x, width, height = self.LEFT - 2, self.RIGHT - self.LEFT + 4, self.BOTTOM - self.TOP
        place = f'x="{x}" y="{self.TOP}" width="{width}" height="{height}"'
        return f'<svg {place} viewBox="{x} {self.TOP} {width} {height}">{content}</svg>'


def _check(sizes, m, curves, numbers):
    for key, value in curves.items():
        if value.shape not in {(m,), (*sizes, m)}:
            raise ValueError(f"{key!r} has shape {value.shape}, expected {(m,)} or {(*sizes, m)}")
    for key, value in numbers.items():
        if np.shape(value) != sizes:
            raise ValueError(f"{key!r} has shape {np.shape(value)}, expected {sizes}")


def _ticks(low, high):
    slack = 1e-9 * (high - low)
    return [t for t in MaxNLocator(5).tick_values(low, high) if low - slack <= t <= high + slack]


def _label(text, anchor, x, y):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _ink(number, width=None):
    """Style of a curve, or of bars of this width."""
    number %= len(COLOURS)
    dash = DASHES[number] if width is None else ""
    return (
        f'style="color:var(--dc-{number},{COLOURS[number]})" stroke="currentColor" fill="none"'
        f' stroke-width="{width or 2.5:.3g}" stroke-dasharray="{dash}"'
    )


def _legend(sample, key):
    sample = f'<svg width="28" height="10" aria-hidden="true">{sample}</svg>'
    return f'<span style="white-space:nowrap">{sample} {html.escape(key)}</span>'


def _input(key, shown, size, at):
    return (
        '<label style="display:flex;gap:.75em;align-items:center">'
        f'<span style="min-width:7.5em">{html.escape(key)} = <output>{shown}</output></span>'
        f'<input type="range" min="0" max="{size - 1}" step="1" value="{at}"'
        f' aria-valuetext="{shown}" style="flex:1;min-width:0"></label>'
    )


_SCRIPT = """(function () {
  var root = document.getElementById("slider-NAME");
  if (!root) return;
  var data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  var lead = document.getElementById("slider-" + data.follows);
  function list(from, what) { return Array.prototype.slice.call(from.querySelectorAll(what)); }
  function all(what) { return list(root, what); }
  var inputs = list(lead, "input"), shown = all("label output");
  var numbers = all(".slider-readouts output");
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
      if (!shown.length) return; // another figure has the inputs
      shown[i].textContent = data.values[i][input.value];
      input.setAttribute("aria-valuetext", data.values[i][input.value]);
    });
    all("[data-curve]").forEach(function (line, i) {
      line.setAttribute("d", path(data.curves[i].y[at], data.curves[i].kind));
    });
    all("[data-mark]").forEach(function (line, i) {
      line.setAttribute("d", "M" + data.marks[i][at] + " 0V320");
    });
    all("[data-frames]").forEach(function (part) { part.innerHTML = data.frames[at]; });
    numbers.forEach(function (number, i) { number.textContent = data.readouts[i][at]; });
  }
  inputs.forEach(function (input) { input.addEventListener("input", draw); });
})();"""
