/* WordPiece (Wu et al. 2016, section 4) with BERT's special tokens, as course_lib.text.wordpiece reads text. */

live.define("wordpiece", (use) => {
  const { characters, lower, isSpace } = use("unicode");

  const SPECIAL = /\[(?:PAD|UNK|CLS|SEP|MASK)\]/; // in a text they are what they look like
  const LONGEST = 100; // characters of a word; a longer one is [UNK]
  const CHINESE = [
    [0x4e00, 0x9fff], [0x3400, 0x4dbf], [0x20000, 0x2a6df], [0x2a700, 0x2b73f],
    [0x2b740, 0x2b81f], [0x2b920, 0x2ceaf], [0xf900, 0xfaff], [0x2f800, 0x2fa1f],
  ]; // prettier-ignore

  const isDropped = (c) => c === "\0" || c === "\ufffd" || (/^[\p{Cc}\p{Cf}\p{Co}]$/u.test(c) && !/[\t\n\r]/.test(c));
  const isChinese = (c) => CHINESE.some(([first, last]) => c.codePointAt(0) >= first && c.codePointAt(0) <= last);
  const isPunctuation = (c) => /^[!-/:-@[-`{-~]$/.test(c) || /^\p{P}$/u.test(c);

  class WordPiece {
    /** tokens: in the order of their ids. lower: lower-case all text and strip its accents. */
    constructor({ tokens, lower }) {
      this.all = tokens;
      this.lower = lower;
      this.ids = new Map(tokens.map((token, id) => [token, id]));
      [this.unkId, this.clsId, this.sepId, this.maskId] = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"].map((t) => this.ids.get(t));
    }

    /** A text to its ids, [CLS] ... [SEP]. */
    encode(text) {
      characters(text); // refuses half of one
      const found = [];
      let rest = text;
      for (let match = rest.match(SPECIAL); match; match = rest.match(SPECIAL)) {
        found.push(...this.encodeText(rest.slice(0, match.index)), this.ids.get(match[0]));
        rest = rest.slice(match.index + match[0].length);
      }
      return [this.clsId, ...found, ...this.encodeText(rest), this.sepId];
    }

    encodeText(text) {
      return this.words(text).flatMap((word) => this.encodeWord(word));
    }

    /** Words and marks of punctuation, cleaned: no control characters, no accents, each Chinese character a word. */
    words(text) {
      let cleaned = "";
      for (const c of text) {
        if (isDropped(c)) continue;
        if (isSpace(c)) cleaned += " ";
        else cleaned += isChinese(c) ? ` ${c} ` : c;
      }
      if (this.lower) cleaned = lower(cleaned.normalize("NFD").replace(/\p{Mn}/gu, ""));
      const parted = Array.from(cleaned, (c) => (isPunctuation(c) ? ` ${c} ` : c)).join("");
      return parted.split(/\p{White_Space}+/u).filter((word) => word !== "");
    }

    /** The longest token that the word begins with, then the longest that its rest begins with, and so on. */
    encodeWord(word) {
      const letters = Array.from(word);
      if (letters.length > LONGEST) return [this.unkId];
      const found = [];
      let first = 0;
      while (first < letters.length) {
        let last = letters.length;
        const piece = () => (first ? "##" : "") + letters.slice(first, last).join("");
        while (last > first && !this.ids.has(piece())) last--;
        if (last === first) return [this.unkId];
        found.push(this.ids.get(piece()));
        first = last;
      }
      return found;
    }

    tokens(ids) {
      return ids.map((id) => this.all[id]);
    }
  }

  return { WordPiece };
});
