/* Kaplan and Meier's estimate: the product of 1 - d / n over the days with deaths so far. */
"use strict";

explore("kaplan-meier", function (box) {
  const lives = explore.axes(box.data.lives);
  const curve = explore.axes(box.data.curve);
  const asked = box.data.asked;
  const patients = box.data.time.map((_, i) => i);
  const p = explore.pixels;

  function now() {
    return {
      time: patients.map((i) => Number(box.inputs["time" + i].value)),
      event: patients.map((i) => box.inputs["died" + i].checked),
    };
  }

  function lifeTable(time, event) {
    const days = [...new Set(time.filter((_, i) => event[i]))].sort((a, b) => a - b);
    return days.map((day) => ({
      day: day,
      deaths: time.filter((t, i) => event[i] && t === day).length,
      atRisk: time.filter((t) => t >= day).length,
    }));
  }

  function estimate(table, t) {
    return table
      .filter((row) => row.day <= t)
      .reduce((product, row) => product * (1 - row.deaths / row.atRisk), 1);
  }

  function answer(table, last) {
    const value = estimate(table, asked);
    const factors = table
      .filter((row) => row.day <= asked)
      .map((row) => row.atRisk - row.deaths + "/" + row.atRisk);
    let text = "1, as nobody died before";
    if (factors.length) text = factors.join(" · ") + " = " + explore.number(value, 3);
    if (last < asked && value > 0) text += "; but nobody was watched beyond month " + last;
    return text + ".";
  }

  function staircase(table, last) {
    let path = "M" + p(curve.x(0)) + " " + p(curve.y(1));
    table.forEach(function (row) {
      path += "H" + p(curve.x(row.day)) + "V" + p(curve.y(estimate(table, row.day)));
    });
    return path + "H" + p(curve.x(last));
  }

  function draw() {
    const { time, event } = now();
    const table = lifeTable(time, event);
    const last = Math.max(...time);
    patients.forEach(function (i) {
      const x = lives.x(time[i]);
      const y = p(lives.y(i));
      box.set("life" + i, { d: "M" + lives.left + " " + y + "H" + p(x) });
      box.set("beyond" + i, { d: event[i] ? "" : "M" + p(x) + " " + y + "H" + lives.right });
      box.set("end" + i, { cx: x });
      const paper = "var(--pst-color-background,#fff)";
      const inside = event[i] ? "var(--dc-1,#D55E00)" : paper;
      box.set("end" + i, {
        style: "stroke:var(--dc-1,#D55E00);fill:" + inside + ";stroke-width:2.5",
      });
      const height = curve.y(estimate(table, time[i]));
      const tick = "M" + p(curve.x(time[i])) + " " + p(height - 7) + "V" + p(height + 7);
      box.set("left" + i, { d: event[i] ? "" : tick });
      const row = table[i];
      box.set("step" + i, { x: curve.x(row ? row.day : 0) });
      box.write("step" + i, row ? row.deaths + "/" + row.atRisk : "");
      box.say("time" + i, String(time[i]));
    });
    box.set("curve", { d: staircase(table, last) });
    box.set("asked", { cy: curve.y(estimate(table, asked)) });
    box.say("answer", answer(table, last));
  }

  patients.forEach(function (i) {
    box.onInput("time" + i, draw);
    box.onInput("died" + i, draw);
    box.onDrag("end" + i, function (x) {
      box.inputs["time" + i].value = lives.valueOfX(x);
      draw();
    });
  });
  box.onButton("reset", function () {
    patients.forEach(function (i) {
      box.inputs["time" + i].value = box.data.time[i];
      box.inputs["died" + i].checked = box.data.event[i];
    });
    draw();
  });
});
