/* Who gets the weight. Numbers come from Python for each position of the slider; losses only
   place the dots. */
"use strict";

explore("weights", function (box) {
  const { alphas, patients, years, old, losses, curve, deaths, before, after } = box.data;
  const { path, tag, text, dot, number, colours } = explore;
  const [width, height] = [340, 320];
  const cox = alphas.length - 1;
  const groups = ["over 65", "65 or younger"];
  const sorted = losses.flat().sort((a, b) => a - b);
  const ylim = [Math.floor(sorted[0]), Math.ceil(sorted[sorted.length - 1])];

  function placed(em) {
    return { left: 3.9 * em, right: width - 12, top: 4 * em, bottom: height - 3.3 * em };
  }

  function drawCloud(now, eta, em) {
    const axes = explore.axes([0, deaths.length], ylim, placed(em), em);
    const heavy = (i) => eta === null || now[i] > eta;
    function dots(group, weighty) {
      const lines = years.map((year, i) =>
        old[i] === 1 - group && heavy(i) === weighty
          ? "M" + axes.x(year).toFixed(1) + " " + axes.y(now[i]).toFixed(1) + "h0"
          : ""
      );
      return path(lines.join(""), {
        class: weighty ? "explore-heavy" : "explore-calm",
        style: `stroke:${colours[group]};stroke-linecap:round`,
      });
    }
    const below = eta === null || eta < ylim[0];
    const level = below ? ylim[0] : eta;
    const keys = groups.map(function (name, k) {
      const y = (1 + 1.4 * k) * em;
      const words = text(axes.left + 1.4 * em, y, name, { "text-anchor": "start" });
      return dot(axes.left + 0.7 * em, y - 0.3 * em, 5, { style: "fill:" + colours[k] }) + words;
    });
    box.show(
      0,
      axes.drawn("time of death (years)", "loss") +
        keys.join("") +
        path("M" + 14.5 * em + " " + 0.7 * em + "h24", { "stroke-width": "2" }) +
        text(14.9 * em + 24, em, "log |Rᵢ|", { "text-anchor": "start" }) +
        dots(0, false) +
        dots(1, false) +
        dots(0, true) +
        dots(1, true) +
        path(axes.line(...curve), { "stroke-width": "2" }) +
        path(axes.across(level), { class: "explore-weight", "stroke-dasharray": "6 4" }) +
        text(axes.right, axes.y(level) - 5, below ? "η is below" : "η", {
          class: "explore-weight",
          "text-anchor": "end",
        })
    );
  }

  function drawYears(bars, em) {
    const axes = explore.axes([0, deaths.length], [0, 100], placed(em), em);
    const wide = 0.8 * (axes.x(1) - axes.x(0));
    const drawn = deaths.map(function (share, year) {
      const left = axes.x(year) + wide / 8;
      const middle = axes.y(bars[0][year]);
      const top = axes.y(bars[0][year] + bars[1][year]);
      const bar = (y, bottom, k) =>
        tag("rect", {
          class: "explore-weight",
          x: left,
          y: y,
          width: wide,
          height: bottom - y,
          style: "fill:" + colours[k],
        });
      const outline = `M${left} ${axes.bottom}V${axes.y(share)}h${wide}V${axes.bottom}`;
      return bar(middle, axes.bottom, 0) + bar(top, middle, 1) + path(outline);
    });
    box.show(
      1,
      axes.drawn("year of death", "% of the deaths’ weight") +
        drawn.join("") +
        text(axes.right, em, "outlined: the deaths", { "text-anchor": "end" })
    );
  }

  function draw() {
    const step = Number(box.inputs.alpha.value);
    const trained = box.inputs.trained.checked;
    const state = (trained ? after : before)[step];
    drawCloud(losses[trained ? step : cox], state.eta, box.em());
    drawYears(state.bars, box.em());
    box.say("alpha", number(alphas[step], 2));
    box.say("worth", number(state.worth, 0));
    box.say("chosen", String(state.chosen));
    box.say("old", number(state.old, 0));
    box.say("early", number(state.early, 0));
  }

  function move() {
    box.say("feedback", ""); /* it was about the first state */
    box.root.classList.remove("explore-asking"); /* a link in the text may move before a guess */
    draw();
  }

  const percent = (value) => number(value, 0) + " %";
  const guesses = {
    "the oldest": "No: the model expected them to die, so that their losses are small. ",
    "the younger who died all the same": "Yes: the model did not expect them to die. ",
    "those who died first": "Only in part: most of the weight lies on later deaths. ",
  };
  const radios = Object.keys(guesses).map((guess, i) => box.tick("radio", "guess" + i, guess));
  box.root.classList.add("explore-asking"); /* until a guess is made, nobody's weight is seen */
  box.build({
    prompt: "Guess first. Then move α, and train the model against the adversary.",
    sizes: [
      [width, height],
      [width, height],
    ],
    inputs: `<fieldset><legend>To whom does the adversary give the weight at <i>α</i> = 0.1?</legend>
      ${radios.join("")}</fieldset>
      <div class="explore-after">${box.range("alpha", "share <i>α</i>", 0, cox, 1, 0, alphas)}
      ${box.tick("checkbox", "trained", "train the model against it at this <i>α</i>")}</div>`,
    readout: `${box.out("feedback")}<span class="explore-after">A step is worth ${box.out("worth")}
      of ${patients} patients; ${box.out("chosen")} have weight. Patients over 65 get
      ${box.out("old")} % of it (of the deaths ${percent(box.data.deathsOld)} are theirs), the
      earliest tenth of the deaths ${box.out("early")} % of the deaths’ weight.</span>`,
    draw: draw,
  });
  box.onInput("alpha", move);
  box.onInput("trained", move);
  Object.values(guesses).forEach(function (feedback, i) {
    box.onInput("guess" + i, function () {
      box.say("feedback", feedback);
      box.root.classList.remove("explore-asking");
    });
  });
});
