/* What the small BERT puts into a blank. */

live.define("figures/blank", (use) => {
  const { bars, quoted } = use("figures/controls");
  const { shownPiece, makeForm } = use("figures/parts");

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
      const rows = found.map(({ token, p }) => ({ name: shownPiece(token), share: p, cells: [p.toFixed(3)] }));
      result.replaceChildren(bars(["token", null, "probability"], rows));
    }
  }

  return { start };
});
