/* Text in, text out: a trained translator with its tokenizer, as course_lib.decoding.translator. */

live.define("translator", (use) => {
  const { Transformer } = use("transformer");
  const { BytePairEncoding, PAD, START, END } = use("bpe");
  const { beamSearch } = use("search");

  const LONGER = 50; // tokens that a translation may have more than its source (Vaswani et al. 2017, section 6.1)

  class Translator {
    constructor(weights, { config, tokenizer }) {
      this.model = new Transformer(weights, config);
      this.tokenizer = new BytePairEncoding(tokenizer);
      if (config.pad_id !== PAD) throw new Error("the model's padding is not the tokenizer's");
    }

    /** A text to {text, sourceIds, ids, score} by beam search, which `watch` may follow; a text without any token becomes
        an empty one. */
    translate(text, { width = 4, alpha = 0.6, watch = null } = {}) {
      const sourceIds = this.tokenizer.encode(text);
      if (sourceIds.length <= 2) return { text: "", sourceIds, ids: [], score: 0 };
      const state = this.model.start(this.model.encode(sourceIds));
      const maxLen = Math.min(sourceIds.length + LONGER, this.model.config.max_len - 1);
      // To say nothing costs one token, so to a search it is tempting where the model is unsure: minLen forbids it.
      const options = { endId: END, maxLen, minLen: 1, width, alpha, watch };
      const [{ ids, score }] = beamSearch((last, kept) => this.model.step(last, kept), [START], state, options);
      return { text: this.tokenizer.decode(ids), sourceIds, ids, score };
    }

    /** What each token of a translation looked at before it was written: of each layer, H times (T, S). */
    alignment(sourceIds, ids) {
      const state = this.model.start(this.model.encode(sourceIds));
      return this.model.step([START, ...ids.slice(0, -1)], state).crossWeights;
    }
  }

  return { Translator };
});
