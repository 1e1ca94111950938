/* The Transformer as a translator (Vaswani et al. 2017, figure 1): embeddings, encoder, decoder, logits.

   One sentence at a time, so there is no padding to mask. The embeddings are shared and are the output matrix too; the
   positions are sinusoids. That is what the course's translator has, and no other is opened. */

live.define("transformer", (use) => {
  const { row, rows, timesTransposed } = use("tensors");
  const { part } = use("weights");
  const { embed, sinusoids } = use("layers");
  const { Encoder } = use("encoder");
  const { Decoder } = use("decoder");

  class Transformer {
    constructor(weights, config) {
      const { positions, share_embeddings, tie_output } = config;
      if (positions !== "sinusoidal" || !share_embeddings || !tie_output) throw new Error("a translator of another kind");
      this.config = config;
      this.embedding = part(weights, "source_embedding")("weight"); // (V, d_model)
      this.encoder = new Encoder(weights, "encoder", config);
      this.decoder = new Decoder(weights, "decoder", config);
    }

    /** Read the source, S ids -> the memory (S, d_model). */
    encode(sourceIds) {
      return this.encoder.call(this.embed(sourceIds, 0)).output;
    }

    /** The state before the first target token. */
    start(memory) {
      return { seen: [], caches: this.decoder.start(memory) };
    }

    /** Read new target tokens, n ids -> {logits (n, V) of the token after each, state, crossWeights}. */
    step(ids, state, lastOnly = true) {
      const seen = [...state.seen, ...ids.map((id) => id !== this.config.pad_id)];
      const read = this.decoder.step(this.embed(ids, state.seen.length), state.caches, seen);
      const hidden = lastOnly ? rows(read.output, ids.length - 1, ids.length) : read.output;
      const logits = timesTransposed(hidden, this.embedding);
      return { logits, state: { seen, caches: read.caches }, crossWeights: read.crossWeights };
    }

    /** ids, the tokens from place `first` on -> embeddings times sqrt(d_model), with positions. */
    embed(ids, first) {
      const x = embed(this.embedding, ids);
      const scale = Math.sqrt(x.cols);
      for (let t = 0; t < x.rows; t++) {
        const [one, place] = [row(x, t), sinusoids(first + t, x.cols)];
        for (let i = 0; i < x.cols; i++) one[i] = one[i] * scale + place[i];
      }
      return x;
    }
  }

  return { Transformer };
});
