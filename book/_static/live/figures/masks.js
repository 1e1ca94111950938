/* What each mask does: the weights of a sentence in a batch of two, under the masks and the padding that the reader chooses. */

live.define("figures/masks", (use) => {
  const { freshId, element, labelled, choice, sentence, replaceDrawing, fixed, quoted } = use("figures/controls");
  const { normals, softmax } = use("figures/numbers");

  const LONGEST = 6; // words
  const PAD = "[PAD]";
  const SCORES = normals(1, LONGEST ** 2); // of a query with a key: random, and the same under every mask
  const MASKS = ["none", "padding", "causal", "both"];
  const NAMED = ["Without a mask", "With the padding mask", "With the causal mask", "With both masks"];

  const wordsOf = (text) => text.split(/\s+/).filter(Boolean);

  /** The tokens of a batch: words, and padding up to the length of the longer sentence. */
  function batch(texts, left) {
    const rows = texts.map(wordsOf);
    const length = Math.max(...rows.map((row) => row.length));
    return rows.map((row) => {
      const padding = Array(length - row.length).fill(PAD);
      return left ? [...padding, ...row] : [...row, ...padding];
    });
  }

  /** Which key s each query t may attend to. */
  function mask(kind, tokens) {
    const [padding, causal] = [kind === "padding" || kind === "both", kind === "causal" || kind === "both"];
    return tokens.map((_, t) => tokens.map((key, s) => (!padding || key !== PAD) && (!causal || s <= t)));
  }

  /** The weights of tokens under a mask: a row for each query. */
  const weigh = (seen) => seen.map((row, t) => softmax(row.map((_, s) => SCORES[LONGEST * t + s]), row)); // prettier-ignore

  /** What a reader should see in the grid, in words. */
  function inWords(kind, tokens, seen, weights) {
    const open = seen.flat().filter(Boolean).length;
    const facts = [`${NAMED[MASKS.indexOf(kind)]}, ${open} of ${tokens.length ** 2} pairs are open.`];
    if (seen.every((row, t) => row.every((may, s) => !may || s <= t))) facts.push("No token sees what comes after it.");
    if (tokens.includes(PAD)) {
      const onPadding = weights.map((row) => row.reduce((sum, weight, s) => (tokens[s] === PAD ? sum + weight : sum), 0));
      const words = tokens.flatMap((token, t) => (token === PAD ? [] : [t]));
      const most = words.reduce((best, t) => (onPadding[t] > onPadding[best] ? t : best));
      facts.push(
        onPadding[most] > 0
          ? `${quoted(tokens[most])} gives ${fixed(onPadding[most])} of its weight to padding, the most of all words.`
          : "No word gives any weight to padding.",
      );
    }
    const blind = seen.flatMap((row, t) => (row.some(Boolean) ? [] : [t + 1]));
    if (blind.length) facts.push(`A query at position ${blind.join(", ")} may see nothing: its weights are all zero.`);
    return facts.join(" ");
  }

  function grid(tokens, seen, weights) {
    const th = (scope, text) => element("th", { scope }, text);
    const hidden = () => [element("span", { "aria-hidden": "true" }, "×"), element("span", { class: "live-unseen" }, "hidden")];
    const rows = tokens.map((token, t) => {
      const cells = tokens.map((_, s) =>
        seen[t][s]
          ? element("td", { style: `--weight: ${weights[t][s].toFixed(3)}` }, fixed(weights[t][s]))
          : element("td", {}, ...hidden()),
      );
      return element("tr", {}, th("row", token), ...cells);
    });
    const head = element("tr", {}, element("td"), ...tokens.map((token) => th("col", token)));
    const id = freshId();
    const caption = "Rows: queries. Columns: keys. A cross is hidden, a number is a weight.";
    const made = element("table", { class: "live-table live-of-key", "aria-labelledby": id },
      element("thead", {}, head), element("tbody", {}, ...rows)); // prettier-ignore
    const box = element("div", { class: "live-scroll", tabindex: 0, role: "region", "aria-label": "Weights" }, made);
    return element("div", {}, element("p", { class: "live-legend", id }, caption), box);
  }

  function start(figure) {
    const texts = ["she sees a white dog", "she sees it"];
    const names = ["first sentence", "second sentence"];
    let [left, kind, shown] = [false, "none", 1];
    const status = element("p", { class: "live-status", role: "status", id: freshId() });
    const inputs = texts.map((text) => {
      const input = element("input", { type: "text", lang: "en", autocomplete: "off", spellcheck: "false" });
      input.value = text;
      input.setAttribute("aria-describedby", status.id);
      input.addEventListener("input", draw);
      return input;
    });
    const { said, say } = sentence();
    const view = element("div");

    /** What keeps a sentence from being shown, or "". */
    function fault(text, i) {
      const words = wordsOf(text);
      if (words.includes(PAD)) return `The ${names[i]} has ${PAD}, which is no word: it comes where a sentence is shorter.`;
      const n = words.length;
      if (n === 0) return `The ${names[i]} has no word: type one.`;
      return n > LONGEST ? `The ${names[i]} has ${n} words, and ${LONGEST} are the most here: shorten it.` : "";
    }

    function draw() {
      const typed = inputs.map((input) => input.value);
      const faults = typed.map(fault);
      inputs.forEach((input, i) => {
        if (faults[i]) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      });
      const wrong = faults.find(Boolean);
      status.textContent = wrong ?? "";
      status.classList.toggle("live-wrong", wrong !== undefined);
      if (wrong) {
        view.replaceChildren(); // an old answer under a new question would be taken for its own
        say("");
        return;
      }
      const tokens = batch(typed, left)[shown];
      const seen = mask(kind, tokens);
      const weights = weigh(seen);
      view.replaceChildren(grid(tokens, seen, weights));
      say(inWords(kind, tokens, seen, weights));
    }

    const controls = [
      choice("Mask", MASKS, 0, (i) => draw((kind = MASKS[i]))),
      choice("Padding stands on the", ["right", "left"], 0, (i) => draw((left = i === 1))),
      choice("Shown is the", names, shown, (i) => draw((shown = i))),
    ];
    const fields = inputs.map((input, i) => labelled(`The ${names[i]} of the batch`, input, true));
    replaceDrawing(
      figure,
      element("div", { class: "live-form" }, ...fields, ...controls.map(({ field }) => field)),
      status, said, view,
    ); // prettier-ignore
    draw();
  }

  return { start, batch, mask, weigh };
});
