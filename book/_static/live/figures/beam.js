/* Beam search as a growing tree: what is kept and dropped at each token, and what the cache of the decoder spares. */

live.define("figures/beam", (use) => {
  const { element, drawn, labelled, select, slider, button, sentence, bars, quoted } = use("figures/controls");
  const { shown, makeForm } = use("figures/parts");

  const [WIDE, HIGH, STEP_X, STEP_Y] = [88, 38, 112, 46]; // of a box, and from one to the next

  const probability = (p) => (p >= 0.01 ? p.toFixed(2) : p >= 0.001 ? p.toFixed(3) : "<0.001");
  const beginning = (tokens) => tokens.join("").replace(/▁/g, " ").replace("[END]", " [END]").trim();
  const short = (text) => (text.length > 10 ? `${text.slice(0, 9)}…` : text);
  const inWords = (list) => list.map(({ tokens, p }) => `${quoted(beginning(tokens))} (${probability(p)})`).join(", ");

  /** The tree up to a step: a column for each, the best candidate on top; thick is what the search found. */
  function tree(steps, now, found) {
    const columns = steps.slice(0, now);
    const most = Math.max(...steps.map(({ candidates }) => candidates.length));
    const places = new Map([["", { x: 4, y: 4 }]]); // of each beginning
    const svg = drawn("svg", {
      viewBox: `0 0 ${STEP_X * now + WIDE + 8} ${STEP_Y * most + 4}`,
      width: STEP_X * now + WIDE + 8,
      class: "live-tree",
      "aria-hidden": "true", // the sentence and the table say what it shows
    });
    const box = ({ x, y }, words, fate, best) => {
      const [text, below] = words;
      const rect = drawn("rect", { x, y, width: WIDE, height: HIGH, rx: 5 });
      const lines = [drawn("text", { x: x + WIDE / 2, y: y + 16 }, text), drawn("text", { x: x + WIDE / 2, y: y + 31 }, below)];
      return drawn("g", { class: `live-${fate}${best ? " live-best" : ""}` }, rect, ...lines);
    };
    svg.append(box(places.get(""), ["[START]", "1.00"], "kept", now === steps.length));
    columns.forEach(({ candidates }, i) =>
      candidates.forEach(({ tokens, p, fate }, rank) => {
        const place = { x: 4 + STEP_X * (i + 1), y: 4 + STEP_Y * rank };
        const best = now === steps.length && fate !== "dropped" && tokens.every((token, t) => token === found[t]);
        const from = places.get(tokens.slice(0, -1).join(" "));
        const line = { x1: from.x + WIDE, y1: from.y + HIGH / 2, x2: place.x, y2: place.y + HIGH / 2 };
        svg.prepend(drawn("line", { ...line, class: `live-${fate}${best ? " live-best" : ""}` }));
        svg.append(box(place, [short(shown(tokens.at(-1))), probability(p)], fate, best));
        if (fate !== "dropped") places.set(tokens.join(" "), place);
      }),
    );
    return svg;
  }

  function start(figure) {
    const width = select(["1 (greedy)", "2", "3", "4"], 1);
    const { result, run } = makeForm(figure, {
      label: "A sentence in Spanish",
      lang: "es",
      button: "Search",
      fields: [labelled("Width of the beam", width)],
      examples: ["Me gusta el vino blanco.", "Nunca he visto el mar."],
      answer: async (text) => {
        const found = await live.ask(figure.dataset.checkpoint, "search", { text, width: Number(width.value) + 1 });
        return (say) => show(found, say);
      },
      clear: () => {
        [result, below].forEach((part) => part.replaceChildren());
        say("");
      },
    });
    width.addEventListener("change", run);
    const { said, say } = sentence();
    const below = element("div");
    result.after(said, below);

    function show({ text, tokens, unknown, steps }, tell) {
      const note = unknown.length ? ` The vocabulary lacks ${unknown.map(quoted).join(", ")}, read as [UNK].` : "";
      tell(`The search takes ${steps.length} steps. Go through them.${note}`);
      let now = 1;
      const most = steps.reduce((sum, { uncached }) => sum + uncached, 0);
      const control = slider(`Step, of ${steps.length}`, { min: 1, max: steps.length, value: 1, changed: (i) => draw((now = i)) });
      const next = button("Next step", () => {
        now = Math.min(now + 1, steps.length);
        control.set(now);
        draw();
      });
      const scroll = element("div", { class: "live-scroll", tabindex: 0, role: "region", "aria-label": "Tree of the search" });
      const rest = element("div", { class: "live-columns" });

      function draw() {
        const { candidates } = steps[now - 1];
        const of = (fate) => candidates.filter((candidate) => candidate.fate === fate);
        const facts = [["kept", "Kept"], ["ended", "Ended"], ["dropped", "Dropped"]]
          .filter(([fate]) => of(fate).length)
          .map(([fate, name]) => `${name}: ${inWords(of(fate))}.`); // prettier-ignore
        if (now === steps.length) facts.push(`The search is over and takes ${quoted(text)}.`);
        scroll.replaceChildren(tree(steps, now, tokens));
        scroll.scrollLeft = scroll.scrollWidth;
        const rows = candidates.map(({ tokens, p, fate }) => ({ name: short(shown(tokens.at(-1))), share: p, cells: [probability(p), fate] }));
        const [cached, uncached] = ["cached", "uncached"].map((kind) =>
          steps.slice(0, now).reduce((sum, step) => sum + step[kind], 0),
        );
        const counts = [["with the cache", cached], ["without", uncached]]
          .map(([name, n]) => ({ name, share: n / most, cells: [`${n}`] })); // prettier-ignore
        rest.replaceChildren(
          bars([`token ${now}`, null, "probability", "fate"], rows),
          bars(["positions computed", null, "so far"], counts, "value"),
        );
        say(`Step ${now} of ${steps.length}. ${facts.join(" ")}`);
      }

      result.replaceChildren(element("div", { class: "live-form" }, control.field, next));
      below.replaceChildren(scroll, rest);
      draw();
    }
  }

  return { start };
});
