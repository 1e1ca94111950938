/* From probabilities to text: greedy search and beam search for one sentence, as course_lib.decoding.search.

   A model is asked by `step(ids, state)`, which returns {logits (1, V), state}; states are never changed, so a hypothesis
   that splits needs no copy. */

live.define("search", (use) => {
  const { logSoftmax } = use("tensors");

  /** ((5 + length) / 6)^alpha (Wu et al. 2016, section 7, eq. 14). */
  const penalty = (length, alpha) => ((5 + length) / 6) ** alpha;

  /** Where the k largest finite numbers stand, the largest first; equal ones in order of their place. */
  function largest(values, k) {
    const best = []; // at most k places, in order
    for (let i = 0; i < values.length; i++) {
      if (values[i] === -Infinity || (best.length === k && values[i] <= values[best[k - 1]])) continue;
      let at = best.length;
      while (at > 0 && values[best[at - 1]] < values[i]) at--;
      best.splice(at, 0, i);
      if (best.length > k) best.pop();
    }
    return best;
  }

  /** Keep the `width` most probable beginnings and extend them together; width 1 is greedy search.

      A hypothesis that reaches its end keeps its place, and the beam goes on one narrower. Returns the hypotheses that
      ended, {ids, score}, the best first: at most `nBest`. What is open after maxLen tokens counts as it stands.
      `watch`, if given, is called with each candidate, {length, ids, total, fate}: the "kept" and "ended" ones, and as
      many of the best "dropped" as the beam is wide. */
  function beamSearch(step, start, state, { endId, maxLen, minLen = 0, width = 4, alpha = 0.6, nBest = 1, watch = null }) {
    const done = [];
    let open = [{ ids: [], last: start, total: 0, state }];
    for (let length = 1; length <= maxLen && open.length; length++) {
      const read = open.map((hypothesis) => step(hypothesis.last, hypothesis.state));
      const vocab = read[0].logits.cols;
      const totals = new Float64Array(open.length * vocab);
      read.forEach(({ logits }, row) => {
        if (length <= minLen) logits.data[endId] = -Infinity;
        const logP = logSoftmax(logits.data);
        for (let token = 0; token < vocab; token++) totals[row * vocab + token] = open[row].total + logP[token];
      });
      const next = [];
      const room = width - done.length;
      for (const [rank, place] of largest(totals, room + (watch ? width : 0)).entries()) {
        const [row, token, total] = [Math.floor(place / vocab), place % vocab, totals[place]];
        const ids = [...open[row].ids, token];
        const ended = token === endId || length === maxLen;
        watch?.({ length, ids, total, fate: rank >= room ? "dropped" : ended ? "ended" : "kept" });
        if (rank >= room) continue;
        if (ended) done.push({ ids, score: total / penalty(length, alpha) });
        else next.push({ ids, last: [token], total, state: read[row].state });
      }
      // A log-probability only falls: divided by the largest penalty it bounds what a hypothesis can reach.
      open = next.length && mayImprove(done, next[0].total / penalty(maxLen, alpha), nBest) ? next : [];
    }
    return done.sort((a, b) => b.score - a.score).slice(0, nBest);
  }

  function mayImprove(done, bound, nBest) {
    if (done.length < nBest) return true;
    return bound > done.map(({ score }) => score).sort((a, b) => b - a)[nBest - 1];
  }

  /** The most probable token, again and again, until the end token. */
  function greedy(step, start, state, options) {
    return beamSearch(step, start, state, { ...options, width: 1, nBest: 1 })[0].ids;
  }

  return { beamSearch, greedy, largest };
});
