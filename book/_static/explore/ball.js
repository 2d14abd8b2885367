/* All distributions on three patients: discs for three radii, and the set under the ceiling. */
"use strict";

explore("ball", function (box) {
  const { names, losses, alphas, radii, ceiling, worst, tail, bounds } = box.data;
  const { path, dot, tag, text, number, sum, colours } = explore;
  const [width, height] = [400, 320];
  const corners = [
    [46, 290],
    [200, 23.3],
    [354, 290],
  ];
  const scale = (354 - 46) / Math.SQRT2; /* pixels for a distance of 1 in q */
  const centre = at([1 / 3, 1 / 3, 1 / 3]);
  const styles = {
    sharp: { style: `color:${colours[0]};stroke-width:2.5`, fill: "currentColor", "fill-opacity": "0.18" },
    definition: { style: `color:${colours[1]};stroke-width:2.5`, "stroke-dasharray": "7 4" },
    paper: { style: `color:${colours[3]};stroke-width:2.5`, "stroke-dasharray": "2 3" },
    ceiling: { style: `color:${colours[2]};stroke-width:2.5`, fill: "currentColor", "fill-opacity": "0.25" },
  };
  const round = { style: "fill:" + colours[0] };
  const square = { width: 10, height: 10, style: "fill:" + colours[2] };

  /* The place of a distribution in the triangle. */
  function at(q) {
    return [0, 1].map((k) => sum(q.map((share, i) => share * corners[i][k])));
  }

  function closed(points) {
    return "M" + points.map(([x, y]) => x.toFixed(1) + " " + y.toFixed(1)).join("L") + "Z";
  }

  function disc(radius, style) {
    const [x, y] = centre;
    const ink = { fill: "none", stroke: "currentColor", ...style };
    return dot(x, y, scale * Math.sqrt(radius / 3), ink);
  }

  function draw() {
    const k = Number(box.inputs.alpha.value);
    const clip = box.root.id + "-triangle";
    const [x, y] = centre;
    /* towards larger mean losses */
    const uphill = [0, 1].map((d) => sum(losses.map((loss, i) => loss * (corners[i][d] - centre[d]))));
    const steep = Math.hypot(...uphill) / 55;
    const way = [centre, [x + uphill[0] / steep, y + uphill[1] / steep]];
    const [left, top] = at(tail[k]);
    box.show(
      0,
      tag("clipPath", { id: clip }, path(closed(corners))) +
        path(closed(corners)) +
        names
          .map(function (name, i) {
            const [cx, cy] = corners[i];
            const below = cy < 100 ? cy - 8 : cy + 1.4 * box.em();
            return text(cx, below, name + ": loss " + number(losses[i], 2));
          })
          .join("") +
        path(closed(way), { "stroke-dasharray": "1 3" }) +
        dot(x, y, 3, {}) +
        text(x + 7, y + 7, "P", { "text-anchor": "start" }) +
        tag(
          "g",
          { "clip-path": "url(#" + clip + ")" },
          path(closed(ceiling[k].map(at)), styles.ceiling) +
            Object.keys(radii)
              .map((rule) => disc(radii[rule][k], styles[rule]))
              .join("")
        ) +
        tag("rect", { ...square, x: left - 5, y: top - 5 }) +
        dot(...at(worst[k]), 6, round)
    );
    const mix = names.map((name, i) => name + " " + (100 * worst[k][i]).toFixed(0) + " %");
    box.say("alpha", number(alphas[k], 2));
    box.say("mix", mix.join(" "));
    Object.keys(bounds).forEach((rule) => box.say(rule, number(bounds[rule][k], 3)));
  }

  function key(sample, words) {
    const svg = tag("svg", { width: "28", height: "12", "aria-hidden": "true" }, sample);
    return `<span class="explore-number">${svg} ${words}</span>`;
  }

  box.build({
    sizes: [[width, height]],
    inputs: box.range("alpha", "<i>α</i>", 0, alphas.length - 1, 1, box.data.start, alphas),
    readout: [
      key(path("M1 6H27", styles.sharp), "sharp disc"),
      key(path("M1 6H27", styles.definition), "definition"),
      key(path("M1 6H27", styles.paper), "paper"),
      key(path("M4 3H24V9H4Z", styles.ceiling), "under the ceiling"),
      key(dot(14, 6, 4, round), "worst q, sharp"),
      key(tag("rect", { ...square, x: 9, y: 1 }), "worst q, CVaR"),
      `<span class="explore-number">worst q, sharp: ${box.out("mix")}</span>`,
      ...Object.keys(bounds).map(
        (rule) => `<span class="explore-number">${rule}: ${box.out(rule)}</span>`
      ),
    ].join(" "),
    draw: draw,
  });
  box.onInput("alpha", draw);
});
