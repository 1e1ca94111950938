/* Why scores are divided by the root of the width: a query and eight keys of random numbers, as wide as the reader likes. */

live.define("figures/scale", (use) => {
  const { element, choice, slider, button, sentence, bars, replaceDrawing, fixed } = use("figures/controls");
  const { normals, dot, softmax, trace } = use("figures/numbers");

  const [KEYS, WIDEST, DRAWS] = [8, 512, 256];
  const WIDTHS = Array.from({ length: 10 }, (_, i) => 2 ** i); // 1 ... 512
  const MOST = 1 - 1 / KEYS; // the trace of the softmax's gradient when all weights are equal
  const [NOTHING, DRAGGED] = [0, 3]; // what divides; between them the root of the width, and the width

  /** Products of a random query with each of the keys, for each of WIDTHS: the first numbers of the same vectors. */
  function productsOf(seed) {
    const numbers = normals(seed, (KEYS + 1) * WIDEST);
    const vector = (i, d) => numbers.subarray(i * WIDEST, i * WIDEST + d);
    return WIDTHS.map((d) => Array.from({ length: KEYS }, (_, j) => dot(vector(0, d), vector(j + 1, d))));
  }

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const median = (values) => mean([...values].sort((a, b) => a - b).slice(values.length / 2 - 1, values.length / 2 + 1)); // an even number

  /** What the figure says of a width and a divisor: of one draw, and of all: the mean of the largest weights, and the
      median of the gradients that reach a product of query and key. A few draws have nearly all of its mean. */
  function measure(draws, shown, width, divisor) {
    const weights = draws.map((products) => softmax(products[width].map((score) => score / divisor)));
    const largest = weights.map((w) => Math.max(...w));
    const gradient = weights.map((w) => trace(w) / divisor); // by the score, and from there through the division
    const spread = Math.sqrt(mean(draws.map((products) => dot(products[width], products[width]) / KEYS))) / divisor;
    return {
      weights: weights[shown], spread,
      largest: mean(largest), gradient: median(gradient),
      here: { largest: largest[shown], gradient: gradient[shown] },
    }; // prettier-ignore
  }

  /** Which draw to begin with: the one whose largest weights, with nothing divided, are nearest to the medians of all. */
  function typical(draws) {
    const found = WIDTHS.map((_, i) => draws.map((products) => Math.max(...softmax(products[i]))));
    const far = draws.map((_, n) => found.reduce((sum, largest) => sum + Math.abs(largest[n] - median(largest)), 0));
    return far.indexOf(Math.min(...far));
  }

  function start(figure) {
    const draws = Array.from({ length: DRAWS }, (_, i) => productsOf(i + 1));
    let [width, divided, dragged, shown] = [2, NOTHING, 0, typical(draws)]; // 2 ** dragged divides
    const divisor = () => [1, Math.sqrt(WIDTHS[width]), WIDTHS[width], 2 ** dragged][divided];

    const widthControl = slider("Width of query and keys, dₖ", {
      min: 0, max: WIDTHS.length - 1, value: width, shown: (i) => `${WIDTHS[i]}`,
      changed: (i) => draw((width = i)),
    }); // prettier-ignore
    const kinds = choice("Divide the scores by", ["nothing", "√dₖ", "dₖ", "as dragged"], divided, (kind) => draw((divided = kind)));
    const divisorControl = slider("Divisor (temperature)", {
      min: -2, max: 9, step: 0.25, value: 0, shown: (x) => fixed(2 ** x),
      changed: (x) => {
        [dragged, divided] = [x, DRAGGED];
        kinds.choose(DRAGGED);
        draw();
      },
    }); // prettier-ignore
    const again = button("Other random numbers", () => draw((shown = (shown + 1) % DRAWS)));
    const { said, say } = sentence();
    const view = element("div", { class: "live-columns" });

    function draw() {
      const by = divisor();
      if (divided !== DRAGGED) divisorControl.set((dragged = Math.log2(by)));
      const d = WIDTHS[width];
      const found = measure(draws, shown, width, by);
      const rows = found.weights.map((weight, j) => ({
        name: `${j + 1}`,
        share: weight,
        cells: [fixed(draws[shown][width][j] / by, 1), fixed(weight)],
      }));
      const measured = [
        { name: "largest weight", share: found.largest, cells: [fixed(found.largest), fixed(found.here.largest)] },
        { name: "gradient", share: found.gradient / MOST, cells: [fixed(found.gradient, 4), fixed(found.here.gradient, 4)] },
      ];
      view.replaceChildren(
        bars(["key", null, "score", "weight"], rows, "query"),
        bars(["measured", null, `all ${DRAWS}`, "here"], measured, "key"),
      );
      const how = [
        "divided by nothing",
        `divided by √${d} = ${fixed(by)}`,
        `divided by ${d}`,
        `divided by ${fixed(by)}`,
      ][divided]; // prettier-ignore
      const beside = divided === NOTHING ? ` (√${d} is ${fixed(Math.sqrt(d), 1)})` : "";
      const spread = fixed(found.spread, found.spread < 1 ? 2 : 1);
      say(
        `Width ${d}, ${how}: scores lie about ${spread} from zero${beside}. Of ${KEYS} weights the largest is ` +
          `${fixed(found.largest)} on average. In half of ${DRAWS} draws, the gradient of the weights by q · k is below ` +
          `${fixed(Math.max(found.gradient, 1e-4), 4)}, of ${fixed(MOST, 3)} at most.`,
      );
    }

    const controls = element("div", { class: "live-form" }, widthControl.field, kinds.field, divisorControl.field, again);
    replaceDrawing(figure, controls, said, view);
    draw();
  }

  return { start, productsOf, measure, typical, WIDTHS, DRAWS };
});
