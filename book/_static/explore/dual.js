/* The dual as a water level: q_i = [l_i - eta]_+ / sum_j [l_j - eta]_+, C^2 = 1 / alpha. */
"use strict";

explore("dual", function (box) {
  const losses = box.data.losses;
  const n = losses.length;
  const bars = explore.axes(box.data.bars);
  const curve = explore.axes(box.data.curve);
  const largest = Math.max(...losses);
  const state = { eta: Number(box.inputs.eta.value), alpha: Number(box.inputs.alpha.value) };

  function sum(values) {
    return values.reduce((a, b) => a + b, 0);
  }

  function excessOver(eta) {
    return losses.map((loss) => Math.max(loss - eta, 0));
  }

  function bound(eta) {
    const squares = excessOver(eta).map((e) => e * e);
    return Math.sqrt(sum(squares) / n / state.alpha) + eta;
  }

  function weights(eta) {
    const excess = excessOver(eta);
    const total = sum(excess);
    if (total > 0) return excess.map((e) => e / total);
    const ties = losses.filter((loss) => loss === largest).length;
    return losses.map((loss) => (loss === largest ? 1 / ties : 0));
  }

  /* The active-set iteration: drop whoever is not above eta until nobody is dropped. */
  function bestEta() {
    const c2 = 1 / state.alpha;
    const ties = losses.filter((loss) => loss === largest).length;
    if (ties * c2 >= n) return largest;
    let active = losses;
    for (;;) {
      const k = active.length;
      const m = sum(active) / k;
      const v = sum(active.map((loss) => (loss - m) * (loss - m))) / k;
      const eta = m - Math.sqrt(v / ((c2 * k) / n - 1));
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

  function draw() {
    const eta = state.eta;
    const q = weights(eta);
    const used = n * sum(q.map((w) => w * w)) * state.alpha;
    const best = bestEta();
    const level = bars.y(eta);
    const across = (y, to) => "M" + bars.left + " " + explore.pixels(y) + "H" + to;
    box.set("water", { y: level, height: bars.bottom - level });
    losses.forEach(function (loss, i) {
      const top = bars.y(Math.max(loss, eta));
      box.set("excess" + i, { y: top, height: level - top });
      box.write("weight" + i, (100 * q[i]).toFixed(0) + " %");
    });
    box.set("best", { d: across(bars.y(best), bars.right + 14) });
    box.set("bestname", { y: bars.y(best) + 4.5 });
    box.set("level", { d: across(level, bars.right) });
    box.set("handle", { cy: level });
    box.set("levelname", { y: level + 4 });

    const half = (box.data.gauge[1] - box.data.gauge[0]) / 2;
    box.set("gauge", { width: Math.min(used, 2) * half });
    const risk = bound(best);
    const etas = Array.from({ length: box.data.points }, function (_, i) {
      const share = i / (box.data.points - 1);
      return curve.xlim[0] + share * (curve.xlim[1] - curve.xlim[0]);
    });
    const above = etas.map((value) => bound(value) - risk);
    box.set("bound", { d: curve.line(etas, above) });
    box.data.steps.forEach(function (step, i) {
      box.write("tick" + i, explore.number(risk + step, 2));
    });
    const x = curve.x(best);
    const down = "M" + explore.pixels(x) + " " + explore.pixels(curve.y(0));
    box.set("down", { d: down + "V" + curve.bottom });
    box.set("lowest", { cx: x });
    box.set("lowestname", { x: x });
    const height = Math.min(bound(eta) - risk, curve.ylim[1]);
    box.set("point", { cx: curve.x(eta), cy: curve.y(height) });

    box.say("eta", explore.number(eta, 2));
    box.say("alpha", explore.number(state.alpha, 2));
    box.say("c2", explore.number(1 / state.alpha, 2));
    box.say("used", explore.number(100 * used, 1) + "\u00a0%");
    box.say("g", explore.number(bound(eta), 3));
    box.say("mean", explore.number(sum(q.map((w, i) => w * losses[i])), 3));
    box.say("verdict", verdict(eta, used));
  }

  function moveTo(eta) {
    state.eta = eta;
    box.inputs.eta.value = eta;
    draw();
  }

  box.onInput("eta", function () {
    state.eta = Number(box.inputs.eta.value);
    draw();
  });
  box.onInput("alpha", function () {
    state.alpha = Number(box.inputs.alpha.value);
    draw();
  });
  box.onButton("best", function () {
    moveTo(bestEta());
  });

  box.onDrag("handle", function (x, y) {
    const input = box.inputs.eta;
    moveTo(Math.min(Math.max(bars.valueOfY(y), Number(input.min)), Number(input.max)));
  });
});
