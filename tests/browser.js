// What a reader would complain about. Each function gives a list, empty if all is well.
({
  // TeX that should have been set as a formula.
  leftover() {
    const found = [];
    const walk = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const node = walk.currentNode;
      if (node.parentElement.closest("pre, code, script, style, .katex, title")) continue;
      if (/\\\(|\\\[|\$\$|\\[a-z]{3,}|\$[^$\s][^$]*\$/.test(node.textContent))
        found.push(node.textContent.trim().slice(0, 80));
    }
    return found;
  },

  // Formulas that were not set, are empty, or show an error.
  formulas() {
    const places = [...document.querySelectorAll("article .math")];
    const bad = places.filter((p) => {
      const formula = p.querySelector(".katex-html");
      return !formula || (p.offsetParent && !formula.getBoundingClientRect().width);
    });
    bad.push(...document.querySelectorAll(".katex-error"));
    return bad.map((e) => e.textContent.slice(0, 80));
  },

  // Elements that reach beyond the screen and do not stand in a box that scrolls by itself.
  wide() {
    const root = document.documentElement;
    const boxed = (e) => {
      for (let p = e.parentElement; p; p = p.parentElement)
        if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return true;
      return false;
    };
    const found = this.elements()
      .filter((e) => {
        const box = e.getBoundingClientRect();
        return box.width && box.right > root.clientWidth + 1 && !boxed(e);
      })
      .map((e) => e.outerHTML.slice(0, 120));
    if (root.scrollWidth > root.clientWidth + 1) found.push("the page scrolls sideways");
    return found;
  },

  // Pictures that did not load, say nothing to those who cannot see them, or move the text below.
  pictures() {
    return [...document.querySelectorAll("article img")]
      .filter((i) => i.alt.length < 3 || !i.complete || !i.naturalWidth || !i.getAttribute("width"))
      .map((i) => i.outerHTML.slice(0, 120));
  },

  // Text whose contrast with the ground behind it is below 4.5 (WCAG 2, level AA).
  faint() {
    const numbers = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
    const linear = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const known = new Map([[null, [255, 255, 255]]]);
    const ground = (e) => {
      if (!known.has(e)) {
        const colour = numbers(getComputedStyle(e).backgroundColor);
        const opaque = colour.length === 3 || colour[3] > 0.9;
        known.set(e, opaque ? colour : ground(e.parentElement));
      }
      return known.get(e);
    };
    const kinds = ["p", "li", "td", "th", "h1", "h2", "h3", "a", "figcaption", "label", "output", "summary", "dt", "button", "pre span", ".paper"];
    const found = new Set();
    for (const e of document.querySelectorAll(kinds.map((kind) => "article " + kind).join())) {
      if (!e.textContent.trim() || !e.offsetParent || e.closest(".headerlink, .katex")) continue;
      const [low, high] = [numbers(getComputedStyle(e).color), ground(e)].map(luminance).sort((a, b) => a - b);
      const contrast = (high + 0.05) / (low + 0.05);
      if (contrast < 4.5) found.add(`${e.tagName} ${contrast.toFixed(2)} ${e.textContent.trim().slice(0, 50)}`);
    }
    return [...found];
  },

  // Boxes that scroll and cannot be reached by keyboard.
  unreachable() {
    return [...document.querySelectorAll("article .output, article pre, article .wide-picture, article .katex-display, article .pst-scrollable-table-container")]
      .filter((e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX))
      .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0 && !e.querySelector("[tabindex='0']"))
      .map((e) => e.outerHTML.slice(0, 120));
  },

  // Dropdowns that are open.
  open() {
    return this.dropdowns().filter((box) => box.open || this.shows(box)).map((box) => box.outerHTML.slice(0, 120));
  },

  // Dropdowns that do not show what they hold when their title is clicked.
  stuck() {
    const boxes = this.dropdowns();
    const closed = boxes.filter((box) => !this.shows(box));
    for (const box of closed) this.title(box).click();
    return boxes.filter((box) => !this.shows(box)).map((box) => box.outerHTML.slice(0, 120));
  },

  // Of dropdowns that are all open, those that do not close when their title is clicked.
  closed_again() {
    for (const box of this.dropdowns()) this.title(box).click();
    return this.open();
  },

  // Links that should set inputs of a figure, and name one that is not there or a value that it cannot have.
  idle_links() {
    return [...document.querySelectorAll("article a.sets-figure")]
      .filter((link) => {
        const figure = document.querySelector(link.hash);
        const inputs = [...(figure?.querySelectorAll("[data-in], [data-do]") ?? [])];
        const known = (name) => inputs.find((e) => [e.dataset.in, e.dataset.do, e.labels?.[0]?.textContent].includes(name));
        link.click();
        return ![...new URLSearchParams(link.search.replaceAll(",", "&"))].every(([name, value]) => {
          const input = known(name);
          if (!input || !value || input.type !== "range") return input;
          const said = (input.getAttribute("aria-valuetext") ?? "").replace("\u2212", "-");
          return Math.abs(parseFloat(said) - value) < 0.01;
        });
      })
      .map((link) => link.outerHTML);
  },

  // Elements of the article; of a formula only the whole.
  elements() {
    const part = (e) => (e.parentElement.classList.contains("katex") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const walk = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_ELEMENT, part);
    const all = [];
    while (walk.nextNode()) all.push(walk.currentNode);
    return all;
  },

  dropdowns: () => [...document.querySelectorAll("article details, article .admonition.dropdown")],
  title: (box) => box.querySelector(":scope > :is(summary, .admonition-title)"),
  shows: (box) =>
    box.querySelector(":scope > :not(summary, .admonition-title, .toggle-button)")?.checkVisibility({ visibilityProperty: true }),

  // On a desk: outputs, tables and formulas of which a part can only be seen by scrolling.
  cut() {
    const kinds = [".cell_output pre", ".output.text_html", ".pst-scrollable-table-container", ".katex-display"];
    return [...document.querySelectorAll(kinds.map((kind) => "article " + kind).join())]
      .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
      .map((e) => `${e.scrollWidth} of ${e.clientWidth} pixels: ${e.textContent.trim().slice(0, 60)}`);
  },

  // Paragraphs of text whose lines are longer than 76 characters.
  long() {
    return [...document.querySelectorAll("article section > p")]
      .filter((p) => p.checkVisibility() && !p.querySelector(".katex, .paper"))
      .map((p) => {
        const lines = Math.round(p.getBoundingClientRect().height / parseFloat(getComputedStyle(p).lineHeight));
        return [p.innerText.replace(/\s+/g, " ").length / lines, lines, p.innerText.slice(0, 60)];
      })
      .filter(([characters, lines]) => lines > 3 && characters > 76)
      .map(([characters, , text]) => `${characters.toFixed(0)}: ${text}`);
  },

  // Links in the text without a line below them.
  hidden_links() {
    return [...document.querySelectorAll("article :is(p, li, td, dd, figcaption, summary) a:not(.headerlink)")]
      .filter((e) => e.textContent.trim() && !getComputedStyle(e).textDecorationLine.includes("underline"))
      .map((e) => e.outerHTML.slice(0, 120));
  },

  // Figures that are shrunk so much that letters of 10 points, the smallest, are lower than 9 pixels.
  small() {
    return [...document.querySelectorAll("article img[src*='_images']")]
      .filter((i) => i.checkVisibility() && i.naturalWidth && i.clientWidth / i.naturalWidth < 0.675)
      .map((i) => `${i.clientWidth} of ${i.naturalWidth}: ${i.alt.slice(0, 60)}`);
  },

  // Code whose lines are wrapped: Python without its indentation.
  wrapped() {
    return [...document.querySelectorAll("article .cell_input pre, article div[class*='highlight-'] pre")]
      .filter((e) => e.checkVisibility() && getComputedStyle(e).whiteSpace !== "pre")
      .map((e) => e.textContent.slice(0, 60));
  },

  // Ids that two elements have.
  twice() {
    const ids = [...document.querySelectorAll("article [id]")].map((e) => e.id);
    const seen = new Set();
    return ids.filter((id) => seen.has(id) || !seen.add(id));
  },

  // On paper: what is cut off, tabs that are not printed, solutions that are.
  paper() {
    const seen = (e) => e.checkVisibility({ visibilityProperty: true });
    const all = (what) => [...document.querySelectorAll(what)];
    const cut = all("article .output, article pre, article .wide-picture, article .katex-display").filter(
      (e) => seen(e) && getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 2,
    );
    const low = all("article .output").filter((e) => seen(e) && getComputedStyle(e).maxHeight !== "none");
    const tabs = all("article .sd-tab-content").filter((e) => !seen(e) && seen(e.parentElement));
    const open = all("article div.solution > :not(.admonition-title)").filter(seen);
    return [...cut, ...low, ...tabs, ...open].map((e) => e.outerHTML.slice(0, 120));
  },

  // Tables whose head or first column does not stay when their box is scrolled to its far corner.
  loose() {
    return [...document.querySelectorAll("article .output.text_html table")]
      .filter((table) => {
        const box = table.closest(".output.text_html");
        box.scrollTo(1e5, 1e5);
        const edge = box.getBoundingClientRect();
        const left = table.querySelector("tbody tr > *").getBoundingClientRect().left - edge.left;
        const above = Math.max(0, (table.caption?.offsetHeight ?? 0) - box.scrollTop);
        const top = table.tHead?.offsetHeight ? table.tHead.getBoundingClientRect().top - edge.top - above : 0;
        box.scrollTo(0, 0);
        return Math.max(Math.abs(left), Math.abs(top)) > 12;
      })
      .map((table) => table.textContent.trim().slice(0, 80));
  },
})
