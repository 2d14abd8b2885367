/* Who gets the weight: the dual's threshold and weights, from the losses, for each alpha. */
"use strict";

explore("weights", function (box) {
  const data = box.data;
  const cloud = explore.axes(data.cloud);
  const bins = explore.axes(data.bins);
  const years = data.years;
  const deaths = years.map((_, i) => i);
  const old = deaths.map((i) => data.old[i] === "1");
  const early = deaths.map((i) => data.early[i] === "1");
  const n = deaths.length + data.censored;
  const last = bins.xlim[1];
  const p = explore.pixels;
  /* Two letters in base 36 are a loss in hundredths. */
  const losses = data.losses.map((row) =>
    deaths.map((i) => parseInt(row.slice(2 * i, 2 * i + 2), 36) / 100)
  );
  const cox = losses.length - 1;

  function sum(values) {
    return values.reduce((a, b) => a + b, 0);
  }

  /* The active-set iteration over all patients; the censored have loss 0. */
  function bestEta(ofDeaths, square) {
    if (square === 1) return -Infinity;
    let active = ofDeaths.concat(new Array(data.censored).fill(0));
    const largest = active.reduce((a, b) => Math.max(a, b));
    if (active.filter((loss) => loss === largest).length * square >= n) return largest;
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

  function dots(which, ofDeaths) {
    return deaths
      .filter(which)
      .map((i) => "M" + p(cloud.x(years[i])) + " " + p(cloud.y(ofDeaths[i])) + "h0")
      .join("");
  }

  function draw() {
    const step = Number(box.inputs.alpha.value);
    const alpha = data.alphas[step];
    const now = losses[box.inputs.trained.checked ? step : cox];
    const square = 2 * (1 / alpha - 1) * (1 / alpha - 1) + 1;
    const eta = bestEta(now, square);
    const flat = eta === -Infinity; /* the ball is a point: all weights are equal */
    const excess = now.map((loss) => (flat ? 1 : Math.max(loss - eta, 0)));
    const ofCensored = flat ? 1 : Math.max(-eta, 0);
    const total = sum(excess) + data.censored * ofCensored;
    const onDeaths = sum(excess);

    box.set("calm-old", { d: dots((i) => now[i] <= eta && old[i], now) });
    box.set("calm-young", { d: dots((i) => now[i] <= eta && !old[i], now) });
    box.set("heavy-old", { d: dots((i) => now[i] > eta && old[i], now) });
    box.set("heavy-young", { d: dots((i) => now[i] > eta && !old[i], now) });
    const y = cloud.y(Math.max(eta, cloud.ylim[0]));
    box.set("level", { d: "M" + cloud.left + " " + p(y) + "H" + cloud.right });
    box.set("levelname", { y: y - 5 });
    box.write("levelname", eta < cloud.ylim[0] ? "η is below" : "η");

    const heights = { old: new Array(last).fill(0), young: new Array(last).fill(0) };
    deaths.forEach(function (i) {
      const year = Math.min(Math.floor(years[i]), last - 1);
      heights[old[i] ? "old" : "young"][year] += (100 * excess[i]) / onDeaths;
    });
    for (let year = 0; year < last; year++) {
      const middle = bins.y(heights.old[year]);
      const top = bins.y(heights.old[year] + heights.young[year]);
      box.set("old" + year, { y: middle, height: bins.bottom - middle });
      box.set("young" + year, { y: top, height: middle - top });
    }

    const chosen = excess.filter((e) => e > 0).length + (ofCensored > 0 ? data.censored : 0);
    const ofOld = sum(excess.filter((_, i) => old[i])) + data.censoredOld * ofCensored;
    box.say("alpha", explore.number(alpha, 2));
    box.say("worth", explore.number(n / square, 0));
    box.say("chosen", String(chosen));
    box.say("old", explore.number((100 * ofOld) / total, 0));
    box.say("early", explore.number((100 * sum(excess.filter((_, i) => early[i]))) / onDeaths, 0));
  }

  function move() {
    box.say("feedback", ""); /* it was about the first state */
    draw();
  }

  box.onInput("alpha", move);
  box.onInput("trained", move);
  /* Until a guess is made, nobody is seen to have weight. */
  box.root.classList.add("explore-asking");
  data.feedback.forEach(function (text, i) {
    box.onInput("guess" + i, function () {
      box.say("feedback", text);
      box.root.classList.remove("explore-asking");
    });
  });
});
