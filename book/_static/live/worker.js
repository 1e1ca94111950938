/* What runs in the worker: it opens checkpoints and answers questions about texts.

   A mistake of the reader, such as a text that is too long, comes back as an error with a `kind`: "empty", "long",
   "unknown" or "blank". */

live.define("worker", (use) => {
  const { unpack } = use("weights");
  const { row } = use("tensors");
  const { Translator } = use("translator");
  const { BertForMaskedLM } = use("bert");
  const { WordPiece } = use("wordpiece");

  const LONGEST = { translator: 60, bert: 32 }; // tokens; BERT was trained on windows of 32
  const models = new Map();

  class ReadersMistake extends Error {
    constructor(kind, message) {
      super(message);
      this.kind = kind;
    }
  }

  /** tokens: of the text, with the special ones at both ends. */
  function check(tokens, longest) {
    if (tokens.length <= 2) throw new ReadersMistake("empty", "There is nothing to read yet: type a sentence.");
    if (tokens.length > longest) {
      const message = `This text has ${tokens.length} tokens, and ${longest} are the most here: try one sentence of it.`;
      throw new ReadersMistake("long", message);
    }
    if (tokens.slice(1, -1).every((token) => token === "[UNK]" || token === "▁")) {
      throw new ReadersMistake("unknown", "The model knows nothing of this text: its letters are not those it was trained on.");
    }
  }

  /** Layers x heads of matrices as lists of their rows. */
  function plain(weights) {
    const rows = (x) => Array.from({ length: x.rows }, (_, t) => Array.from(row(x, t)));
    return weights.map((heads) => heads.map(rows));
  }

  const TASKS = {
    /** {text, width} -> the translation, its tokens, and what each looked at: layers x heads x T x S. */
    translate({ translator }, { text, width }) {
      const { tokenizer } = translator;
      check(tokenizer.tokens(tokenizer.encode(text)), LONGEST.translator);
      const unknown = tokenizer.unknown(text);
      const began = performance.now();
      const found = translator.translate(text, { width });
      return {
        text: found.text,
        milliseconds: performance.now() - began,
        unknown,
        source: tokenizer.tokens(found.sourceIds),
        target: tokenizer.tokens(found.ids),
        weights: plain(translator.alignment(found.sourceIds, found.ids)),
      };
    },

    /** {text, width} -> the translation, and the steps of its search: of each the candidates, {tokens, p, fate}, and how
        many positions of the decoder were computed for it with the cache, and would have been without. */
    search({ translator }, { text, width }) {
      const { tokenizer } = translator;
      check(tokenizer.tokens(tokenizer.encode(text)), LONGEST.translator);
      const steps = [];
      const watch = ({ length, ids, total, fate }) => {
        steps[length - 1] ??= [];
        steps[length - 1].push({ tokens: tokenizer.tokens(ids), p: Math.exp(total), fate });
      };
      const found = translator.translate(text, { width, watch });
      const open = steps.map((_, i) => (i === 0 ? 1 : steps[i - 1].filter(({ fate }) => fate === "kept").length));
      return {
        text: found.text,
        unknown: tokenizer.unknown(text),
        tokens: tokenizer.tokens(found.ids),
        steps: steps.map((candidates, i) => ({ candidates, cached: open[i], uncached: open[i] * (i + 1) })),
      };
    },

    /** {text} -> its tokens, what each attends to: layers x heads x T x T, and the size of a head. */
    attend({ bert, tokenizer }, { text }) {
      const ids = tokenizer.encode(text);
      check(tokenizer.tokens(ids), LONGEST.bert);
      const { output, weights } = bert.encode(ids);
      return {
        tokens: tokenizer.tokens(ids),
        unknown: ids.filter((id) => id === tokenizer.unkId).length,
        weights: plain(weights),
        size: output.cols / bert.config.n_heads,
      };
    },

    /** {text, k} with one blank, "___" or "[MASK]" -> the k most probable tokens there: [{token, p}]. */
    fill({ bert, tokenizer }, { text, k = 5 }) {
      const ids = tokenizer.encode(text.replace(/_{2,}/g, " [MASK] "));
      check(tokenizer.tokens(ids), LONGEST.bert);
      const places = ids.flatMap((id, place) => (id === tokenizer.maskId ? [place] : []));
      if (places.length !== 1) {
        throw new ReadersMistake("blank", "Mark one word as the blank by three underscores, ___, and only one.");
      }
      return {
        tokens: tokenizer.tokens(ids),
        place: places[0],
        unknown: ids.filter((id) => id === tokenizer.unkId).length,
        found: bert.fill(ids, places[0], k).map(({ id, p }) => ({ token: tokenizer.tokens([id])[0], p })),
      };
    },
  };

  function open(checkpoint, header, bytes) {
    const weights = unpack(header, bytes);
    if (header.kind === "translator") models.set(checkpoint, { translator: new Translator(weights, header) });
    else {
      const bert = new BertForMaskedLM(weights, header.config);
      models.set(checkpoint, { bert, tokenizer: new WordPiece(header.tokenizer) });
    }
    return { parameters: header.tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b), 0) };
  }

  const inWorker = typeof WorkerGlobalScope !== "undefined";
  if (inWorker) {
    self.onmessage = ({ data: { number, task, checkpoint, header, bytes, details } }) => {
      try {
        const opens = task === "open";
        const answer = opens ? open(checkpoint, header, bytes) : TASKS[task](models.get(checkpoint), details);
        self.postMessage({ number, answer });
      } catch (error) {
        self.postMessage({ number, error: { message: error.message, kind: error.kind ?? null } });
      }
    };
  }

  return { open, models, TASKS };
});
