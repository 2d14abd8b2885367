/* Who is next: a softmax of theta * x over those at risk; minus its logarithm is the loss. */
"use strict";

explore("cox-loss", function (box) {
  const { time, event, x, names, thetas, best } = box.data;
  const { path, dot, tag, text, number, sum, colours } = explore;
  const [width, height] = [340, 300];
  const patients = time.map((_, i) => i);
  const deaths = patients.filter((i) => event[i]);
  const grid = Array.from({ length: 121 }, (_, k) => thetas[0] + (k / 120) * (thetas[1] - thetas[0]));
  let theta = box.data.theta;
  let curve;

  const atRisk = (i) => patients.filter((j) => time[j] >= time[i]);
  const hazards = (i, at) => sum(atRisk(i).map((j) => Math.exp(at * x[j])));
  const loss = (i, at) => Math.log(hazards(i, at)) - at * x[i];
  const total = (at) => sum(deaths.map((i) => loss(i, at)));

  function panel(i, place, em) {
    const [column, row] = [place % 2, Math.floor(place / 2)];
    const [left, top] = [(column * width) / 2, (row * height) / 2];
    const inside = {
      left: left + 2.2 * em,
      right: left + width / 2 - 6,
      top: top + 1.8 * em,
      bottom: top + height / 2 - 2.1 * em,
    };
    const axes = explore.axes([-0.6, names.length - 0.4], [0, 1.05], inside, em);
    const wide = 0.7 * (axes.x(1) - axes.x(0));
    const bars = atRisk(i).map(function (j) {
      const y = axes.y(Math.exp(theta * x[j]) / hazards(i, theta));
      const fill = j === i ? colours[1] : "none";
      const style = `fill:${fill};stroke:${colours[j === i ? 1 : 0]};stroke-width:1.5`;
      const shape = { x: axes.x(j) - wide / 2, y: y, width: wide, height: axes.bottom - y };
      return tag("rect", { ...shape, style: style });
    });
    const halves = [
      [0, "0"],
      [0.5, "½"],
      [1, "1"],
    ];
    const title = "month " + time[i] + ", loss " + number(loss(i, theta), 2);
    return (
      axes.drawn("", "", names.map((name, j) => [j, name]), halves) +
      text(left + width / 4 + 4, axes.top - 0.6 * em, title) +
      bars.join("")
    );
  }

  function draw() {
    const em = box.em();
    box.show(0, deaths.map((i, place) => panel(i, place, em)).join(""));
    const place = { left: 3.4 * em, right: width - 12, top: 12, bottom: height - 3.3 * em };
    const sums = grid.map(total);
    curve = explore.axes(thetas, [2, Math.ceil(Math.max(...sums))], place, em);
    const [lowX, lowY] = [curve.x(best), curve.y(total(best))];
    box.show(
      1,
      curve.drawn("θ", "sum of the losses") +
        path(curve.down(best, lowY), { "stroke-dasharray": "2 4" }) +
        path(curve.line(grid, sums), { style: `stroke:${colours[0]};stroke-width:2.5` }) +
        dot(lowX, lowY, 8, { fill: "none", stroke: "currentColor" }) +
        text(lowX, lowY - 14, "smallest") +
        dot(curve.x(theta), curve.y(total(theta)), 6, {
          style: "fill:" + colours[1],
          "data-drag": "theta",
        })
    );
    deaths.forEach((i) => box.say("loss" + i, number(loss(i, theta), 3)));
    box.say("theta", number(theta, 2));
    box.say("sum", number(total(theta), 3));
  }

  function moveTo(value) {
    theta = value;
    box.inputs.theta.value = value;
    draw();
  }

  box.build({
    prompt: "Find the θ that makes the solid bars long and the sum of the losses small.",
    sizes: [
      [width, height],
      [width, height],
    ],
    inputs:
      box.range("theta", "<i>θ</i>", thetas[0], thetas[1], 0.01, theta) +
      '<div class="explore-buttons">' +
      box.button("zero", "<i>θ</i> = 0") +
      box.button("log2", "<i>θ</i> = log 2") +
      box.button("best", "smallest sum") +
      "</div>",
    readout:
      "Losses: " +
      deaths.map((i) => names[i] + " " + box.out("loss" + i)).join(", ") +
      "; sum " +
      box.out("sum") +
      ".",
    draw: draw,
  });
  box.onInput("theta", function () {
    theta = Number(box.inputs.theta.value);
    draw();
  });
  box.onButton("zero", () => moveTo(0));
  box.onButton("log2", () => moveTo(Math.log(2)));
  box.onButton("best", () => moveTo(best));
  box.onDrag(1, function (_, place) {
    moveTo(Math.min(Math.max(curve.valueOfX(place), thetas[0]), thetas[1]));
  });
});
