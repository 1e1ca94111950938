/* Byte-pair encoding (Sennrich et al. 2016, section 3.2), as course_lib.text.bpe reads text.

   "▁" stands for the space before a word. Words, numbers and punctuation never share a token; a run of characters that
   the training text lacked becomes one [UNK]. What looks like a special token in a text is text. */

live.define("bpe", (use) => {
  const { characters, lower } = use("unicode");

  const [PAD, UNK, START, END] = [0, 1, 2, 3];
  const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
  const PIECES = new RegExp(`▁?[${WORD}]+|▁?[^${WORD}▁]+|▁`, "gu"); // as in BytePairEncoding.train

  class BytePairEncoding {
    /** tokens: in the order of their ids. merges: pairs of tokens, the first learned first. */
    constructor({ tokens, merges, lower }) {
      this.all = tokens;
      this.lower = lower;
      this.ids = new Map(tokens.map((token, id) => [token, id]));
      this.ranks = new Map(merges.map((pair, rank) => [pair, rank])); // "a b" -> when it was learned
    }

    /** A text to its ids, [START] ... [END]. */
    encode(text) {
      const words = this.normalise(text).match(PIECES) ?? [];
      return [START, ...words.flatMap((word) => this.encodeWord(word)), END];
    }

    /** One form for each character, single spaces, none at the ends, and "▁" for each and before the first. */
    normalise(text) {
      const composed = characters(text).join("").normalize("NFKC");
      const spaced = composed.replace(/\p{White_Space}+/gu, " ").replace(/^ | $/g, "");
      const marked = (this.lower ? lower(spaced) : spaced).replaceAll(" ", "▁");
      return marked === "" || marked.startsWith("▁") ? marked : `▁${marked}`;
    }

    /** Join the pair that was learned first, the leftmost of several, until none is left. */
    encodeWord(word) {
      const parts = [];
      for (const c of word) {
        if (this.ids.has(c)) parts.push(c);
        else if (parts.at(-1) !== null) parts.push(null); // unknown, and so may be its neighbours: one [UNK]
      }
      for (;;) {
        let [best, at] = [Infinity, -1];
        for (let i = 0; i + 1 < parts.length; i++) {
          const rank = this.ranks.get(`${parts[i]} ${parts[i + 1]}`);
          if (rank < best) [best, at] = [rank, i];
        }
        if (at < 0) return parts.map((part) => (part === null ? UNK : this.ids.get(part)));
        parts.splice(at, 2, parts[at] + parts[at + 1]);
      }
    }

    /** Ids to a text, without special tokens and what follows the first [END]. [UNK] is shown. */
    decode(ids) {
      const end = ids.indexOf(END);
      const kept = (end < 0 ? ids : ids.slice(0, end)).filter((id) => id !== PAD && id !== START);
      return kept.map((id, i) => this.all[id].replaceAll("▁", i === 0 ? "" : " ")).join("");
    }

    tokens(ids) {
      return ids.map((id) => this.all[id]);
    }

    /** The characters of a text that the vocabulary lacks, each once. */
    unknown(text) {
      return [...new Set(this.normalise(text))].filter((c) => !this.ids.has(c));
    }
  }

  return { BytePairEncoding, PAD, UNK, START, END };
});
