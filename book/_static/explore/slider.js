/* Sliders over states computed beforehand: curves, or whole pictures. */
"use strict";

explore("slider", function (box) {
  const data = box.data;
  const controls = data.sizes.map((_, k) => box.inputs["control" + k]);

  function draw() {
    let at = 0;
    controls.forEach(function (input, k) {
      at = at * data.sizes[k] + Number(input.value);
      box.say("control" + k, data.values[k][Number(input.value)]);
    });
    (data.curves || []).forEach(function (paths, k) {
      box.set("curve" + k, { d: paths[at] });
    });
    if (data.frames) box.part("frame").innerHTML = data.frames[at];
    data.readouts.forEach(function (texts, k) {
      box.say("readout" + k, texts[at]);
    });
  }

  controls.forEach(function (_, k) {
    box.onInput("control" + k, draw);
  });
});
