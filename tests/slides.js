// Show a slide with all its steps; what cannot be read there, in words.
(index) => {
  Reveal.slide(index);
  while (Reveal.availableFragments().next) Reveal.nextFragment();
  const slide = Reveal.getCurrentSlide();
  slide.querySelector(".explore input[type=radio]")?.click(); // a guess, after which there is more to be seen
  const problems = [];
  const edge = { left: 20, right: innerWidth - 20, top: 10, bottom: innerHeight - 24 };
  const parts = "h1, h2, p, li, td, th, figcaption, img, svg, pre, iframe, label, button, .katex-display > .katex";
  for (const part of slide.querySelectorAll(parts)) {
    if (part.closest(".notes, .katex-mathml") || part.closest("svg svg")) continue;
    if (part.matches("svg") && part.closest(".katex")) continue; // signs that formulas draw
    const box = part.getBoundingClientRect();
    const name = part.tagName + " " + (part.textContent || part.alt || "").trim().slice(0, 40);
    if (box.width === 0) continue;
    if (box.left < edge.left || box.right > edge.right || box.top < edge.top || box.bottom > edge.bottom)
      problems.push(`${name} reaches beyond the slide: ${[box.left, box.top, box.right, box.bottom].map(Math.round)}`);
    const size = parseFloat(getComputedStyle(part).fontSize) * (box.width / (part.offsetWidth || box.width));
    if (part.matches("p, li, td, figcaption, pre") && size < 17.5) problems.push(`${name} is set in ${size} px`);
    if (part.matches("img, svg") && part.closest("figure.quoted") && box.height < 230)
      problems.push(`${name} is only ${Math.round(box.height)} px high`);
  }
  for (const svg of slide.querySelectorAll(".explore-picture > svg")) {
    const box = svg.getBoundingClientRect();
    const drawn = svg.viewBox.baseVal;
    if (drawn && Math.abs(box.width / box.height - drawn.width / drawn.height) > 0.01)
      problems.push("an explorable is not as wide as it is drawn: its handles miss the pointer");
  }
  for (const text of slide.querySelectorAll(".explore svg text")) {
    const size = parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().d;
    if (text.textContent.trim() && Math.abs(size) > 0 && size < 16) problems.push(`${text.textContent} is drawn ${size.toFixed(1)} px high`);
  }
  return problems;
};
