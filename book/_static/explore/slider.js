/* Curves or bars that were computed for every position of one or two sliders. */
"use strict";

explore("slider", function (box) {
  const { controls, readouts, x, curves, ylim } = box.data;
  const { path, colours, tag } = explore;
  const size = [400, 260];
  const between = x[1] - x[0];
  const room = curves.some((curve) => curve.bars) ? between / 2 : 0; /* for the outer bars */
  const dashes = ["", "7 4", "2 3"];
  const inputOf = (k) => box.inputs["control" + k];

  function draw() {
    const em = box.em();
    const place = { left: 3.9 * em, right: size[0] - 10, top: 10, bottom: size[1] - 3.3 * em };
    const axes = explore.axes([x[0] - room, x[x.length - 1] + room], ylim, place, em);
    let at = 0;
    controls.forEach(function (control, k) {
      at = at * control.values.length + Number(inputOf(k).value);
      box.say("control" + k, control.values[Number(inputOf(k).value)]);
    });
    const drawn = curves.map(function (curve, k) {
      const values = curve.values[at];
      const style = "stroke:" + colours[k];
      if (!curve.bars)
        return path(axes.line(x, values), {
          style: style,
          "stroke-width": "2.5",
          "stroke-dasharray": dashes[k],
        });
      const lines = x.map((v, i) => `M${axes.x(v).toFixed(1)} ${axes.bottom}V${axes.y(values[i]).toFixed(1)}`);
      return path(lines.join(""), {
        style: style,
        "stroke-width": 0.7 * (axes.x(between) - axes.x(0)),
      });
    });
    box.show(0, axes.drawn(box.data.xlabel, box.data.ylabel) + axes.clipped(drawn.join("")));
    readouts.forEach((readout, k) => box.say("readout" + k, readout.values[at]));
  }

  const keys = curves.map(function (curve, k) {
    const sample = path("M1 5H27", {
      style: "stroke:" + colours[k],
      "stroke-width": "2.5",
      "stroke-dasharray": dashes[k],
    });
    const svg = tag("svg", { width: "28", height: "10", "aria-hidden": "true" }, sample);
    return `<span class="explore-number">${svg} ${curve.label}</span>`;
  });
  const numbers = readouts.map(
    (readout, k) =>
      `<span class="explore-number">${readout.label}: ${box.out("readout" + k)}</span>`
  );
  box.build({
    sizes: [size],
    inputs: controls
      .map(function (control, k) {
        const values = control.values.map((text) => text.replace("\u2212", "-"));
        return box.range("control" + k, control.label, 0, values.length - 1, 1, control.start, values);
      })
      .join(""),
    readout: [...(keys.length > 1 ? keys : []), ...numbers].join(" "),
    draw: draw,
  });
  controls.forEach((_, k) => box.onInput("control" + k, draw));
});
