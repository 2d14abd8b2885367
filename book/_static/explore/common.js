/* What all explorables share. A script calls explore("kind", function (box) { ... }) for each
   figure of its kind: box.build puts inputs, read-out and empty pictures in place of the plain
   figure, and the script then draws the pictures, at first and after each change. */
"use strict";

function explore(kind, setUp) {
  function start() {
    document.querySelectorAll('figure[data-explore="' + kind + '"]').forEach(function (root) {
      if (root.dataset.ready) return;
      root.dataset.ready = "yes";
      setUp(explore.box(root));
    });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
}

explore.colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"].map(
  (colour, i) => "var(--dc-" + i + "," + colour + ")"
);
explore.paper = "var(--pst-color-background,#fff)";

/* Numbers for readers: proper minus sign, no minus zero. */
explore.number = function (value, digits) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "\u2212");
};

explore.sum = (values) => values.reduce((a, b) => a + b, 0);

explore.escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/* An element as text; numbers in attributes are pixels. */
explore.tag = function (name, attributes, content) {
  const written = Object.entries(attributes).map(
    ([key, value]) => key + '="' + (typeof value === "number" ? value.toFixed(1) : value) + '"'
  );
  return "<" + [name, ...written].join(" ") + ">" + (content || "") + "</" + name + ">";
};

explore.path = (d, attributes) =>
  explore.tag("path", { d: d, fill: "none", stroke: "currentColor", ...attributes });

explore.dot = (x, y, r, attributes) => explore.tag("circle", { cx: x, cy: y, r: r, ...attributes });

explore.text = (x, y, words, attributes) =>
  explore.tag("text", { x: x, y: y, "text-anchor": "middle", ...attributes }, explore.escape(words));

/* About five round numbers between two bounds, each with its text. */
explore.ticks = function (low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((times) => times * power >= 0.999 * rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-6); k * step <= high + 1e-6 * step; k++) {
    const text = String(Number((k * step).toPrecision(4)));
    found.push([k * step, text.replace("-", "\u2212")]);
  }
  return found;
};

/* Axes in a box of pixels {left, right, top, bottom}; em is the size of letters. */
explore.axes = function (xlim, ylim, place, em) {
  const { left, right, top, bottom } = place;
  const { tag, text, path } = explore;
  const x = (value) => left + ((value - xlim[0]) / (xlim[1] - xlim[0])) * (right - left);
  const y = (value) => bottom + ((value - ylim[0]) / (ylim[1] - ylim[0])) * (top - bottom);
  return {
    x: x,
    y: y,
    left: left,
    right: right,
    top: top,
    bottom: bottom,
    valueOfX: (pixel) => xlim[0] + ((pixel - left) / (right - left)) * (xlim[1] - xlim[0]),
    valueOfY: (pixel) => ylim[0] + ((pixel - bottom) / (top - bottom)) * (ylim[1] - ylim[0]),
    line: (xs, ys) =>
      "M" + xs.map((v, i) => x(v).toFixed(1) + " " + y(ys[i]).toFixed(1)).join("L"),
    across: (value, to) => "M" + left + " " + y(value).toFixed(1) + "H" + (to || right),
    down: (value, from) => "M" + x(value).toFixed(1) + " " + (from || top) + "V" + bottom,
    /* Only what lies between the axes is shown. */
    clipped: function (content) {
      const [wide, high] = [right - left, bottom - top];
      const view = [left, top, wide, high].join(" ");
      return tag("svg", { x: left, y: top, width: wide, height: high, viewBox: view }, content);
    },
    drawn: function (xlabel, ylabel, xticks, yticks) {
      const marks = [];
      (xticks || explore.ticks(...xlim)).forEach(function ([value, words]) {
        marks.push(text(x(value), bottom + 1.35 * em, words));
      });
      (yticks || explore.ticks(...ylim)).forEach(function ([value, words]) {
        marks.push(path("M" + left + " " + y(value).toFixed(1) + "H" + right, { opacity: "0.15" }));
        marks.push(text(left - 0.45 * em, y(value) + 0.35 * em, words, { "text-anchor": "end" }));
      });
      marks.push(path("M" + left + " " + top + "V" + bottom + "H" + right));
      if (xlabel) marks.push(text((left + right) / 2, bottom + 2.75 * em, xlabel));
      const turn = "translate(" + 0.9 * em + " " + (top + bottom) / 2 + ") rotate(-90)";
      if (ylabel) marks.push(text(0, 0, ylabel, { transform: turn }));
      return marks.join("");
    },
  };
};

