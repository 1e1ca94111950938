/* What the small BERT puts into a blank. */

live.define("figures/blank", (use) => {
  const { element, shownPiece, quoted, makeForm } = use("figures/parts");

  function start(figure) {
    const { result } = makeForm(figure, {
      label: "A sentence in English with one blank, ___",
      lang: "en",
      button: "Fill the blank",
      examples: ["He was born in ___ and died in London.", "The ___ of the album was released in 1996."],
      answer: async (text) => {
        const found = await live.ask(figure.dataset.checkpoint, "fill", { text, k: 8 });
        return (say) => show(found, say);
      },
      clear: () => result.replaceChildren(),
    });

    function show({ found, unknown }, say) {
      const note = unknown ? ` Of the sentence it does not know ${unknown} ${unknown === 1 ? "token" : "tokens"}, read as [UNK].` : "";
      say(`Most probable: ${quoted(shownPiece(found[0].token))}, with ${found[0].p.toFixed(2)}.${note}`);
      const bars = found.map(({ token, p }) => {
        const bar = element("span", { class: "live-bar", style: `--weight: ${p.toFixed(4)}` });
        return element("tr", {}, element("th", { scope: "row" }, shownPiece(token)), element("td", {}, bar), element("td", {}, p.toFixed(3)));
      });
      const [token, probability] = ["token", "probability"].map((text) => element("th", { scope: "col" }, text));
      const head = element("tr", {}, token, element("td"), probability); // the bars say the same, and need no name
      result.replaceChildren(element("table", { class: "live-bars" }, element("thead", {}, head), element("tbody", {}, ...bars)));
    }
  }

  return { start };
});
