/* The main tables as ranked dots; means and deviations come from Python. */
"use strict";

explore("results", function (box) {
  const data = box.data;
  const [left, right, top, line, bottom] = data.axis;
  const p = explore.pixels;
  const rows = data.methods.length;
  const chosen = ["exhibit", "metric", "view", "model"];

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
    const mean = explore.number(cells[order[0]][0], data.digits[metric]);
    const name = data.metrics[metric];
    const first = label(data.methods[order[0]]);
    const text = "The " + best + " mean of " + name + ", " + mean + ", is that of " + first + ". ";
    const rank = order.findIndex((i) => data.dro[i]);
    if (rank === 0) return text;
    const ours = label(data.methods[order[rank]]);
    return text + "The first DRO method, " + ours + ", is " + (rank + 1) + " of " + order.length + ".";
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
    const span = data.spans[exhibit][metric];
    const digits = data.digits[metric];
    function place(value) {
      const share = (value - span[0]) / (span[1] - span[0]);
      return left + Math.min(Math.max(share, 0), 1) * (right - left);
    }
    for (let i = 0; box.part("tick" + i); i++) {
      const [value, text] = data.ticks[exhibit][metric][i] || [span[0], ""];
      const x = place(value);
      box.set("grid" + i, { d: "M" + p(x) + " " + top + "V" + bottom });
      box.set("tick" + i, { x: x });
      box.write("tick" + i, text);
    }
    for (let rank = 0; rank < rows; rank++) {
      const i = order[rank];
      const shown = rank < order.length;
      const y = top + (rank + 0.5) * line;
      let style = "";
      let bar = "";
      let value = "";
      if (shown) {
        const [mean, std] = cells[i];
        const ink = data.colours[i];
        const inside = data.models[i] === "linear" ? ink : "var(--pst-color-background,#fff)";
        style = "stroke:" + ink + ";fill:" + inside + ";stroke-width:2";
        bar = "M" + p(place(mean - std)) + " " + p(y) + "H" + p(place(mean + std));
        value = explore.number(mean, digits) + " ± " + explore.number(std, digits);
      }
      box.write("name" + rank, shown ? label(data.methods[i]) : "");
      box.write("value" + rank, value);
      box.set("bar" + rank, { d: bar, style: style });
      const x = shown ? place(cells[i][0]) : 0;
      box.set("dot" + rank, { cx: x, r: shown ? "5" : "0", style: style });
    }
    box.write("metric", data.metrics[metric]);
    box.say("summary", summary(cells, order, metric));
    const what = data.metrics[metric] + " on " + data.titles[exhibit] + ", " + view + ".";
    const picture = box.root.querySelector(".explore-pictures");
    const alt = picture.getAttribute("aria-label").replace(/; here .*$/, "; here " + what);
    picture.setAttribute("aria-label", alt);
  }

  /* Rows of one metric of one table, the best first. */
  function lines(exhibit, view, metric, model) {
    const cells = data.values[exhibit][view][metric];
    return ranked(cells, metric, model).map(function (i, rank) {
      const [mean, std] = cells[i];
      const words = [data.titles[exhibit], view, metric, data.models[i], data.methods[i]];
      const quoted = words.map((word) => '"' + word.replace(/"/g, '""') + '"');
      return [...quoted, rank + 1, mean, std].join(",");
    });
  }

  function save(name, body) {
    const head = "data,view,metric,model,method,rank,mean,sd";
    const text = [head, ...body].join("\n") + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  chosen.forEach(function (name) {
    box.onInput(name, draw);
  });
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
