/* Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, section 3.2). */

live.define("attention", (use) => {
  const { matrix, row, columns, below, beside, times, timesTransposed, softmax } = use("tensors");
  const { Linear } = use("layers");

  /** softmax(q k^T / sqrt(d_k)) v (eq. 1).

      q (T, d_k), k (S, d_k), v (S, d_v). `seen`, booleans (S), hides keys from every query. With `causal` the queries
      are the last T of the S tokens, and none sees those after it. Returns {output (T, d_v), weights (T, S)}. */
  function attention(q, k, v, { seen = null, causal = false } = {}) {
    const scores = timesTransposed(q, k);
    const scale = 1 / Math.sqrt(q.cols);
    for (let t = 0; t < scores.rows; t++) {
      const one = row(scores, t);
      const last = causal ? k.rows - q.rows + t : k.rows - 1;
      for (let s = 0; s < one.length; s++) one[s] = s > last || (seen && !seen[s]) ? -Infinity : one[s] * scale;
    }
    const weights = softmax(scores);
    return { output: times(weights, v), weights };
  }

  /** n heads side by side, each in d_model / n features of its own (section 3.2.2). */
  class MultiHeadAttention {
    constructor(weights, name, nHeads) {
      this.nHeads = nHeads;
      for (const which of ["q_proj", "k_proj", "v_proj", "out_proj"]) this[which] = new Linear(weights, `${name}.${which}`);
    }

    /** (T, d_model) -> the H heads' shares, (T, d_head) each. */
    split(x) {
      const d = x.cols / this.nHeads;
      return Array.from({ length: this.nHeads }, (_, h) => columns(x, h * d, (h + 1) * d));
    }

    /** The keys and values of every head for x (S, d_model), after those of `past`: what a cache keeps. */
    project(x, past = null) {
      const keys = this.split(this.k_proj.call(x));
      const values = this.split(this.v_proj.call(x));
      if (!past) return { keys, values };
      return {
        keys: keys.map((k, h) => below(past.keys[h], k)),
        values: values.map((v, h) => below(past.values[h], v)),
      };
    }

    /** Attend from x (T, d_model) to what `project` returned: {output (T, d_model), weights: H times (T, S)}. */
    attend(x, { keys, values }, options) {
      const heads = this.split(this.q_proj.call(x)).map((q, h) => attention(q, keys[h], values[h], options));
      return {
        output: this.out_proj.call(beside(heads.map((head) => head.output))),
        weights: heads.map((head) => head.weights),
      };
    }

    call(x, memory, options) {
      return this.attend(x, this.project(memory), options);
    }
  }

  /** The mean of the heads' weights: H matrices (T, S) -> one. */
  function meanOfHeads(weights) {
    const mean = matrix(weights[0].rows, weights[0].cols);
    for (const head of weights) for (let i = 0; i < mean.data.length; i++) mean.data[i] += head.data[i] / weights.length;
    return mean;
  }

  return { attention, MultiHeadAttention, meanOfHeads };
});
