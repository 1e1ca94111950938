/* The translator with its alignment: what the decoder looked at before it wrote each word. */

live.define("figures/translator", (use) => {
  const { element, labelled, select, quoted } = use("figures/controls");
  const { shown, mean, named, makeForm, makeView, inWords } = use("figures/parts");

  function start(figure) {
    const search = select(["beam of 4", "greedy"]);
    const first = figure.querySelector("svg").dataset.answer; // of the sentence that stands in the form at the beginning
    const { result, run } = makeForm(figure, {
      label: "A sentence in Spanish",
      lang: "es",
      button: "Translate",
      fields: [labelled("Search", search)],
      examples: ["Nunca he visto el mar.", "¿Dónde está la estación?", "Hace demasiado frío para nadar.", "Esta carretera es terrible."],
      answer: async (text) => {
        const found = await live.ask(figure.dataset.checkpoint, "translate", { text, width: search.value === "0" ? 4 : 1 });
        return (say) => show(found, say);
      },
      clear: () => {
        [answer, result].forEach((part) => part.replaceChildren());
        view.clear();
      },
      forget: () => answer.replaceChildren(),
    });
    search.addEventListener("change", run);
    // In the page before it is filled: what is put into it is read aloud.
    const answer = element("p", { class: "live-answer", lang: "en", role: "status" }, first);
    result.before(answer);
    const view = makeView(result, ({ queries, keys, weights }, t) =>
      `Before it wrote ${named(queries, t)}, it looked most at ${inWords(weights[t], keys)}.`,
    ); // prettier-ignore

    function show(found, say) {
      const [keys, queries] = [found.source.map(shown), found.target.map(shown)];
      const layers = found.weights.length;
      const layer = select(found.weights.map((_, i) => (i === layers - 1 ? `${i + 1} (last)` : `${i + 1}`)), layers - 1);
      const head = select(["mean of all", ...found.weights[0].map((_, h) => `${h + 1}`)]);
      const note = found.unknown.length
        ? ` Its vocabulary lacks ${found.unknown.map(quoted).join(", ")}, read as [UNK].`
        : "";
      say(`Translated in ${Math.round(found.milliseconds)} ms.${note}`);
      const box = element("div");
      const draw = (chosen) => {
        const ofLayer = found.weights[layer.value];
        const weights = head.value === "0" ? mean(ofLayer) : ofLayer[head.value - 1];
        view.show({ queries, keys, weights, lookers: "Tokens written", lookedAt: "Tokens read" }, box, chosen);
      };
      [layer, head].forEach((control) => control.addEventListener("change", () => draw()));
      draw(Math.floor(queries.length / 2));
      answer.textContent = found.text;
      result.replaceChildren(element("div", { class: "live-form" }, labelled("Layer", layer), labelled("Head", head)), box);
    }
  }

  return { start };
});
