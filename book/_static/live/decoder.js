/* The decoder of the Transformer (Vaswani et al. 2017, section 3.1), which reads its own tokens with a cache.

   A cache is never changed: `step` returns a new one. So two hypotheses of a beam may go on from the same. */

live.define("decoder", (use) => {
  const { add } = use("tensors");
  const { LayerNorm, FeedForward } = use("layers");
  const { MultiHeadAttention } = use("attention");

  /** Self-attention, attention to the encoder, feed-forward; each with a residual and a normalisation. */
  class DecoderLayer {
    constructor(weights, name, config) {
      this.preNorm = config.pre_norm;
      this.selfAttention = new MultiHeadAttention(weights, `${name}.self_attention`, config.n_heads);
      this.norm1 = new LayerNorm(weights, `${name}.norm1`, config.norm_eps);
      this.crossAttention = new MultiHeadAttention(weights, `${name}.cross_attention`, config.n_heads);
      this.norm2 = new LayerNorm(weights, `${name}.norm2`, config.norm_eps);
      this.feedForward = new FeedForward(weights, `${name}.feed_forward`, config.activation);
      this.norm3 = new LayerNorm(weights, `${name}.norm3`, config.norm_eps);
    }

    /** The cache before the first token: nothing of the target, keys and values of the memory (S, d_model). */
    start(memory) {
      return { own: null, memory: this.crossAttention.project(memory) };
    }

    /** New tokens x (n, d_model) after the t of the cache. `seen`, booleans (t + n), hides some from all.

        Returns {output (n, d_model), cache, crossWeights: H times (n, S)}. */
    step(x, cache, seen) {
      let own = cache.own;
      const toTarget = (h) => {
        own = this.selfAttention.project(h, own);
        return this.selfAttention.attend(h, own, { seen, causal: true }).output;
      };
      const toMemory = (h) => this.crossAttention.attend(h, cache.memory);
      let looked;
      if (this.preNorm) {
        x = add(x, toTarget(this.norm1.call(x)));
        looked = toMemory(this.norm2.call(x));
        x = add(x, looked.output);
        x = add(x, this.feedForward.call(this.norm3.call(x)));
      } else {
        x = this.norm1.call(add(x, toTarget(x)));
        looked = toMemory(x);
        x = this.norm2.call(add(x, looked.output));
        x = this.norm3.call(add(x, this.feedForward.call(x)));
      }
      return { output: x, cache: { own, memory: cache.memory }, crossWeights: looked.weights };
    }
  }

  /** n_layers of them; with pre_norm one more normalisation at the end. */
  class Decoder {
    constructor(weights, name, config) {
      this.layers = [];
      for (let i = 0; i < config.n_layers; i++) this.layers.push(new DecoderLayer(weights, `${name}.layers.${i}`, config));
      this.norm = config.pre_norm ? new LayerNorm(weights, `${name}.norm`, config.norm_eps) : null;
    }

    /** Every layer's cache before the first token. */
    start(memory) {
      return this.layers.map((layer) => layer.start(memory));
    }

    /** As of a layer: {output (n, d_model), caches, crossWeights: of each layer, H times (n, S)}. */
    step(x, caches, seen) {
      const [grown, crossWeights] = [[], []];
      this.layers.forEach((layer, i) => {
        const after = layer.step(x, caches[i], seen);
        x = after.output;
        grown.push(after.cache);
        crossWeights.push(after.crossWeights);
      });
      return { output: this.norm ? this.norm.call(x) : x, caches: grown, crossWeights };
    }
  }

  return { Decoder, DecoderLayer };
});
