// Weights of search results, as Sphinx has them; of results that weigh the same, those with the word in the chapter's own
// title come first, then the earlier chapter.
var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const asked = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
    const letter = { alpha: "α", eta: "η", theta: "θ", lambda: "λ", gamma: "γ" }[asked] || asked;
    const plain = title.replace(/<[^>]+>/g, ""); // titles come with tags: "<span …>16. </span>The effect of α"
    return score + (asked && plain.toLowerCase().includes(letter) ? 1 : 0) - (parseFloat(plain) || 0) / 1000;
  },
  objNameMatch: 3, // chapters come before the API
  objPartialMatch: 2,
  objPrio: { 0: 0, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// Excerpts come from the text of a page: no buttons, no code, no boxes of goals, and each formula once.
const NOT_TOLD = [
  ".headerlink", "script", "style", "details", "nav", ".goals", ".csv", ".cell_input", ".katex-html", "annotation",
  ".toggle-button", ".caption-number", "table", ".sd-tab-set > label",
];
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  Search.htmlToText = (source, anchor) => {
    const page = new DOMParser().parseFromString(source, "text/html");
    const article = page.querySelector("article");
    if (!article) return "";
    article.querySelectorAll(NOT_TOLD.join()).forEach((part) => part.remove());
    const place = anchor ? article.querySelector(anchor) : null;
    const around = place?.closest("section") ?? article;
    return around.textContent.replace(/\s+/g, " ").trim();
  };
});
