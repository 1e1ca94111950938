/* A soft dictionary that learns in the page: does a head of attention learn without the division by the root of its width?

   A query is one of 32 keys, blurred; attention must return that key's label. W^Q and W^K learn by plain gradient descent.
   The task, its sizes and the three kinds of heads are those of notebooks/experiments/score_scale.py. */

live.define("figures/dictionary", (use) => {
  const { element, drawn, choice, slider, button, sentence, bars, replaceDrawing, fixed } = use("figures/controls");
  const { uniforms, normalsFrom, normals, dot, softmax } = use("figures/numbers");

  const [KEYS, D, LABELS, NOISE] = [32, 64, 8, 0.3];
  const [BATCH, STEPS] = [32, 60];
  const [NEW, NEW_SEED, DATA_SEED] = [200, 99, 1000]; // sets to be tested on, and the seeds of these and of the others
  const UNIFORM = 0.01; // a part of every prediction, so that the logarithm stays finite

  // The task

  /** n sets: their queries (n, D), keys (n, KEYS, D), the keys' labels (n, KEYS), and which key is asked for (n). */
  function setsOf(uniform, n) {
    const keys = normalsFrom(uniform, n * KEYS * D);
    const labels = Uint8Array.from({ length: n * KEYS }, () => LABELS * uniform());
    const asked = Uint8Array.from({ length: n }, () => KEYS * uniform());
    const noise = normalsFrom(uniform, n * D);
    const queries = noise.map((x, i) => {
      const set = Math.floor(i / D);
      return keys[(set * KEYS + asked[set]) * D + (i % D)] + NOISE * x;
    });
    return Array.from({ length: n }, (_, set) => ({
      query: queries.subarray(set * D, (set + 1) * D),
      keys: Array.from({ length: KEYS }, (_, j) => keys.subarray((set * KEYS + j) * D, (set * KEYS + j + 1) * D)),
      labels: labels.subarray(set * KEYS, (set + 1) * KEYS),
      asked: asked[set],
    }));
  }

  const newSets = () => setsOf(uniforms(NEW_SEED), NEW);

  /** How much weight each label gets. */
  function labelled(weights, labels) {
    const shares = new Float64Array(LABELS);
    weights.forEach((weight, j) => (shares[labels[j]] += weight));
    return shares;
  }

  const highest = (values) => values.indexOf(Math.max(...values));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  /** How often the most frequent label of a set is right. */
  const guessing = (sets) =>
    mean(sets.map(({ labels, asked }) => +(highest(labelled(Array(KEYS).fill(1), labels)) === labels[asked])));

  // The head

  /** W^Q and W^K (D, size) before training. `divided`: scores by the root of the size; `small`: the weights instead, by
      its fourth root each, which makes the same first scores. */
  function headOf(seed, size, { divided, small }) {
    const numbers = normals(seed, 2 * D * size).map((x) => x / Math.sqrt(D) / (small ? size ** 0.25 : 1));
    const [wq, wk] = [numbers.slice(0, D * size), numbers.slice(D * size)];
    return { size, scale: divided ? 1 / Math.sqrt(size) : 1, wq, wk, form: formOf(wq, wk, size) };
  }

  const row = (matrix, i, width) => matrix.subarray(i * width, (i + 1) * width);

  /** W^Q (W^K)ᵀ (D, D): with it, the score of a query x and a key y is x form yᵀ, and no key need be projected. */
  function formOf(wq, wk, size) {
    return Float64Array.from({ length: D * D }, (_, i) => dot(row(wq, Math.floor(i / D), size), row(wk, i % D, size)));
  }

  /** The weights of a query over its keys. */
  function attend({ scale, form }, { query, keys }) {
    const asks = new Float64Array(D); // query form
    for (let a = 0; a < D; a++) for (let b = 0; b < D; b++) asks[b] += query[a] * form[a * D + b];
    return softmax(keys.map((key) => scale * dot(asks, key)));
  }

  /** What a head makes of new sets: the share that is right, and the mean of the largest weight. */
  function measure(head, sets) {
    const weights = sets.map((set) => attend(head, set));
    const right = sets.map(({ labels, asked }, i) => +(highest(labelled(weights[i], labels)) === labels[asked]));
    return { right: mean(right), largest: mean(weights.map((row) => Math.max(...row))) };
  }

  /** One step of gradient descent on the mean of −log p(right label); changes the head, and returns that mean before. */
  function descend(head, sets, rate) {
    const { size, scale, wq, wk } = head;
    const byForm = new Float64Array(D * D);
    const losses = sets.map((set) => {
      const { query, keys, labels, asked } = set;
      const weights = attend(head, set);
      const share = labelled(weights, labels)[labels[asked]];
      const p = (1 - UNIFORM) * share + UNIFORM / LABELS;
      const byShare = -(1 - UNIFORM) / p / sets.length;
      const byAsks = new Float64Array(D); // through the softmax, whose gradient is w (whether the label is right - share)
      keys.forEach((key, j) => {
        const byScore = scale * byShare * weights[j] * ((labels[j] === labels[asked]) - share);
        for (let b = 0; b < D; b++) byAsks[b] += byScore * key[b];
      });
      for (let a = 0; a < D; a++) for (let b = 0; b < D; b++) byForm[a * D + b] += query[a] * byAsks[b];
      return -Math.log(p);
    });
    const [dq, dk] = [new Float64Array(D * size), new Float64Array(D * size)]; // byForm W^K, and byFormᵀ W^Q
    for (let a = 0; a < D; a++) {
      for (let b = 0; b < D; b++) {
        const by = byForm[a * D + b];
        for (let c = 0; c < size; c++) {
          dq[a * size + c] += by * wk[b * size + c];
          dk[b * size + c] += by * wq[a * size + c];
        }
      }
    }
    for (let i = 0; i < D * size; i++) {
      wq[i] -= rate * dq[i];
      wk[i] -= rate * dk[i];
    }
    head.form = formOf(wq, wk, size);
    return mean(losses);
  }

  // What the reader sees

  const share = (x) => fixed(x, 3); // of 200 sets, whole
  const SIZES = [4, 16, 64, 256];
  const RATES = [0.01, 0.03, 0.1, 0.3, 1, 3, 10];
  const KINDS = [
    { name: "√dₖ", divided: true, said: (size) => `divided by ${Math.sqrt(size)}` },
    { name: "nothing", said: () => "not divided" },
    { name: "nothing, first weights by ⁴√dₖ", small: true, said: () => "not divided, smaller first weights" },
  ];
  const SHOWN = 8; // trainings, the newest first

  /** The share that is right by step, of all trainings; thick is the one at hand, dotted is guessing. */
  function curves(trainings, guess) {
    const [wide, high, left, last] = [340, 150, 40, Math.max(STEPS, ...trainings.map(({ right }) => right.length - 1))];
    const [x, y] = [(step) => left + (step / last) * (wide - left - 4), (share) => 8 + (1 - share) * (high - 28)];
    const points = ({ right }) => right.map((share, step) => `${x(step).toFixed(1)},${y(share).toFixed(1)}`).join(" ");
    const text = (at, up, said, anchor = "end") => drawn("text", { x: at, y: up, "text-anchor": anchor }, said);
    const line = (share, kind) => drawn("line", { class: kind, x1: left, x2: wide - 4, y1: y(share), y2: y(share) });
    const [now, ...before] = trainings;
    return drawn("svg", {
      class: "live-curve", viewBox: `0 0 ${wide} ${high}`, role: "img",
      "aria-label": `The share of new sets that are right by step, ${trainings.length} trainings; the table has their ends.`,
    },
      line(0, "live-axis"), line(guess, "live-axis live-dotted"),
      text(left - 4, y(0) + 4, "0"), text(left - 4, y(1) + 4, "1"), text(left - 4, y(guess) + 4, "guess"),
      text(left, high - 4, "0", "start"), text(wide / 2, high - 4, "step", "middle"), text(wide - 4, high - 4, `${last}`),
      ...before.map((training) => drawn("polyline", { class: "live-before", points: points(training) })),
      drawn("polyline", { points: points(now) }),
      drawn("circle", { cx: x(now.right.length - 1), cy: y(now.right.at(-1)), r: 4 }),
    ); // prettier-ignore
  }

  /** The weights of one query over its keys, as columns; in another colour the key that it is about. */
  function columns(weights, asked) {
    const [wide, high] = [340, 64];
    const others = weights.filter((_, j) => j !== asked);
    const made = weights.map((weight, j) =>
      drawn("rect", {
        class: j === asked ? "live-of-key" : "live-of-query",
        x: (j * wide) / KEYS + 1, y: (high - 2) * (1 - weight), width: wide / KEYS - 2, height: 2 + (high - 2) * weight,
      }),
    ); // prettier-ignore
    const said = `The key that it is about has a weight of ${fixed(weights[asked])}, the largest other ${fixed(Math.max(...others))}.`;
    return drawn("svg", { class: "live-curve live-bars-up", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": said }, ...made);
  }

  function start(figure) {
    const sets = newSets();
    const guess = guessing(sets);
    let [size, kind, rate, seed] = [3, 1, 4, 1];
    let trainings = []; // the one at hand first
    let running = 0; // grows when the reader chooses anew, which ends the training before

    const sizes = choice("Size of the head, dₖ", SIZES.map(String), size, (i) => begin((size = i)));
    const kinds = choice("Divide the scores by", KINDS.map(({ name }) => name), kind, (i) => begin((kind = i))); // prettier-ignore
    const rates = slider("Learning rate", {
      min: 0, max: RATES.length - 1, value: rate, shown: (i) => `${RATES[i]}`,
      changed: (i) => begin((rate = i)),
    }); // prettier-ignore
    const train = button(`Train ${STEPS} steps`, () => go());
    train.classList.add("live-main");
    const again = button("Other random numbers", () => {
      seed += 1;
      trainings = []; // of other numbers: they would be compared for another reason
      begin();
    });
    const { said, say } = sentence();
    const view = element("div");

    /** A new head for what is chosen, before its first step. */
    function begin() {
      running += 1;
      const name = `${SIZES[size]}, ${KINDS[kind].said(SIZES[size])}, rate ${RATES[rate]}`;
      const head = headOf(seed, SIZES[size], KINDS[kind]);
      const { right, largest } = measure(head, sets);
      const kept = trainings.filter((training) => training.right.length > 1 && training.name !== name);
      trainings = [
        { name, head, rate: RATES[rate], data: uniforms(DATA_SEED + seed), right: [right], largest },
        ...kept.slice(0, SHOWN - 1),
      ];
      draw();
    }

    /** STEPS more steps of the head at hand, one for each frame, so that the page does not stall and the reader sees it. */
    function go() {
      const [mine, training] = [(running += 1), trainings[0]];
      const last = training.right.length - 1 + STEPS;
      const step = () => {
        if (mine !== running) return;
        descend(training.head, setsOf(training.data, BATCH), training.rate);
        training.right.push(measure(training.head, sets).right);
        draw();
        if (training.right.length <= last) requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
    }

    function draw() {
      const [{ name, head, right, largest }] = trainings;
      const steps = right.length - 1;
      train.textContent = steps ? `Train ${STEPS} more` : `Train ${STEPS} steps`;
      const weights = attend(head, sets[0]);
      const rows = trainings
        .filter((training) => training.right.length > 1)
        .map((training) => ({
          name: training.name,
          share: training.right.at(-1),
          cells: [`${training.right.length - 1}`, share(training.right.at(-1))],
        }));
      view.replaceChildren(
        element("div", { class: "live-columns" },
          element("div", {}, element("p", { class: "live-legend" }, `Right of ${NEW} new sets`), curves(trainings, guess)),
          element("div", {},
            element("p", { class: "live-legend" }, "The weights of the first of them; orange is the key that it is about"),
            columns(weights, sets[0].asked))),
        ...(rows.length ? [bars(["head", null, "steps", "right"], rows, "query")] : []),
      ); // prettier-ignore
      const now = steps ? `After ${steps} steps, ${share(right.at(-1))} are right` : "Not trained yet";
      say(
        `Head of ${name}. Before training, ${share(right[0])} of the answers are right, and the largest weight is ` +
          `${fixed(largest)} on average. ${now}. To guess the most frequent label is right in ${share(guess)}.`,
      );
    }

    const form = element("div", { class: "live-form" }, sizes.field, kinds.field, rates.field, train, again);
    replaceDrawing(figure, form, said, view);
    begin();
  }

  return { start, setsOf, newSets, guessing, headOf, attend, measure, descend, SIZES, RATES, KINDS, STEPS, BATCH, DATA_SEED };
});
