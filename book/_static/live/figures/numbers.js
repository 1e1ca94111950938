/* The formulas of the figures that need no model, for lists of numbers: those of course_lib, of which no model is loaded. */

live.define("figures/numbers", () => {
  /** A function that makes numbers of 0 ... 1, each below 1 and all equally likely, the same for a seed here and in
      book/draw_plain.py (Mulberry32). */
  function uniforms(seed) {
    let state = seed | 0;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  /** n numbers of a standard normal distribution, two of each two that `uniform` makes (Box and Muller). */
  function normalsFrom(uniform, n) {
    const made = new Float64Array(n + (n % 2));
    for (let i = 0; i < n; i += 2) {
      const [radius, angle] = [Math.sqrt(-2 * Math.log(1 - uniform())), 2 * Math.PI * uniform()];
      made[i] = radius * Math.cos(angle);
      made[i + 1] = radius * Math.sin(angle);
    }
    return made.subarray(0, n);
  }

  const normals = (seed, n) => normalsFrom(uniforms(seed), n);

  function dot(x, y) {
    let sum = 0;
    for (let i = 0; i < x.length; i++) sum += x[i] * y[i];
    return sum;
  }

  /** The weights of a row of scores; what a mask hides gets none, and where it hides all, all are zero. */
  function softmax(scores, seen = scores.map(() => true)) {
    const largest = Math.max(...scores.filter((_, i) => seen[i]));
    const exp = scores.map((score, i) => (seen[i] ? Math.exp(score - largest) : 0));
    const total = exp.reduce((sum, x) => sum + x, 0);
    return exp.map((x) => (total ? x / total : 0));
  }

  /** The trace of the gradient of the softmax: 1 minus the sum of the squares of the weights. */
  const trace = (weights) => 1 - dot(weights, weights);

  /** The frequencies of sinusoidal positions, in radians a token (Vaswani et al. 2017, section 3.5). */
  const frequencies = (dModel) => Array.from({ length: dModel / 2 }, (_, i) => 10000 ** ((-2 * i) / dModel));

  return { uniforms, normalsFrom, normals, dot, softmax, trace, frequencies };
});
