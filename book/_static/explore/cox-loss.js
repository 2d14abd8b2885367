/* Who is next: a softmax of theta * x over those at risk; minus its logarithm is the loss. */
"use strict";

explore("cox-loss", function (box) {
  const { time, event, x } = box.data;
  const panels = box.data.panels.map(explore.axes);
  const curve = explore.axes(box.data.curve);
  const patients = time.map((_, i) => i);
  const deaths = patients.filter((i) => event[i]);
  let theta = box.data.theta;

  function draw() {
    let total = 0;
    deaths.forEach(function (i, place) {
      const axes = panels[place];
      const atRisk = patients.filter((j) => time[j] >= time[i]);
      const sum = atRisk.reduce((s, j) => s + Math.exp(theta * x[j]), 0);
      atRisk.forEach(function (j) {
        const top = axes.y(Math.exp(theta * x[j]) / sum);
        box.set("bar" + place + "-" + j, { y: top, height: axes.bottom - top });
      });
      const loss = Math.log(sum) - theta * x[i];
      total += loss;
      box.write("title" + place, "month " + time[i] + ", loss " + explore.number(loss, 2));
      box.say("loss" + i, explore.number(loss, 3));
    });
    box.set("point", { cx: curve.x(theta), cy: curve.y(total) });
    box.say("theta", explore.number(theta, 2));
    box.say("sum", explore.number(total, 3));
  }

  function moveTo(value) {
    theta = value;
    box.inputs.theta.value = value;
    draw();
  }

  box.onInput("theta", function () {
    theta = Number(box.inputs.theta.value);
    draw();
  });
  box.onButton("zero", () => moveTo(0));
  box.onButton("log2", () => moveTo(Math.log(2)));
  box.onButton("best", () => moveTo(box.data.best));
  box.onDrag("point", function (place) {
    const [low, high] = curve.xlim;
    moveTo(Math.min(Math.max(curve.valueOfX(place), low), high));
  });
});
