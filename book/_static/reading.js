// What a style sheet cannot do for reading: boxes that scroll can be reached by keyboard and show where there is more,
// a page is printed in dark ink on white, and buttons have the names that one sees on them.
(() => {
  const BOXES =
    ".output.text_html:has(table), .pst-scrollable-table-container, .wide-picture, .bd-article pre, .katex-display";

  function look(box) {
    const wide = box.scrollWidth > box.clientWidth + 1;
    const scrolls = wide || box.scrollHeight > box.clientHeight + 1;
    const edge = box.scrollLeft + box.clientWidth;
    box.classList.toggle("more-left", wide && box.scrollLeft > 1 && !box.querySelector("table"));
    box.classList.toggle("more-right", wide && edge < box.scrollWidth - 1);
    if (!scrolls) return ["tabindex", "role", "aria-label"].forEach((name) => box.removeAttribute(name));
    box.tabIndex = 0;
    const words = box.querySelector("caption")?.textContent || box.querySelector("img")?.alt;
    if (!words) return;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `${words.trim()} (scrolls)`);
  }

  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => look(entry.target)));

  function watch(boxes) {
    document.querySelectorAll(boxes).forEach((box) => {
      sizes.observe(box);
      box.addEventListener("scroll", () => look(box), { passive: true });
    });
  }

  function start() {
    watch(BOXES);
    const side = document.querySelector(".bd-sidebar-primary");
    side?.setAttribute("role", "navigation"); // the name of the book stands outside of its lists
    side?.setAttribute("aria-label", "Contents of the book");
    document
      .querySelectorAll(".search-button-field, details.hide > summary")
      .forEach((button) => button.removeAttribute("aria-label"));
    document
      .querySelectorAll(".theme-switch-button")
      .forEach((button) => button.setAttribute("aria-label", "Color mode: Light, Dark or System Settings"));
  }

  let theme;
  const root = document.documentElement;
  window.addEventListener("beforeprint", () => ([theme, root.dataset.theme] = [root.dataset.theme, "light"]));
  window.addEventListener("afterprint", () => (root.dataset.theme = theme));
  document.addEventListener("DOMContentLoaded", start);
})();
