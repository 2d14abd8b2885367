/* Kaplan and Meier's estimate: the product of 1 - d / n over the days with deaths so far. */
"use strict";

explore("kaplan-meier", function (box) {
  const { names, end, asked } = box.data;
  const { path, dot, text, number, colours } = explore;
  const patients = names.map((_, i) => i);
  const months = Array.from({ length: end / 2 + 1 }, (_, k) => [2 * k, String(2 * k)]);
  const size = [340, 260];
  let lives;

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
    let words = "1, as nobody died before";
    if (factors.length) words = factors.join(" · ") + " = " + number(value, 3);
    if (last < asked && value > 0) words += "; but nobody was watched beyond month " + last;
    return words + ".";
  }

  /* In both pictures a full dot is a death and an open circle a patient who left. */
  function ending(x, y, radius, died, attributes) {
    const style = `stroke:${colours[1]};fill:${died ? colours[1] : explore.paper};stroke-width:2.5`;
    return dot(x, y, radius, { style: style, ...attributes });
  }

  function drawLives(time, event, em) {
    const place = { left: 2.2 * em, right: size[0] - 12, top: 12, bottom: size[1] - 3.3 * em };
    lives = explore.axes([0, end], [names.length - 0.4, -0.6], place, em);
    const rows = names.map((name, i) => [i, name]);
    const drawn = patients.map(function (i) {
      const [x, y] = [lives.x(time[i]), lives.y(i)];
      const line = (from, to) => "M" + from.toFixed(1) + " " + y.toFixed(1) + "H" + to.toFixed(1);
      const wide = { "stroke-width": "2.5" };
      return (
        path(line(lives.left, x), wide) +
        (event[i] ? "" : path(line(x, lives.right), { ...wide, "stroke-dasharray": "2 5" })) +
        ending(x, y, 8, event[i], { "data-drag": i + "" })
      );
    });
    box.show(0, lives.drawn("months since entry", "", months, rows) + drawn.join(""));
  }

  /* Beside its step, above the rest of the curve, where no other fraction and no line can be. */
  function share({ day, deaths, atRisk }, table, axes, em) {
    const middle = (estimate(table, day - 1) + estimate(table, day)) / 2;
    const [x, y] = [axes.x(day), axes.y(middle) + 0.35 * em];
    const fits = day < end;
    return text(fits ? x + 5 : x - 5, y, deaths + "/" + atRisk, { "text-anchor": fits ? "start" : "end" });
  }

  function drawCurve(time, event, table, em) {
    const place = { left: 3.9 * em, right: size[0] - 12, top: 12, bottom: size[1] - 3.3 * em };
    const axes = explore.axes([0, end], [0, 1.05], place, em);
    function staircase(rows, last) {
      const steps = rows.map(
        (row) => "H" + axes.x(row.day).toFixed(1) + "V" + axes.y(estimate(rows, row.day)).toFixed(1)
      );
      return "M" + axes.x(0) + " " + axes.y(1) + steps.join("") + "H" + axes.x(last).toFixed(1);
    }
    const first = lifeTable(box.data.time, box.data.event);
    const blue = { style: `stroke:${colours[0]};stroke-width:3` };
    const faint = { "stroke-dasharray": "2 4", opacity: "0.4" };
    const ends = patients.map((i) => ending(axes.x(time[i]), axes.y(estimate(table, time[i])), 6, event[i]));
    box.show(
      1,
      axes.drawn("months t", "alive, Ŝ(t)", months) +
        path(staircase(first, end), { "stroke-dasharray": "2 4" }) +
        path(axes.down(asked, axes.y(estimate(table, asked))), faint) +
        path(axes.across(estimate(table, asked), axes.x(asked)), faint) +
        path(staircase(table, Math.max(...time)), blue) +
        table.map((row) => share(row, table, axes, em)).join("") +
        ends.join("")
    );
  }

  function draw() {
    const time = patients.map((i) => Number(box.inputs["time" + i].value));
    const event = patients.map((i) => box.inputs["died" + i].checked);
    const table = lifeTable(time, event);
    drawLives(time, event, box.em());
    drawCurve(time, event, table, box.em());
    patients.forEach((i) => box.say("time" + i, String(time[i])));
    box.say("answer", answer(table, Math.max(...time)));
  }

  const rows = names.map(function (name, i) {
    const range = box.range("time" + i, "time of " + name, 1, end, 1, box.data.time[i]);
    const died = box.tick("checkbox", "died" + i, name + " died", box.data.event[i]);
    return `<div class="explore-row">${range}${died}</div>`;
  });
  box.build({
    prompt: "Move a dot, or let a patient be censored instead of dying. Which steps move?",
    sizes: [size, size],
    inputs: `<div class="explore-rows">${rows.join("")}</div>${box.button("reset", "as they were")}`,
    readout: `Alive at nine months: <i>Ŝ</i>(9) = ${box.out("answer")}`,
    draw: draw,
  });
  patients.forEach(function (i) {
    box.onInput("time" + i, draw);
    box.onInput("died" + i, draw);
  });
  box.onDrag(0, function (i, x) {
    box.inputs["time" + i].value = lives.valueOfX(x);
    draw();
  });
  box.onButton("reset", function () {
    patients.forEach(function (i) {
      box.inputs["time" + i].value = box.data.time[i];
      box.inputs["died" + i].checked = box.data.event[i];
    });
    draw();
  });
});
