"""Generated changes of the reference that are right all the same: by cell and change, with the reason."""

MATCH = "any((normalise(said) == normalise(answer) for answer in answers or ['']))"
BOTH = "ours, right = (Counter(normalise({})), Counter(normalise({})))"
ENDS = "ends = (offsets[:, 0] < q) & (q <= offsets[:, 1])"
STARTS = "for start in range(0, max({}), room - stride):"
SPANS = "spans = [(start[i] + end[j], i, j) for i in range(n) for j in range(i, min({})) if inside[i] and inside[j]]"
BEST = "first, last, score = best_span(start, end, {} >= 0, longest)"

EQUIVALENT = {
    ("measures", f"return float({MATCH})  ->  return {MATCH}"): "True is a number, too: 1",
    ("measures", f"{BOTH.format('said', 'answer')}  ->  {BOTH.format('answer', 'said')}"):
        "F1 is the same from either side",
    ("answer-tokens", f"{ENDS}  ->  ends = q <= offsets[:, 1]"):
        "the first token that ends at q or later: it begins before q if the answer begins in the window",
    ("answer-tokens", f"{ENDS}  ->  {ENDS.replace('<', '<=', 1)}"):
        "a token that begins at q stands behind the one that ends there, and the first counts",
    ("windows", "if room <= stride:  ->  if room < stride:"): "range raises a ValueError for a step of 0",
    ("windows", f"{STARTS.format('len(context) - stride, 1')}  ->  {STARTS.format('1, len(context) - stride')}"):
        "the larger of two numbers",
    ("best-span", "n = len(start)  ->  n = len(end)"): "there are as many of both",
    ("best-span", f"{SPANS.format('i + longest, n')}  ->  {SPANS.format('n, i + longest')}"):
        "the smaller of two numbers",
    ("choose-threshold", "if found > best:  ->  if found >= best:"): "another one of those that are equally good",
    ("find-answer", "if score > best:  ->  if score >= best:"): "the last of equally good spans, not the first",
    (
        "find-answer",
        "null = min(null, start[0] + end[0])  ->  null = min(start[0] + end[0], null)",
    ): "the smaller of two numbers",
    ("find-answer", f"{BEST.format('offsets[:, 0]')}  ->  {BEST.format('offsets[:, 1]')}"):
        "both offsets are -1 outside the context",
    ("find-answer", f"{BEST.format('offsets[:, 0]')}  ->  {BEST.format('offsets[:, -1]')}"):
        "both offsets are -1 outside the context",
}  # fmt: skip