explore.box = function (root) {
  const pictures = root.querySelector(".explore-pictures");
  const box = {
    root: root,
    pictures: pictures,
    data: JSON.parse(root.querySelector('script[type="application/json"]').textContent),
    inputs: {},
    values: {},

    /* HTML of inputs; label is HTML. Where a slider counts positions, values says what stands at each. */
    range: function (name, label, low, high, step, value, values) {
      const key = root.id + "-" + name;
      box.values[name] = values;
      return `<div class="explore-range"><label for="${key}">${label}</label><input type="range"
        id="${key}" data-in="${name}" min="${low}" max="${high}" step="${step}" value="${value}">
        <span class="explore-value" aria-hidden="true" data-out="${name}"></span></div>`;
    },
    tick: function (type, name, label, checked) {
      const key = root.id + "-" + name;
      return `<div class="explore-check"><input type="${type}" name="${type === "radio" ? root.id : key}"
        id="${key}" data-in="${name}"${checked ? " checked" : ""}>
        <label for="${key}">${label}</label></div>`;
    },
    choice: function (name, label, options, chosen) {
      const key = root.id + "-" + name;
      const entries = Object.entries(options).map(
        ([value, words]) =>
          `<option value="${value}"${value === chosen ? " selected" : ""}>${words}</option>`
      );
      return `<div class="explore-choice"><label for="${key}">${label}</label>
        <select id="${key}" data-in="${name}">${entries.join("")}</select></div>`;
    },
    button: (name, label) => `<button type="button" data-do="${name}">${label}</button>`,
    out: (name) => `<span class="explore-value" data-out="${name}"></span>`,

    /* Sizes of the pictures in pixels of their own; each is as wide as there is room. */
    build: function (parts) {
      pictures.innerHTML = parts.sizes
        .map(function ([width, height]) {
          return `<div class="explore-picture"><svg viewBox="0 0 ${width} ${height}" width="100%"
            style="max-width:${1.35 * width}px" fill="currentColor" aria-hidden="true"></svg></div>`;
        })
        .join("");
      if (parts.prompt)
        pictures.insertAdjacentHTML("beforebegin", `<p class="explore-prompt">${parts.prompt}</p>`);
      pictures.insertAdjacentHTML(
        "afterend",
        `<div class="explore-inputs">${parts.inputs}</div>
        <p class="explore-readout" aria-live="polite">${parts.readout}</p>`
      );
      root.querySelectorAll("[data-in]").forEach(function (element) {
        box.inputs[element.dataset.in] = element;
      });
      window.addEventListener("resize", parts.draw); /* letters may be larger on a small screen */
      parts.draw();
      setTimeout(box.link); /* the script has then named what its inputs do */
    },
    /* A link ?alpha=0.1,best#explore-dual in a sentence sets inputs and presses buttons of this figure, and so does an
       address that ends like this. Out of sight, the figure is also gone to, and the browser's Back returns. */
    link: function () {
      document.querySelectorAll(`a[href^="?"][href$="#${root.id}"]`).forEach(function (link) {
        link.title = "Shows this in the figure";
        link.addEventListener("click", function (event) {
          event.preventDefault();
          box.set(link.search);
          const { top, bottom } = pictures.getBoundingClientRect();
          const middle = window.innerHeight / 2;
          if (top < middle && bottom > middle) return;
          /* An address that has the hash already would not scroll again, and Back would lead to the figure. */
          history.replaceState(history.state, "", location.pathname + location.search);
          location.hash = root.id;
        });
      });
      if (location.hash === "#" + root.id) box.set(location.search);
    },
    /* Inputs are named as in the script or as their label; 0 unchecks a box; a button has no value. */
    set: function (query) {
      const nearest = (values, value) => {
        const distances = values.map((at) => Math.abs(at - value));
        return distances.indexOf(Math.min(...distances));
      };
      const labelled = (name) => Object.values(box.inputs).find((e) => e.labels[0].textContent === name);
      new URLSearchParams(query.replaceAll(",", "&")).forEach(function (value, name) {
        const input = box.inputs[name] || labelled(name);
        if (!input) return root.querySelector(`[data-do="${name}"]`)?.click();
        const values = box.values[input.dataset.in];
        if (["checkbox", "radio"].includes(input.type)) input.checked = value !== "0";
        else input.value = values ? nearest(values, value) : value;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      });
    },
    /* Size of letters, in pixels of the picture. */
    em: () => Number(getComputedStyle(root).getPropertyValue("--explore-letters")) || 13,
    show: function (k, content) {
      const svg = pictures.querySelectorAll(".explore-picture > svg")[k];
      svg.setAttribute("font-size", box.em());
      svg.innerHTML = content;
    },
    /* Fills a place in the read-out; a slider also says its value aloud. */
    say: function (name, text) {
      root.querySelectorAll('[data-out="' + name + '"]').forEach(function (place) {
        place.textContent = text;
      });
      if (box.inputs[name] && box.inputs[name].type === "range")
        box.inputs[name].setAttribute("aria-valuetext", text);
    },
    onInput: function (name, then) {
      box.inputs[name].addEventListener("input", then);
    },
    onButton: function (name, then) {
      root.querySelector('[data-do="' + name + '"]').addEventListener("click", then);
    },
    /* Mouse, pen or finger drags an element with data-drag in the k-th picture; then gets this
       name and the place in pixels of the picture. */
    onDrag: function (k, then) {
      const svg = pictures.querySelectorAll(".explore-picture > svg")[k];
      let dragged = null;
      svg.addEventListener("pointerdown", function (event) {
        dragged = event.target.dataset.drag;
        if (dragged === undefined) return;
        svg.setPointerCapture(event.pointerId);
        event.preventDefault();
      });
      /* or the browser would take a moving finger for its own and scroll the page */
      function hold(event) {
        if (event.target.dataset.drag !== undefined) event.preventDefault();
      }
      svg.addEventListener("touchstart", hold, { passive: false });
      svg.addEventListener("pointermove", function (event) {
        if (!svg.hasPointerCapture(event.pointerId)) return;
        const place = svg.getBoundingClientRect();
        const size = svg.viewBox.baseVal;
        then(
          dragged,
          ((event.clientX - place.left) / place.width) * size.width,
          ((event.clientY - place.top) / place.height) * size.height
        );
      });
    },
  };
  return box;
};
