"""How solutions of the bank are put together."""

HEAD = {
    "normalise": "def normalise(text):",
    "answer-tokens": "def answer_tokens(offsets, answer):",
    "windows": "def windows(question, context, max_len, stride):",
    "best-span": "def best_span(start, end, inside, longest):",
    "scores-at": "def scores_at(margins, answered, empty, threshold):",
    "choose-threshold": "def choose_threshold(margins, answered, empty):",
    "find-answer": "def find_answer(context, windows, longest):",
}
MATCH, SHARE = "def exact_match(said, answers):", "def f1(said, answers):"
EXACT = (
    "answers = answers or ['']",
    "return float(any(normalise(said) == normalise(right) for right in answers))",
)
OVERLAP = (
    "best = 0.0",
    "for right in answers or ['']:",
    "    a, b = normalise(said), normalise(right)",
    "    common = sum((Counter(a) & Counter(b)).values())",
    "    best = max(best, float(a == b) if not a or not b else 2 * common / (len(a) + len(b)))",
    "return best",
)


def body(cell: str, *lines: str) -> dict[str, str]:
    """A solution cell with these lines as its function."""
    return {cell: HEAD[cell] + "".join(f"\n    {line}" for line in lines)}


def measures(exact: tuple[str, ...] = EXACT, share: tuple[str, ...] = OVERLAP) -> dict[str, str]:
    """The cell of both measures, with these lines as their functions."""
    parts = [MATCH, *(f"    {line}" for line in exact), "", "", SHARE, *(f"    {line}" for line in share)]
    return {"measures": "\n".join(parts)}
