// Weights of search results, as Sphinx has them; of results that weigh the same, those with the word in the chapter's own
// title come first, then the earlier chapter.
var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const asked = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
    const letter = { alpha: "α", eta: "η", theta: "θ", lambda: "λ", gamma: "γ" }[asked] || asked;
    const plain = title.replace(/<[^>]+>/g, ""); // titles come with tags: "<span …>16. </span>The effect of α"
    return score + (asked && plain.toLowerCase().includes(letter) ? 1 : 0) - (parseFloat(plain) || 0) / 1000;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
