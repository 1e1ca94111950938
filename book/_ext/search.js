/* The search of the book: how results are ordered, what a query is compared with, and what an excerpt quotes.

   Sphinx puts this file (`html_search_scorer` in _config.yml) into language_data.js, which the page of results alone
   loads, behind Sphinx's own searchtools.js. */

/* Of Sphinx's scores a name in the index has 50 to 100, by how much of it was typed; a word in a title 15, in the text 5;
   a name of the library 1 to 26. Many are alike, and would be listed by the alphabet. */
let asksForCode = false;

Scorer.score = ([page, , , described, score]) => {
  if (score >= 50) return 2 * score - 90; // half a name is a weak sign: "softmax" asks for no "running softmax"
  const lecture = page.match(/^notebooks\/(\d+)-/);
  // the lectures explain, and the first that has a word tends to bring it
  if (lecture) return score + (asksForCode ? 0 : 8) + (100 - lecture[1]) / 100;
  return described && !asksForCode ? score - 8 : score; // described: a name of the library
};

/* A name of the index or a title is what was typed without regard to spaces and hyphens: `Q K^T`, `self attention`. */
const bare = (text) => text.toLowerCase().replace(/[\s-]+/g, "");

function asWritten(typed) {
  const names = [...Object.keys(Search._index.indexentries), ...Object.keys(Search._index.alltitles)];
  return names.find((name) => bare(name) === bare(typed)) ?? typed;
}

const queryOfSphinx = Search.query;
Search.query = (typed) => {
  asksForCode = /^\S*([_.(]|[a-z][A-Z])\S*$/.test(typed.trim()); // `attention_mask`, `MultiHeadAttention`
  queryOfSphinx(asksForCode ? typed : asWritten(typed));
};

/* One letter or two ask for no name of the library: `d`, which is left of `√d`, is in two thousand of them. */
const objectsOfSphinx = Search.performObjectSearch;
Search.performObjectSearch = (word, words) => (word.length > 2 ? objectsOfSphinx(word, words) : []);

/* Excerpts come from pages that no MathJax has set: what can be said without LaTeX is. */
const SIGNS = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", varepsilon: "ε", eta: "η", theta: "θ", lambda: "λ", mu: "μ", pi: "π",
  rho: "ρ", sigma: "σ", tau: "τ", varphi: "φ", omega: "ω", ell: "ℓ", cdot: "·", times: "×", odot: "⊙", sqrt: "√", sum: "Σ",
  partial: "∂", infty: "∞", in: "∈", le: "≤", top: "T", dots: "…", mid: "|", qquad: " ", quad: " ",
}; // prettier-ignore

const withoutLatex = (formula) =>
  formula
    .replace(/\\[()[\]]/g, "")
    .replace(/\\(?:text|operatorname|mathrm|mathbf|mathbb)\{([^{}]*)\}/g, "$1")
    .replace(/\\([A-Za-z]+) ?/g, (command, name) => SIGNS[name] ?? command)
    .replace(/\\[,;!:]/g, " ");

const textOf = Search.htmlToText;
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  // the theme's buttons and contents are no part of what a page says
  const around = ".bd-header-article, #jb-print-docs-body, .bd-sidebar-secondary, .prev-next-footer";
  page.querySelectorAll(around).forEach((part) => part.remove());
  page.querySelectorAll(".math").forEach((formula) => (formula.textContent = withoutLatex(formula.textContent)));
  const place = page.getElementById(anchor.slice(1)); // none where the whole page was found
  // a term is quoted with its definition, and an empty place with what follows it
  if (place?.matches("dt")) place.append(": ", place.nextElementSibling?.textContent ?? "");
  else if (place?.textContent.trim() === "") place.append((place.nextElementSibling ?? place.parentElement).textContent);
  return textOf(page.documentElement.outerHTML, anchor);
};
