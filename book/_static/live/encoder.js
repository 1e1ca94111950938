/* The encoder of the Transformer (Vaswani et al. 2017, sections 3.1 and 3.3). */

live.define("encoder", (use) => {
  const { add } = use("tensors");
  const { LayerNorm, FeedForward } = use("layers");
  const { MultiHeadAttention } = use("attention");

  /** Self-attention, then feed-forward; each with a residual and a normalisation, before or after. */
  class EncoderLayer {
    constructor(weights, name, config) {
      this.preNorm = config.pre_norm;
      this.attention = new MultiHeadAttention(weights, `${name}.attention`, config.n_heads);
      this.norm1 = new LayerNorm(weights, `${name}.norm1`, config.norm_eps);
      this.feedForward = new FeedForward(weights, `${name}.feed_forward`, config.activation);
      this.norm2 = new LayerNorm(weights, `${name}.norm2`, config.norm_eps);
    }

    /** x (T, d_model) -> {output (T, d_model), weights: H times (T, T)}. */
    call(x) {
      if (this.preNorm) {
        const h = this.norm1.call(x);
        const { output, weights } = this.attention.call(h, h);
        x = add(x, output);
        return { output: add(x, this.feedForward.call(this.norm2.call(x))), weights };
      }
      const { output, weights } = this.attention.call(x, x);
      x = this.norm1.call(add(x, output));
      return { output: this.norm2.call(add(x, this.feedForward.call(x))), weights };
    }
  }

  /** n_layers of them; with pre_norm one more normalisation at the end. */
  class Encoder {
    constructor(weights, name, config) {
      this.layers = [];
      for (let i = 0; i < config.n_layers; i++) this.layers.push(new EncoderLayer(weights, `${name}.layers.${i}`, config));
      this.norm = config.pre_norm ? new LayerNorm(weights, `${name}.norm`, config.norm_eps) : null;
    }

    /** x (T, d_model) -> {output (T, d_model), weights: of each layer, H times (T, T)}. */
    call(x) {
      const all = [];
      for (const layer of this.layers) {
        const { output, weights } = layer.call(x);
        x = output;
        all.push(weights);
      }
      return { output: this.norm ? this.norm.call(x) : x, weights: all };
    }
  }

  return { Encoder, EncoderLayer };
});
