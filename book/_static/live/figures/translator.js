/* The translator with its alignment: what the decoder looked at before it wrote each word. */

live.define("figures/translator", (use) => {
  const { element, labelled, select, shown, quoted, mean, makeForm, looks, table, inWords } = use("figures/parts");

  function start(figure) {
    const search = select(["beam of 4", "greedy"]);
    const { result, run } = makeForm(figure, {
      label: "A sentence in Spanish",
      lang: "es",
      button: "Translate",
      fields: [labelled("Search", search)],
      examples: ["Nunca he visto el mar.", "¿Dónde está la estación?", "Hace demasiado frío para nadar."],
      answer: async (text) => {
        const found = await live.ask(figure.dataset.checkpoint, "translate", { text, width: search.value === "0" ? 4 : 1 });
        return (say) => show(found, say);
      },
      clear: () => [answer, result].forEach((part) => part.replaceChildren()),
    });
    search.addEventListener("change", run);
    // In the page before it is filled: what is put into it is read aloud.
    const answer = element("p", { class: "live-answer", lang: "en", role: "status" });
    result.before(answer);

    function show(found, say) {
      const [keys, queries] = [found.source.map(shown), found.target.map(shown)];
      const layers = found.weights.length;
      const layer = select(found.weights.map((_, i) => (i === layers - 1 ? `${i + 1} (last)` : `${i + 1}`)), layers - 1);
      const head = select(["mean of all", ...found.weights[0].map((_, h) => `${h + 1}`)]);
      const note = found.unknown.length
        ? ` Its vocabulary lacks ${found.unknown.map(quoted).join(", ")}, read as [UNK].`
        : "";
      say(`Translated in ${Math.round(found.milliseconds)} ms.${note}`);
      const said = element("p", { class: "live-said", "aria-live": "polite" });
      const view = element("div");
      let chosen = Math.floor(queries.length / 2);
      const draw = () => {
        const ofLayer = found.weights[layer.value];
        const weights = head.value === "0" ? mean(ofLayer) : ofLayer[head.value - 1];
        const all = { queries, keys, weights, lookers: "Tokens written", lookedAt: "Tokens read" };
        const words = (t) => {
          chosen = t;
          said.textContent = `Before it wrote ${quoted(queries[t])}, it looked most at ${inWords(weights[t], keys)}.`;
        };
        const open = view.querySelector("details")?.open; // as the reader left it
        view.replaceChildren(looks(all, chosen, words), said, table(all, open));
      };
      [layer, head].forEach((control) => control.addEventListener("change", draw));
      draw();
      answer.textContent = found.text;
      result.replaceChildren(element("div", { class: "live-form" }, labelled("Layer", layer), labelled("Head", head)), view);
    }
  }

  return { start };
});
