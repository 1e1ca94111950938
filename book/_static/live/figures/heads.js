/* What each token of a sentence attends to, in every head of the small BERT, and at another temperature. */

live.define("figures/heads", (use) => {
  const { element, labelled, select, slider, fixed } = use("figures/controls");
  const { shownPiece, mean, named, makeForm, makeView, inWords } = use("figures/parts");

  /** The weights of a head if its scores are divided once more: softmax(z / t) are the t-th roots of softmax(z), scaled. */
  function heated(weights, t) {
    return weights.map((row) => {
      const roots = row.map((weight) => weight ** (1 / t));
      const sum = roots.reduce((a, b) => a + b);
      return roots.map((root) => root / sum);
    });
  }

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
    let dragged = 0; // 2 ** dragged is the temperature

    function show(found, say) {
      const tokens = found.tokens.map(shownPiece);
      const note = found.unknown ? ` ${found.unknown} of them it does not know, and reads as [UNK].` : "";
      say(`${tokens.length} tokens.${note}`);
      const layer = select(found.weights.map((_, i) => `${i + 1}`), layerNow - 1);
      const head = select(["mean of all", ...found.weights[0].map((_, h) => `${h + 1}`)], headNow);
      const box = element("div");
      const draw = (chosen) => {
        [layerNow, headNow] = [Number(layer.value) + 1, Number(head.value)];
        const ofLayer = found.weights[layer.value].map((head) => heated(head, 2 ** dragged));
        const weights = headNow === 0 ? mean(ofLayer) : ofLayer[headNow - 1];
        const all = { queries: tokens, keys: tokens, weights, lookers: "Token that looks", lookedAt: "Tokens it looks at" };
        view.show(all, box, chosen);
      };
      const temperature = slider("Temperature of the softmax", {
        min: -4, max: 3, step: 0.5, value: dragged,
        shown: (x) => (-2 * x === Math.log2(found.size) ? `${fixed(2 ** x)} = 1/√${found.size}: no scale is left` : fixed(2 ** x)),
        changed: (x) => {
          dragged = x;
          draw();
        },
      }); // prettier-ignore
      [layer, head].forEach((control) => control.addEventListener("change", () => draw()));
      draw(Math.floor(tokens.length / 2));
      const controls = [labelled("Layer", layer), labelled("Head", head), temperature.field];
      result.replaceChildren(element("div", { class: "live-form" }, ...controls), box);
    }
  }

  return { start };
});
