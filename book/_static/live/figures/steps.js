/* Attention by hand: queries, keys and values of two words, every number open to be changed, and every step shown. */

live.define("figures/steps", (use) => {
  const { freshId, element, button, sentence, replaceDrawing, fixed, quoted } = use("figures/controls");
  const { dot, softmax } = use("figures/numbers");

  const WORDS = ["it", "cup"]; // of the lecture's example, with the numbers that its matrices give
  const FIRST = { query: [[2, 2], [0, 0]], key: [[0, 0], [1, 1]], value: [[0, 0], [1, 1]] }; // prettier-ignore
  const DECIMALS = 2; // of a number typed, so that it and its products stand there whole
  const LARGEST = 9; // of a number typed: the exponential of the largest score still has a meaning for its reader

  /** Scaled dot-product attention of each query, step by step (Vaswani et al. 2017, equation 1). */
  function attend({ query, key, value }) {
    return query.map((q) => {
      const scores = key.map((k) => dot(q, k));
      const scaled = scores.map((score) => score / Math.sqrt(q.length));
      const exp = scaled.map(Math.exp);
      const weights = softmax(scaled);
      const output = value[0].map((_, i) => weights.reduce((sum, weight, s) => sum + weight * value[s][i], 0));
      return { scores, scaled, exp, total: exp[0] + exp[1], weights, output };
    });
  }

  const short = (x) => fixed(x, 2 * DECIMALS).replace(/\.?0+$/, ""); // as typed, or a product: 2, 0.5, 0.0625
  const factor = (x) => (x < 0 ? `(${short(x)})` : short(x));
  const vector = (numbers, said = short) => `(${numbers.map((x) => said(x)).join(",\u00a0")})`;
  /** A positive number; a power of ten where two decimals would say little, or too much. */
  const positive = (x) =>
    x >= 0.01 && x < 1e5 ? fixed(x) : x.toExponential(1).replace("e+", " · 10^").replace("e-", " · 10^−");
  const product = (q, k) => `${q.map((x, i) => `${factor(x)} · ${factor(k[i])}`).join(" + ")} = ${short(dot(q, k))}`;

  /** What one word takes, as a table of its steps. */
  function stepsOf(t, numbers, found) {
    const th = (scope, text) => element("th", { scope }, text);
    const head = ["key of", "query · key", "÷ √2", "exp", "weight"].map((text) => th("col", text));
    const rows = WORDS.map((word, s) =>
      element("tr", {}, th("row", word),
        element("td", {}, product(numbers.query[t], numbers.key[s])),
        element("td", {}, fixed(found.scaled[s])),
        element("td", {}, positive(found.exp[s])),
        element("td", { style: `--weight: ${found.weights[s].toFixed(3)}` }, fixed(found.weights[s])),
      ),
    ); // prettier-ignore
    const sums = ["", "", positive(found.total), "1.00"].map((text) => element("td", {}, text));
    rows.push(element("tr", {}, th("row", "sum"), ...sums));
    const parts = WORDS.map((_, s) => `${fixed(found.weights[s])} · ${vector(numbers.value[s])}`);
    const id = freshId();
    return element("div", {},
      element("p", { class: "live-legend", id }, `${WORDS[t]} asks with ${vector(numbers.query[t])}`),
      element("table", { class: "live-table", "aria-labelledby": id },
        element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)),
      element("p", { class: "live-sum" }, `${WORDS[t]} becomes ${parts.join(" + ")} = ${vector(found.output, fixed)}`),
    ); // prettier-ignore
  }

  function start(figure) {
    const status = element("p", { class: "live-status", role: "status", id: freshId() });
    const { said, say } = sentence();
    const view = element("div");
    const inputs = { query: [], key: [], value: [] };

    const groups = Object.keys(inputs).map((kind) => {
      const rows = WORDS.map((word, t) => {
        const row = [0, 1].map((i) => {
          const name = `${kind} of ${word}, number ${i + 1}`;
          const input = element("input", { type: "number", step: 0.5, min: -LARGEST, max: LARGEST, "aria-label": name });
          input.setAttribute("aria-describedby", status.id);
          input.addEventListener("input", draw);
          return input;
        });
        inputs[kind].push(row);
        return element("div", { class: "live-vector" }, element("span", {}, word), ...row);
      });
      const legend = element("legend", {}, { query: "Queries", key: "Keys", value: "Values" }[kind]);
      return element("fieldset", { class: `live-choice live-vectors live-of-${kind}` }, legend, ...rows);
    });

    /** The numbers as they stand there, or the first field whose number is none. */
    function read() {
      let wrong = null;
      const numbers = {};
      for (const [kind, rows] of Object.entries(inputs)) {
        numbers[kind] = rows.map((row) =>
          row.map((input) => {
            const number = input.valueAsNumber;
            const right = Math.abs(number) <= LARGEST && number === Number(number.toFixed(DECIMALS)); // and not NaN
            if (right) input.removeAttribute("aria-invalid");
            else input.setAttribute("aria-invalid", "true");
            wrong ??= right ? null : input;
            return number;
          }),
        );
      }
      return { numbers, wrong };
    }

    function draw() {
      const { numbers, wrong } = read();
      status.classList.toggle("live-wrong", wrong !== null);
      const range = `from −${LARGEST} to ${LARGEST}, with ${DECIMALS} decimals at most`;
      status.textContent = wrong ? `Type a number ${range}, as the ${wrong.ariaLabel}.` : "";
      if (wrong) {
        view.replaceChildren(); // an old answer under new numbers would be taken for theirs
        say("");
        return;
      }
      const found = attend(numbers);
      view.replaceChildren(...found.map((steps, t) => stepsOf(t, numbers, steps)));
      const takes = found.map(({ weights, output }, t) => {
        const from = WORDS.map((word, s) => `${fixed(weights[s])} from ${quoted(word)}`).join(" and ");
        return `${quoted(WORDS[t])} takes ${from}, and becomes ${vector(output, fixed)}.`;
      });
      say(takes.join(" "));
    }

    function reset() {
      for (const [kind, rows] of Object.entries(inputs)) {
        rows.forEach((row, t) => row.forEach((input, i) => (input.value = FIRST[kind][t][i])));
      }
      draw();
    }

    const again = button("As at the beginning", reset);
    replaceDrawing(figure, element("div", { class: "live-form" }, ...groups, again), status, said, view);
    reset();
  }

  return { start, attend, FIRST };
});
