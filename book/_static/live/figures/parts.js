/* What the figures with a model share: a form that loads its model at the first touch, and who looks at what. */

live.define("figures/parts", (use) => {
  const { freshId, element, labelled, choice, sentence, quoted } = use("figures/controls");

  /** A token as a reader wants it: without the sign of a word's beginning, a piece inside of a word with a hyphen. */
  function shown(token) {
    if (token.startsWith("▁")) return token.length > 1 ? token.slice(1) : "(space)";
    if (token.startsWith("##")) return `-${token.slice(2)}`;
    return /^[\p{L}\p{N}]/u.test(token) ? `-${token}` : token;
  }

  /** The same where a word's beginning has no sign, as in WordPiece. */
  const shownPiece = (token) => (token.startsWith("##") ? `-${token.slice(2)}` : token);

  /** Places of the n largest weights, the largest first. */
  function largest(weights, n) {
    return Array.from(weights.keys()).sort((a, b) => weights[b] - weights[a]).slice(0, n);
  }

  /** The mean of several matrices, as lists of rows. */
  function mean(matrices) {
    return matrices[0].map((row, t) => row.map((_, s) => matrices.reduce((sum, m) => sum + m[t][s], 0) / matrices.length));
  }

  /** Put a form into a figure, and below it, where answers will stand, the drawing that was there.

      The model is loaded when a reader first touches the form. `answer(text)` asks it, and returns a function that shows
      what it found and says so by the function that it is given. `fields` are further controls, in a row with the button;
      `examples` texts that a click tries, `clear()` takes an answer away, and `forget()` what stands beside the drawing
      before the first answer. What goes wrong is said in the status, which is
      read aloud. Returns {result, run}: the place for answers, and what the button does. */
  function makeForm(figure, { label, lang, button, fields = [], examples = [], answer, clear, forget = () => {} }) {
    const { checkpoint, megabytes } = figure.dataset;
    const drawing = figure.querySelector("svg");
    const result = element("div", { class: "live-result" }, drawing);
    const input = element("input", { type: "text", lang, autocomplete: "off", autocapitalize: "sentences", spellcheck: "false" });
    input.value = drawing.dataset.text;
    const status = element("p", { class: "live-status", role: "status", "aria-live": "polite", id: freshId() });
    input.setAttribute("aria-describedby", status.id);
    const submit = element("button", { type: "submit" }, button);
    const form = element("form", { class: "live-form", novalidate: true }, labelled(label, input, true), ...fields, submit);
    if (examples.length) {
      const chips = examples.map((text) => {
        const chip = element("button", { type: "button", class: "live-example", lang }, text);
        chip.addEventListener("click", () => {
          input.value = text;
          run();
        });
        return chip;
      });
      form.append(element("div", { class: "live-examples", role: "group", "aria-label": "Examples" }, "Or try: ", ...chips));
    }

    let ready = false;
    async function open() {
      if (ready) return;
      if (!status.textContent) say(`Loading the model, ${megabytes} MB, once …`);
      await live.open(checkpoint);
      if (!ready && status.textContent.startsWith("Loading")) say("The model is ready.");
      ready = true;
    }

    function say(text, wrong = false) {
      status.textContent = text;
      status.classList.toggle("live-wrong", wrong);
      if (wrong) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }

    let latest = 0;
    async function run() {
      const mine = ++latest; // an answer that a later question has overtaken is dropped
      const text = input.value; // which may be another one when the model is there
      let slow;
      try {
        await open();
        slow = setTimeout(() => mine === latest && say("The model computes …"), 500);
        const found = await answer(text);
        if (mine === latest) found(say);
      } catch (error) {
        // What stands there answers another text: an old answer under a new question would be taken for its own.
        if (mine === latest) (result.contains(drawing) ? forget : clear)();
        if (mine === latest) say(error.kind ? error.message : `The model did not answer: ${error.message}.`, true);
      } finally {
        clearTimeout(slow);
      }
    }

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      run();
    });
    const warm = () => open().catch((error) => say(`The model could not be loaded: ${error.message}.`, true));
    form.addEventListener("focusin", warm, { once: true });
    form.addEventListener("pointerdown", warm, { once: true });
    figure.prepend(form, status, result); // before the licence
    return { result, run };
  }

  /** Tokens that look, of which the reader chooses one, over tokens that are looked at, shaded by their weights.

      `view`: {queries, keys, weights (T rows of S numbers), lookers, lookedAt}: the last two name the lines. `said(t)` is
      called with the choice. */
  function looks({ queries, keys, weights, lookers, lookedAt }, chosen, said) {
    const cells = keys.map((key) => element("span", { class: "live-key" }, element("b", {}, key), element("small")));
    const line = element("div", { class: "live-line" }, ...cells);
    const show = (t) => {
      weights[t].forEach((weight, s) => {
        cells[s].style.setProperty("--weight", weight.toFixed(3));
        cells[s].lastChild.textContent = weight.toFixed(2);
      });
      said(t);
    };
    const { field } = choice(lookers, queries, chosen, show);
    show(chosen);
    return element("div", {}, field, element("p", { class: "live-legend" }, lookedAt), line);
  }

  /** Every weight as a table, for those who want all numbers, and for those who hear them; folded, unless `open`. */
  function table({ queries, keys, weights, lookers, lookedAt }, open = false) {
    const head = element("tr", {}, element("td"), ...keys.map((key) => element("th", { scope: "col" }, key)));
    const rows = queries.map((query, t) => {
      const cells = weights[t].map((weight) => element("td", { style: `--weight: ${weight.toFixed(3)}` }, weight.toFixed(2)));
      return element("tr", {}, element("th", { scope: "row" }, query), ...cells);
    });
    const id = freshId();
    const caption = element("p", { class: "live-legend", id }, `Rows: ${lower(lookers)}. Columns: ${lower(lookedAt)}. Each row adds up to one.`);
    const made = element("table", { class: "live-table", "aria-labelledby": id }, element("thead", {}, head), element("tbody", {}, ...rows));
    const box = element("div", { class: "live-scroll", tabindex: 0, role: "region", "aria-label": "Table of all weights" }, made);
    return element("details", { open }, element("summary", {}, "All weights as a table"), caption, box);
  }

  const lower = (text) => text[0].toLowerCase() + text.slice(1);

  /** A token within a sentence, with its position if another one is written alike. */
  function named(tokens, t) {
    const alike = tokens.filter((token) => token === tokens[t]).length > 1;
    return alike ? `${quoted(tokens[t])} at position ${t + 1}` : quoted(tokens[t]);
  }

  /** “a” (0.61), then at “b” (0.20): the two largest of a row of weights, in words. */
  function inWords(weights, keys) {
    const [first, second] = largest(weights, 2);
    const one = (s) => `${named(keys, s)} (${weights[s].toFixed(2)})`;
    return second === undefined ? one(first) : `${one(first)}, then at ${one(second)}`;
  }

  /** Who looks at whom, for an answer at a time: below the place for answers stand the sentence, and the table.

      `words(all, t)` is the sentence for the choice t. Returns {show(all, chosen), clear()}. */
  function makeView(result, words) {
    const { said, say } = sentence();
    const below = element("div");
    result.after(said, below);
    let now = 0;
    return {
      show(all, box, chosen = now) {
        const open = below.querySelector("details")?.open; // as the reader left it
        const tell = (t) => say(words(all, (now = t)));
        box.replaceChildren(looks(all, chosen, tell));
        below.replaceChildren(table(all, open));
      },
      clear() {
        say("");
        below.replaceChildren();
      },
    };
  }

  return { shown, shownPiece, largest, mean, named, makeForm, makeView, inWords };
});
