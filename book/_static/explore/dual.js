/* The dual as a water level: q_i = [l_i - eta]_+ / sum_j [l_j - eta]_+, c^2 = 1 / alpha. */
"use strict";

explore("dual", function (box) {
  const { losses, names, lowest } = box.data;
  const { path, dot, tag, text, number, sum, colours } = explore;
  const n = losses.length;
  const [width, height] = [340, 300];
  const largest = Math.max(...losses);
  const grid = Array.from({ length: 121 }, (_, k) => lowest + (k / 120) * (largest - lowest));
  const steps = [0, 0.1, 0.2, 0.3, 0.4]; /* of the bound above the risk */
  const state = { eta: box.data.eta, alpha: box.data.alpha };
  let bars;

  function bound(eta) {
    const squares = losses.map((loss) => Math.max(loss - eta, 0) ** 2);
    return Math.sqrt(sum(squares) / n / state.alpha) + eta;
  }

  function weights(eta) {
    const excess = losses.map((loss) => Math.max(loss - eta, 0));
    const total = sum(excess);
    if (total > 0) return excess.map((e) => e / total);
    const ties = losses.filter((loss) => loss === largest).length;
    return losses.map((loss) => (loss === largest ? 1 / ties : 0));
  }

  /* The active-set iteration: drop whoever is not above eta until nobody is dropped. */
  function bestEta() {
    const square = 1 / state.alpha;
    const ties = losses.filter((loss) => loss === largest).length;
    if (ties * square >= n) return largest;
    let active = losses;
    for (;;) {
      const k = active.length;
      const m = sum(active) / k;
      const v = sum(active.map((loss) => (loss - m) * (loss - m))) / k;
      const eta = m - Math.sqrt(v / ((square * k) / n - 1));
      const left = active.filter((loss) => loss > eta);
      if (left.length === k) return eta;
      active = left;
    }
  }

  function verdict(eta, used) {
    if (Math.abs(used - 1) < 1e-9)
      return "The ball is used up: this is η*, and the bound is the risk.";
    if (eta >= largest && used < 1)
      return "All weight is on the largest loss, and the ball allows it: this is η*.";
    if (used < 1) return "There is room left in the ball: raise η.";
    return "These weights are outside the ball: lower η.";
  }

  function drawBars(q, best, em) {
    const place = { left: 3.4 * em, right: width - 34, top: 12, bottom: height - 4.6 * em };
    bars = explore.axes([-0.5, n - 0.5], [lowest - 0.1, 1.5], place, em);
    const { eta } = state;
    const level = bars.y(eta);
    const wide = 0.62 * (bars.x(1) - bars.x(0));
    const blue = `stroke:${colours[0]};fill:${colours[0]}`;
    const drawn = losses.map(function (loss, i) {
      const left = bars.x(i) - wide / 2;
      const top = bars.y(Math.max(loss, eta));
      const above = { x: left, y: top, width: wide, height: level - top };
      const whole = { x: left, y: bars.y(loss), width: wide, height: bars.y(0) - bars.y(loss) };
      return (
        tag("rect", { ...above, style: "fill:" + colours[1] }) +
        tag("rect", { ...whole, fill: "none", stroke: "currentColor" }) +
        text(bars.x(i), bars.bottom + 2.75 * em, (100 * q[i]).toFixed(0))
      );
    });
    const water = { x: bars.left, y: level, width: bars.right - bars.left };
    box.show(
      0,
      tag("rect", {
        ...water,
        height: bars.bottom - level,
        style: "fill:" + colours[5],
        opacity: "0.18",
      }) +
        bars.drawn("", "loss", names.map((name, i) => [i, name])) +
        text((bars.left + bars.right) / 2, bars.bottom + 4.15 * em, "patient, weight in %") +
        drawn.join("") +
        path(bars.across(best, bars.right + 14), { "stroke-dasharray": "2 4", "stroke-width": "1.5" }) +
        text(bars.right + 17, bars.y(best) + 0.35 * em, "η*", { "text-anchor": "start" }) +
        path(bars.across(eta), { "stroke-width": "2.5", style: blue }) +
        dot(bars.right, level, 10, { style: blue, "data-drag": "eta" }) +
        text(bars.right, level + 4, "η", { style: "fill:" + explore.paper, "pointer-events": "none" })
    );
  }

  function drawBound(used, best, em) {
    const left = 4 * em;
    const right = width - 12;
    const full = (left + right) / 2;
    const gauge = { x: left, y: 1.5 * em, height: 14 };
    const place = { left: left, right: right, top: 1.5 * em + 44, bottom: height - 3.3 * em };
    const curve = explore.axes([lowest, largest], [-0.04, 0.44], place, em);
    const risk = bound(best);
    const above = (eta) => bound(eta) - risk;
    const ticks = steps.map((step) => [step, number(risk + step, 2)]);
    const y = curve.y(Math.min(above(state.eta), 0.44));
    box.show(
      1,
      text(left, 1.1 * em, "n Σ qᵢ² / c²", { "text-anchor": "start" }) +
        text(full, 1.1 * em, "100 %") +
        tag("rect", {
          ...gauge,
          width: Math.min(used, 2) * (full - left),
          style: "fill:" + colours[2],
        }) +
        tag("rect", { ...gauge, width: right - left, fill: "none", stroke: "currentColor" }) +
        path("M" + full + " " + (gauge.y - 3) + "v20", { "stroke-width": "2.5" }) +
        curve.drawn("η", "bound g(η)", null, ticks) +
        curve.clipped(
          path(curve.line(grid, grid.map(above)), { style: `stroke:${colours[0]};stroke-width:2.5` })
        ) +
        path(curve.down(best, curve.y(0)), { "stroke-dasharray": "2 4" }) +
        dot(curve.x(best), curve.y(0), 8, { fill: "none", stroke: "currentColor" }) +
        text(curve.x(best), curve.y(0) - 14, "η*") +
        dot(curve.x(state.eta), y, 5, { style: "fill:" + colours[0] })
    );
  }

  function draw() {
    const { eta, alpha } = state;
    const q = weights(eta);
    const used = n * sum(q.map((w) => w * w)) * alpha;
    const best = bestEta();
    drawBars(q, best, box.em());
    drawBound(used, best, box.em());
    box.say("eta", number(eta, 2));
    box.say("alpha", number(alpha, 2));
    box.say("c2", number(1 / alpha, 2));
    box.say("used", number(100 * used, 1) + "\u00a0%");
    box.say("g", number(bound(eta), 3));
    box.say("mean", number(sum(q.map((w, i) => w * losses[i])), 3));
    box.say("verdict", verdict(eta, used));
  }

  function moveTo(eta) {
    state.eta = eta;
    box.inputs.eta.value = eta;
    draw();
  }

  box.build({
    prompt: "Move the level until the gauge stands at 100 %. The bound is then at its lowest.",
    sizes: [
      [width, height],
      [width, height],
    ],
    inputs:
      box.range("eta", "level <i>η</i>", lowest, 1.38, 0.01, state.eta) +
      box.range("alpha", "share <i>α</i>", 0.1, 0.8, 0.05, state.alpha) +
      box.button("best", "go to <i>η</i>*"),
    readout: `<i>c</i>² = 1/<i>α</i> = ${box.out("c2")},
      <i>n</i> Σ <i>q<sub>i</sub></i>² / <i>c</i>² = ${box.out("used")}.
      Bound <i>g</i>(<i>η</i>) = ${box.out("g")}, loss under these weights
      Σ <i>q<sub>i</sub>ℓ<sub>i</sub></i> = ${box.out("mean")}. ${box.out("verdict")}`,
    draw: draw,
  });
  box.onInput("eta", function () {
    state.eta = Number(box.inputs.eta.value);
    draw();
  });
  box.onInput("alpha", function () {
    state.alpha = Number(box.inputs.alpha.value);
    draw();
  });
  box.onButton("best", () => moveTo(bestEta()));
  box.onDrag(0, function (_, x, y) {
    moveTo(Math.min(Math.max(bars.valueOfY(y), lowest), 1.38));
  });
});
