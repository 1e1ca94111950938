/* What each token of a sentence attends to, in every head of the small BERT. */

live.define("figures/heads", (use) => {
  const { element, labelled, select } = use("figures/controls");
  const { shownPiece, mean, named, makeForm, makeView, inWords } = use("figures/parts");

  function start(figure) {
    const still = figure.querySelector("svg").dataset;
    const { result } = makeForm(figure, {
      label: "A sentence in English",
      lang: "en",
      button: "Show the attention",
      answer: async (text) => {
        const found = await live.ask(figure.dataset.checkpoint, "attend", { text });
        return (say) => show(found, say);
      },
      clear: () => {
        result.replaceChildren();
        view.clear();
      },
    });
    const view = makeView(result, ({ queries, keys, weights }, t) =>
      `${named(queries, t)} looks most at ${inWords(weights[t], keys)}.`,
    ); // prettier-ignore
    let [layerNow, headNow] = [Number(still.layer), Number(still.head)]; // as in the still, from one

    function show(found, say) {
      const tokens = found.tokens.map(shownPiece);
      const note = found.unknown ? ` ${found.unknown} of them it does not know, and reads as [UNK].` : "";
      say(`${tokens.length} tokens.${note}`);
      const layer = select(found.weights.map((_, i) => `${i + 1}`), layerNow - 1);
      const head = select(["mean of all", ...found.weights[0].map((_, h) => `${h + 1}`)], headNow);
      const box = element("div");
      const draw = (chosen) => {
        [layerNow, headNow] = [Number(layer.value) + 1, Number(head.value)];
        const ofLayer = found.weights[layer.value];
        const weights = headNow === 0 ? mean(ofLayer) : ofLayer[headNow - 1];
        const all = { queries: tokens, keys: tokens, weights, lookers: "Token that looks", lookedAt: "Tokens it looks at" };
        view.show(all, box, chosen);
      };
      [layer, head].forEach((control) => control.addEventListener("change", () => draw()));
      draw(Math.floor(tokens.length / 2));
      result.replaceChildren(element("div", { class: "live-form" }, labelled("Layer", layer), labelled("Head", head)), box);
    }
  }

  return { start };
});
