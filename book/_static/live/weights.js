/* Weights out of a compact file, which `python book/pack_weights.py` writes: a header, and one run of bytes as base64.

   A tensor is of half-precision numbers; or of integers, each row with a step of its own that they are multiples of. */

live.define("weights", (use) => {
  const { matrix } = use("tensors");

  /** base64 to bytes. */
  function bytesOf(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  /** The number that 16 bits stand for: a sign, 5 bits of exponent, 10 of fraction (IEEE 754, binary16). */
  function half(bits) {
    const sign = bits & 0x8000 ? -1 : 1;
    const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
  }

  let halves = null; // all 65,536 of them: to look one up is faster than to compute it

  function halvesOf(bytes, n) {
    halves ??= Float32Array.from({ length: 65536 }, (_, bits) => half(bits));
    const out = new Float32Array(n);
    for (let i = 0; i < n; i++) out[i] = halves[bytes[2 * i] | (bytes[2 * i + 1] << 8)]; // the low byte comes first
    return out;
  }

  /** `bits` bits to a number, the high ones first, each the number plus 2^(bits - 1) - 1. */
  function integersOf(bytes, n, bits) {
    const out = new Int16Array(n);
    const zero = 2 ** (bits - 1) - 1;
    const ones = 2 ** bits - 1;
    let held = 0; // the last three bytes
    let nHeld = 0; // how many of its bits are still to be read
    for (let i = 0, at = 0; i < n; i++) {
      for (; nHeld < bits; nHeld += 8) held = ((held << 8) | bytes[at++]) & 0xffffff;
      nHeld -= bits;
      out[i] = ((held >> nHeld) & ones) - zero;
    }
    return out;
  }

  /** A tensor of the header as a matrix; one with a single axis is a matrix of one row. */
  function tensor({ shape, bits, at }, bytes) {
    const [rows, cols] = shape.length === 2 ? shape : [1, shape[0]];
    const from = bytes.subarray(at);
    if (bits === 16) return matrix(rows, cols, halvesOf(from, rows * cols));
    const steps = halvesOf(from, rows);
    const multiples = integersOf(from.subarray(2 * rows), rows * cols, bits);
    const out = matrix(rows, cols);
    for (let i = 0; i < out.data.length; i++) out.data[i] = multiples[i] * steps[Math.floor(i / cols)];
    return out;
  }

  /** Every tensor by its name, as course_lib calls it. */
  function unpack(header, base64) {
    const bytes = bytesOf(base64);
    return new Map(header.tensors.map((entry) => [entry.name, tensor(entry, bytes)]));
  }

  /** The weights under a prefix: `part(weights, "encoder.layers.0")("norm1.weight")`. */
  function part(weights, prefix) {
    return (name) => {
      const found = weights.get(`${prefix}.${name}`);
      if (!found) throw new Error(`the checkpoint has no ${prefix}.${name}`);
      return found;
    };
  }

  return { unpack, part, half };
});
