/* The main tables as ranked dots; means and deviations come from Python. */
"use strict";

explore("results", function (box) {
  const data = box.data;
  const { path, dot, text, number, colours } = explore;
  const [width, top, line] = [400, 14, 20];
  const bottom = top + data.methods.length * line;
  const chosen = ["exhibit", "metric", "view", "model"];
  const inks = {
    plain: colours[0],
    penalised: "var(--pst-color-text-muted,#666)",
    "DRO-COX": colours[1],
    SPLIT: colours[2],
  };

  function label(method) {
    return method.replace("_cap", "_∩");
  }

  function ranked(cells, metric, model) {
    const sign = data.larger.includes(metric) ? -1 : 1;
    return data.methods
      .map((_, i) => i)
      .filter((i) => model === "both" || data.models[i] === model)
      .sort((a, b) => sign * (cells[a][0] - cells[b][0]) || a - b);
  }

  function summary(cells, order, metric) {
    const best = data.larger.includes(metric) ? "largest" : "smallest";
    const mean = number(cells[order[0]][0], data.digits[metric]);
    const first = label(data.methods[order[0]]);
    const words = `The ${best} mean of ${data.metrics[metric]}, ${mean}, is that of ${first}. `;
    const rank = order.findIndex((i) => ["DRO-COX", "SPLIT"].includes(data.kinds[i]));
    if (rank === 0) return words;
    const ours = label(data.methods[order[rank]]);
    return words + `The first DRO method, ${ours}, is ${rank + 1} of ${order.length}.`;
  }

  function now() {
    const state = {};
    chosen.forEach(function (name) {
      state[name] = box.inputs[name].value;
    });
    state.cells = data.values[state.exhibit][state.view][state.metric];
    state.order = ranked(state.cells, state.metric, state.model);
    return state;
  }

  function draw() {
    const { exhibit, metric, view, cells, order } = now();
    const em = box.em();
    const [left, right] = [11.6 * em, width - 7.7 * em];
    const span = data.spans[exhibit][metric];
    const digits = data.digits[metric];
    /* what lies beyond the axis stands at its end */
    function place(value) {
      const share = (value - span[0]) / (span[1] - span[0]);
      return left + Math.min(Math.max(share, 0), 1) * (right - left);
    }
    const drawn = explore
      .ticks(...span)
      .map(function ([value, words]) {
        const x = place(value);
        const grid = path("M" + x.toFixed(1) + " " + top + "V" + bottom, { opacity: "0.15" });
        return grid + text(x, bottom + 1.25 * em, words);
      });
    order.forEach(function (i, rank) {
      const y = top + (rank + 0.5) * line;
      const [mean, sd] = cells[i];
      const ink = inks[data.kinds[i]];
      const inside = data.models[i] === "linear" ? ink : explore.paper;
      const style = `stroke:${ink};fill:${inside};stroke-width:2`;
      const bar = "M" + place(mean - sd).toFixed(1) + " " + y + "H" + place(mean + sd).toFixed(1);
      const told = number(mean, digits) + " ± " + number(sd, digits);
      drawn.push(
        text(left - 8, y + 0.35 * em, label(data.methods[i]), { "text-anchor": "end" }),
        path(bar, { style: style }),
        dot(place(mean), y, 5, { style: style }),
        text(right + 8, y + 0.35 * em, told, { "text-anchor": "start" })
      );
    });
    box.show(
      0,
      path("M" + left + " " + bottom + "H" + right) +
        drawn.join("") +
        text((left + right) / 2, bottom + 2.7 * em, data.metrics[metric])
    );
    box.say("summary", summary(cells, order, metric));
    const what = data.metrics[metric] + " on " + data.titles[exhibit] + ", " + view + ".";
    const alt = box.pictures.getAttribute("aria-label").replace(/; here .*$/, "; here " + what);
    box.pictures.setAttribute("aria-label", alt);
  }

  /* Rows of one metric of one table, the best first. */
  function lines(exhibit, view, metric, model) {
    const cells = data.values[exhibit][view][metric];
    return ranked(cells, metric, model).map(function (i, rank) {
      const [mean, sd] = cells[i];
      const words = [data.titles[exhibit], view, metric, data.models[i], data.methods[i]];
      const quoted = words.map((word) => '"' + word.replace(/"/g, '""') + '"');
      return [...quoted, rank + 1, mean, sd].join(",");
    });
  }

  function save(name, body) {
    const head = "data,view,metric,model,method,rank,mean,sd";
    const csv = [head, ...body].join("\n") + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const legend = Object.entries(inks).map(
    ([name, ink]) => `<span class="explore-key" style="--key:${ink}">${name}</span>`
  );
  const views = Object.fromEntries(data.views.map((view) => [view, view]));
  const models = { both: "linear and nonlinear", linear: "linear", nonlinear: "nonlinear" };
  const { first } = data;
  box.build({
    prompt: "Choose a data set, a metric and a view. The best method is at the top.",
    sizes: [[width, bottom + 44]],
    inputs:
      '<div class="explore-choices">' +
      box.choice("exhibit", "data set", data.titles, first.exhibit) +
      box.choice("metric", "metric", data.metrics, first.metric) +
      box.choice("view", "view", views, first.view) +
      box.choice("model", "models", models, first.model) +
      '</div><div class="explore-buttons">' +
      box.button("shown", "CSV of what is shown") +
      box.button("all", "CSV of everything") +
      "</div>",
    readout: `${legend.join(" ")} Filled: linear, open: nonlinear; bars: one SD of ten repeats.
      ${box.out("summary")}`,
    draw: draw,
  });
  chosen.forEach((name) => box.onInput(name, draw));
  box.onButton("shown", function () {
    const { exhibit, view, metric, model } = now();
    const name = [exhibit, metric, view.replace(/\W+/g, "-")].join("-") + ".csv";
    save(name, lines(exhibit, view, metric, model));
  });
  box.onButton("all", function () {
    const all = [];
    Object.keys(data.values).forEach(function (exhibit) {
      Object.keys(data.values[exhibit]).forEach(function (view) {
        Object.keys(data.metrics).forEach(function (metric) {
          all.push(...lines(exhibit, view, metric, "both"));
        });
      });
    });
    save("main-tables.csv", all);
  });
});
