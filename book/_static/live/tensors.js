/* Matrices: {data: Float32Array, rows, cols}, row after row. Sums are kept in JavaScript's float64 and rounded once. */

live.define("tensors", () => {
  /** A matrix of zeros, or of the numbers given. */
  function matrix(rows, cols, data = new Float32Array(rows * cols)) {
    if (data.length !== rows * cols) throw new Error(`${data.length} numbers do not make ${rows} x ${cols}`);
    return { data, rows, cols };
  }

  /** Row i as a view: what is written to it is written to the matrix. */
  function row(x, i) {
    return x.data.subarray(i * x.cols, (i + 1) * x.cols);
  }

  /** x (n, d) and y (m, d) -> x y^T (n, m). Eight rows of y at once: each number of x is fetched for all of them. */
  function timesTransposed(x, y) {
    if (x.cols !== y.cols) throw new Error(`x has ${x.cols} features and y has ${y.cols}`);
    const out = matrix(x.rows, y.rows);
    const [a, b, d, m] = [x.data, y.data, x.cols, y.rows];
    for (let i = 0; i < x.rows; i++) {
      const end = (i + 1) * d;
      let j = 0;
      for (; j + 8 <= m; j += 8) {
        let s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0; // prettier-ignore
        for (let p = i * d, q = j * d; p < end; p++, q++) {
          const factor = a[p];
          s0 += factor * b[q];
          s1 += factor * b[q + d];
          s2 += factor * b[q + 2 * d];
          s3 += factor * b[q + 3 * d];
          s4 += factor * b[q + 4 * d];
          s5 += factor * b[q + 5 * d];
          s6 += factor * b[q + 6 * d];
          s7 += factor * b[q + 7 * d];
        }
        const at = i * m + j;
        out.data[at] = s0;
        out.data[at + 1] = s1;
        out.data[at + 2] = s2;
        out.data[at + 3] = s3;
        out.data[at + 4] = s4;
        out.data[at + 5] = s5;
        out.data[at + 6] = s6;
        out.data[at + 7] = s7;
      }
      for (; j < m; j++) {
        let sum = 0;
        for (let p = i * d, q = j * d; p < end; p++, q++) sum += a[p] * b[q];
        out.data[i * m + j] = sum;
      }
    }
    return out;
  }

  /** x (n, m) and y (m, d) -> x y (n, d). */
  function times(x, y) {
    if (x.cols !== y.rows) throw new Error(`x has ${x.cols} columns and y has ${y.rows} rows`);
    const out = matrix(x.rows, y.cols);
    const sum = new Float64Array(y.cols);
    for (let i = 0; i < x.rows; i++) {
      sum.fill(0);
      for (let k = 0; k < y.rows; k++) {
        const factor = x.data[i * x.cols + k];
        if (factor === 0) continue;
        const other = row(y, k);
        for (let j = 0; j < y.cols; j++) sum[j] += factor * other[j];
      }
      out.data.set(sum, i * y.cols);
    }
    return out;
  }

  /** x (n, d) and weight (d_out, d), bias (d_out) or null -> x weight^T + bias (n, d_out). */
  function linear(x, weight, bias) {
    const out = timesTransposed(x, weight);
    if (bias) {
      for (let i = 0; i < out.rows; i++) {
        const one = row(out, i);
        for (let j = 0; j < out.cols; j++) one[j] += bias.data[j];
      }
    }
    return out;
  }

  /** x + y, of one shape. */
  function add(x, y) {
    if (x.rows !== y.rows || x.cols !== y.cols) throw new Error("only matrices of one shape can be added");
    return matrix(x.rows, x.cols, x.data.map((value, i) => value + y.data[i]));
  }

  /** Every number by a function. */
  function apply(f, x) {
    return matrix(x.rows, x.cols, x.data.map((value) => f(value)));
  }

  /** exp(x) / sum exp(x) of each row. Minus infinity gets nothing, a row of nothing else stays at zero. */
  function softmax(x) {
    const out = matrix(x.rows, x.cols);
    for (let i = 0; i < x.rows; i++) {
      const [from, to] = [row(x, i), row(out, i)];
      let largest = -Infinity;
      for (const value of from) if (value > largest) largest = value;
      if (largest === -Infinity) continue;
      let total = 0;
      for (let j = 0; j < from.length; j++) total += Math.exp(from[j] - largest);
      for (let j = 0; j < from.length; j++) to[j] = Math.exp(from[j] - largest) / total;
    }
    return out;
  }

  /** x - log sum exp(x) of numbers (n): a Float64Array (n), since a search adds many of them up. */
  function logSoftmax(x) {
    let largest = -Infinity;
    for (const value of x) if (value > largest) largest = value;
    let total = 0;
    for (const value of x) total += Math.exp(value - largest);
    const norm = largest + Math.log(total);
    const out = new Float64Array(x.length);
    for (let i = 0; i < x.length; i++) out[i] = x[i] - norm;
    return out;
  }

  /** Mean 0 and variance 1 of each row, then a learned scale and shift (Ba et al. 2016, eq. 4). */
  function layerNorm(x, weight, bias, eps) {
    const out = matrix(x.rows, x.cols);
    for (let i = 0; i < x.rows; i++) {
      const [from, to] = [row(x, i), row(out, i)];
      let [mean, variance] = [0, 0];
      for (const value of from) mean += value / x.cols;
      for (const value of from) variance += (value - mean) ** 2 / x.cols;
      const deviation = Math.sqrt(variance + eps);
      for (let j = 0; j < x.cols; j++) to[j] = (weight.data[j] * (from[j] - mean)) / deviation + bias.data[j];
    }
    return out;
  }

  /** Columns first ... last - 1 of every row. */
  function columns(x, first, last) {
    const out = matrix(x.rows, last - first);
    for (let i = 0; i < x.rows; i++) row(out, i).set(row(x, i).subarray(first, last));
    return out;
  }

  /** Rows first ... last - 1. */
  function rows(x, first, last) {
    return matrix(last - first, x.cols, x.data.slice(first * x.cols, last * x.cols));
  }

  /** The rows of x, then those of y. */
  function below(x, y) {
    const out = matrix(x.rows + y.rows, x.cols);
    out.data.set(x.data);
    out.data.set(y.data, x.data.length);
    return out;
  }

  /** Matrices of equally many rows, side by side. */
  function beside(parts) {
    const out = matrix(parts[0].rows, parts.reduce((sum, part) => sum + part.cols, 0));
    for (let i = 0; i < out.rows; i++) {
      let at = 0;
      for (const part of parts) {
        row(out, i).set(row(part, i), at);
        at += part.cols;
      }
    }
    return out;
  }

  return { matrix, row, rows, columns, below, beside, times, timesTransposed, linear, add, apply, softmax, logSoftmax, layerNorm };
});
