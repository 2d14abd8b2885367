// Weights of search results, as Sphinx has them; of results that weigh the same, the earlier chapter comes first.
var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const chapter = parseFloat(title.replace(/<[^>]+>/g, "")); // titles come with tags: "<span …>16. </span>The effect of α"
    return score - (chapter || 0) / 1000;
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
