/* What all explorables share: finding their elements, writing numbers, axes, inputs.
   A script calls explore("kind", function (box) { ... }); box is one element of this kind. */
"use strict";

function explore(kind, setUp) {
  function start() {
    document.querySelectorAll('figure[data-explore="' + kind + '"]').forEach(function (root) {
      if (root.dataset.ready) return;
      root.dataset.ready = "yes";
      setUp(explore.box(root));
      root.querySelectorAll(":scope > [hidden]").forEach(function (part) {
        part.hidden = false;
      });
    });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
}

/* Numbers as the Python side writes them: proper minus sign, no minus zero. */
explore.number = function (value, digits) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "\u2212");
};

explore.pixels = function (value) {
  return value.toFixed(1);
};

/* Axes from [low, high, first pixel, last pixel] for x and for y. */
explore.axes = function (data) {
  function scale(s) {
    return function (value) {
      return s[2] + ((value - s[0]) / (s[1] - s[0])) * (s[3] - s[2]);
    };
  }
  const x = scale(data.x);
  const y = scale(data.y);
  const p = explore.pixels;
  function back(s) {
    return function (pixel) {
      return s[0] + ((pixel - s[2]) / (s[3] - s[2])) * (s[1] - s[0]);
    };
  }
  return {
    valueOfX: back(data.x),
    valueOfY: back(data.y),
    x: x,
    y: y,
    left: data.x[2],
    right: data.x[3],
    bottom: data.y[2],
    top: data.y[3],
    xlim: data.x.slice(0, 2),
    ylim: data.y.slice(0, 2),
    line: function (xs, ys) {
      return "M" + xs.map((v, i) => p(x(v)) + " " + p(y(ys[i]))).join("L");
    },
  };
};

explore.box = function (root) {
  const parts = {};
  root.querySelectorAll("[data-part]").forEach(function (element) {
    parts[element.dataset.part] = element;
  });
  const inputs = {};
  root.querySelectorAll("[data-in]").forEach(function (element) {
    inputs[element.dataset.in] = element;
  });
  return {
    root: root,
    data: JSON.parse(root.querySelector('script[type="application/json"]').textContent),
    inputs: inputs,
    part: function (name) {
      return parts[name];
    },
    /* Attributes of a part; numbers are written as pixels. */
    set: function (name, attributes) {
      Object.keys(attributes).forEach(function (key) {
        const value = attributes[key];
        const text = typeof value === "number" ? explore.pixels(value) : value;
        parts[name].setAttribute(key, text);
      });
    },
    write: function (name, text) {
      parts[name].textContent = text;
    },
    /* Text of all places in the read-out with this name; a slider also says it aloud. */
    say: function (name, text) {
      root.querySelectorAll('[data-out="' + name + '"]').forEach(function (place) {
        place.textContent = text;
      });
      if (inputs[name] && inputs[name].type === "range")
        inputs[name].setAttribute("aria-valuetext", text);
    },
    onInput: function (name, then) {
      inputs[name].addEventListener("input", then);
    },
    /* Drag a part by mouse, pen or finger; then gets the place in pixels of the drawing. */
    onDrag: function (name, then) {
      const handle = parts[name];
      const svg = handle.ownerSVGElement;
      handle.classList.add("explore-handle");
      handle.addEventListener("pointerdown", function (event) {
        handle.setPointerCapture(event.pointerId);
        event.preventDefault();
      });
      /* or the browser would take a moving finger for its own and scroll the page */
      handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
      handle.addEventListener("pointermove", function (event) {
        if (!handle.hasPointerCapture(event.pointerId)) return;
        const place = svg.getBoundingClientRect();
        const size = svg.viewBox.baseVal;
        then(
          ((event.clientX - place.left) / place.width) * size.width,
          ((event.clientY - place.top) / place.height) * size.height
        );
      });
    },
    onButton: function (name, then) {
      root.querySelector('[data-do="' + name + '"]').addEventListener("click", then);
    },
  };
};
