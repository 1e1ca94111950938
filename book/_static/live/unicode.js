/* What the tokenizers ask of characters. A character is a code point: a pair of UTF-16 surrogates is one. */

live.define("unicode", () => {
  const HALF = /[\ud800-\udfff]/u; // with the flag u, the half of a pair alone

  /** The characters of a text; an error if one of them is half of a pair, which no tokenizer reads. */
  function characters(text) {
    const half = text.match(HALF);
    if (half) {
      const code = half[0].charCodeAt(0).toString(16);
      throw new Error(`the text holds half of a character, the lone surrogate \\u${code} at ${half.index}`);
    }
    return Array.from(text);
  }

  /** Lower case, character by character: as a word, "ΑΣ" would end in another sigma. */
  function lower(text) {
    return Array.from(text, (c) => c.toLowerCase()).join("");
  }

  const isSpace = (c) => /^\p{White_Space}$/u.test(c);

  return { characters, lower, isSpace };
});
