/* BERT (Devlin et al. 2018) with the head of its first pretraining task: which token stood here? */

live.define("bert", (use) => {
  const { add, apply, row, rows, softmax, timesTransposed } = use("tensors");
  const { part } = use("weights");
  const { Linear, LayerNorm, ACTIVATIONS, embed } = use("layers");
  const { Encoder } = use("encoder");

  class BertForMaskedLM {
    constructor(weights, config) {
      this.config = config;
      const tables = part(weights, "bert.embeddings");
      this.token = tables("token.weight"); // (V, d_model)
      this.segment = tables("segment.weight"); // (2, d_model)
      this.position = tables("position.weight"); // (max_len, d_model)
      this.norm = new LayerNorm(weights, "bert.embeddings.norm", config.norm_eps);
      this.encoder = new Encoder(weights, "bert.encoder", config);
      this.transform = new Linear(weights, "head.transform");
      this.headNorm = new LayerNorm(weights, "head.norm", config.norm_eps);
      this.bias = part(weights, "head")("bias"); // (V)
    }

    /** T ids of one text -> {output (T, d_model), weights: of each layer, H times (T, T)}. */
    encode(ids) {
      const inSegment = embed(this.segment, ids.map(() => 0));
      const x = add(add(embed(this.token, ids), inSegment), rows(this.position, 0, ids.length));
      return this.encoder.call(this.norm.call(x));
    }

    /** Hidden states (n, d_model) -> logits (n, V). */
    predict(hidden) {
      const activated = apply(ACTIVATIONS[this.config.activation], this.transform.call(hidden));
      const logits = timesTransposed(this.headNorm.call(activated), this.token);
      for (let i = 0; i < logits.rows; i++) {
        const one = row(logits, i);
        for (let j = 0; j < one.length; j++) one[j] += this.bias.data[j];
      }
      return logits;
    }

    /** The k most probable tokens at one place of a text: [{id, p}], the most probable first. */
    fill(ids, place, k) {
      const hidden = rows(this.encode(ids).output, place, place + 1);
      const p = softmax(this.predict(hidden)).data;
      return Array.from(p.keys())
        .sort((a, b) => p[b] - p[a])
        .slice(0, k)
        .map((id) => ({ id, p: p[id] }));
    }
  }

  return { BertForMaskedLM };
});
