/* The layers that every model is built of. A layer takes its weights from a checkpoint by its name in course_lib. */

live.define("layers", (use) => {
  const { matrix, row, linear, layerNorm, apply } = use("tensors");
  const { part } = use("weights");

  /** erf(x), to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26). */
  function erf(x) {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return Math.sign(x) * (1 - series * Math.exp(-x * x));
  }

  const ACTIVATIONS = {
    relu: (x) => Math.max(0, x),
    gelu: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2, // Hendrycks and Gimpel 2016, section 2
  };

  /** y = x W^T + b, with the weight as (d_out, d_in). */
  class Linear {
    constructor(weights, name) {
      this.weight = part(weights, name)("weight");
      this.bias = part(weights, name)("bias");
    }

    call(x) {
      return linear(x, this.weight, this.bias);
    }
  }

  /** Mean 0 and variance 1 of each row, then a learned scale and shift. */
  class LayerNorm {
    constructor(weights, name, eps) {
      this.weight = part(weights, name)("weight");
      this.bias = part(weights, name)("bias");
      this.eps = eps;
    }

    call(x) {
      return layerNorm(x, this.weight, this.bias, this.eps);
    }
  }

  /** activation(x W1 + b1) W2 + b2, at every position alike (Vaswani et al. 2017, eq. 2). */
  class FeedForward {
    constructor(weights, name, activation) {
      this.linear1 = new Linear(weights, `${name}.linear1`);
      this.linear2 = new Linear(weights, `${name}.linear2`);
      this.activation = ACTIVATIONS[activation];
    }

    call(x) {
      return this.linear2.call(apply(this.activation, this.linear1.call(x)));
    }
  }

  /** Rows ids of a table, one below the other: (n, d). */
  function embed(table, ids) {
    const out = matrix(ids.length, table.cols);
    ids.forEach((id, i) => row(out, i).set(row(table, id)));
    return out;
  }

  /** Position `place` as sines and cosines, d numbers (Vaswani et al. 2017, section 3.5). */
  function sinusoids(place, d) {
    return Float64Array.from({ length: d }, (_, i) => {
      const angle = place * 10000 ** (-(i - (i % 2)) / d);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  }

  return { Linear, LayerNorm, FeedForward, ACTIVATIONS, erf, embed, sinusoids };
});
