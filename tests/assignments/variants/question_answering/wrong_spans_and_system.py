"""Wrong solutions of parts 4 to 6: the best span, no answer, and the system."""

from tests.assignments.variants import Variant
from tests.assignments.variants.question_answering.changed import body


def searched(
    may="inside[i] and inside[j] and 0 <= j - i < longest",
    value="start[i] + end[j]",
    first="(0, 0, -np.inf)",
    given="best",
) -> dict:
    """The search of all pairs, with another condition, another score, another beginning or another result."""
    return body(
        "best-span",
        f"best = {first}",
        "for i in range(len(start)):",
        "    for j in range(len(end)):",
        f"        if {may} and {value} > best[2]:",
        f"            best = (i, j, {value})",
        f"return {given}",
    )


MASKED = ("s, e = np.where(inside, start, -np.inf), np.where(inside, end, -np.inf)",)

SPANS = [
    Variant(
        "the best start and the best end",
        body("best-span", *MASKED, "i, j = s.argmax(), e.argmax()", "return i, j, s[i] + e[j]"),
        {"test-best-span": 1.5},
        "no span where the end stands before the start, and any length",
    ),
    Variant(
        "the best start, then the best end behind it",
        body(
            "best-span",
            *MASKED,
            "i = int(s.argmax())",
            "j = i + int(e[i : i + longest].argmax())",
            "return i, j, s[i] + e[j]",
        ),
        {"test-best-span": 1.5},
        "another start may be better with its end, also where the length is limited",
    ),
    Variant(
        "the best end, then the best start before it",
        body(
            "best-span",
            *MASKED,
            "j = int(e.argmax())",
            "low = max(j - longest + 1, 0)",
            "i = low + int(s[low : j + 1].argmax())",
            "return i, j, s[i] + e[j]",
        ),
        {"test-best-span": 1.5},
        "another end may be better with its start, also where the length is limited",
    ),
    Variant(
        "the better of the two",
        body(
            "best-span",
            *MASKED,
            "i, j = int(s.argmax()), int(e.argmax())",
            "low = max(j - longest + 1, 0)",
            "spans = [(i, i + int(e[i : i + longest].argmax())), (low + int(s[low : j + 1].argmax()), j)]",
            "i, j = max(spans, key=lambda span: s[span[0]] + e[span[1]])",
            "return i, j, s[i] + e[j]",
        ),
        {"test-best-span": 1.5},
        "a pair without the best start and the best end, also where the length is limited",
    ),
    Variant(
        "the end may stand before the start",
        searched(may="inside[i] and inside[j] and abs(j - i) < longest"),
        {"test-best-span": 1},
        "spans that end before they begin",
    ),
    Variant(
        "at least two tokens",
        searched(may="inside[i] and inside[j] and 0 < j - i < longest"),
        {"test-best-span": 1.5},
        "an answer of one token is not found, wherever one is planted",
    ),
    Variant("no limit", searched(may="inside[i] and inside[j] and i <= j"), {"test-best-span": 0.5}, "any length"),
    Variant(
        "a token too long",
        searched(may="inside[i] and inside[j] and 0 <= j - i <= longest"),
        {"test-best-span": 0.5},
        "j - i + 1 tokens",
    ),
    Variant(
        "a token too short",
        searched(may="inside[i] and inside[j] and 0 <= j - i < max(longest - 1, 1)"),
        {"test-best-span": 0.5},
        "a span of `longest` tokens is allowed",
    ),
    Variant(
        "the whole window",
        searched(may="0 <= j - i < longest"),
        {"test-best-span": 0.5},
        "the question is no place for an answer",
    ),
    Variant(
        "all but [CLS]",
        searched(may="0 < i and 0 <= j - i < longest"),
        {"test-best-span": 0.5},
        "the question is no place for an answer",
    ),
    Variant(
        "only the start inside",
        searched(may="inside[i] and 0 <= j - i < longest"),
        {"test-best-span": 0.5},
        "the [SEP] at the end may end it",
    ),
    Variant(
        "only the end inside",
        searched(may="inside[j] and 0 <= j - i < longest"),
        {"test-best-span": 0.5},
        "the question may begin it",
    ),
    Variant(
        "0 outside the context",
        body(
            "best-span",
            "n = len(start)",
            "pairs = np.add.outer(start, end) * np.outer(inside, inside)",
            "pairs = pairs * np.triu(np.ones((n, n))) * np.tril(np.ones((n, n)), longest - 1)",
            "i, j = np.unravel_index(pairs.argmax(), pairs.shape)",
            "return i, j, pairs[i, j]",
        ),
        {"test-best-span": 0.5},
        "0 is more than a score below zero",
    ),
    Variant(
        "-1000 outside the context",
        body(
            "best-span",
            "n = len(start)",
            "one = np.ones((n, n), dtype=bool)",
            "ok = np.outer(inside, inside) & np.triu(one) & np.tril(one, longest - 1)",
            "pairs = np.where(ok, np.add.outer(start, end), -1000)",
            "i, j = np.unravel_index(pairs.argmax(), pairs.shape)",
            "return i, j, pairs[i, j]",
        ),
        {"test-best-span": 0.5},
        "scores can be lower than that",
    ),
    Variant(
        "begun with a score of 0",
        searched(first="(0, 0, 0.0)"),
        {"test-best-span": 0.5},
        "scores below zero are scores, too",
    ),
    Variant(
        "the token after the last of the span",
        searched(given="(best[0], best[1] + 1, best[2])"),
        {"test-best-span": 1},
        "the last token belongs to the span; right with one less",
    ),
    Variant(
        "the product",
        searched(value="start[i] * end[j]"),
        {"test-best-span": 1},
        "two scores below zero have a product above it; and the sum is asked for",
    ),
    Variant(
        "the mean of the two",
        searched(value="(start[i] + end[j]) / 2"),
        {"test-best-span": 0.5},
        "the same span, another score",
    ),
    Variant(
        "the score of the start",
        searched(given="(best[0], best[1], start[best[0]])"),
        {"test-best-span": 0.5},
        "the sum is asked for",
    ),
    Variant(
        "less for long spans",
        searched(value="start[i] + end[j] - 0.6 * (j - i)"),
        {"test-best-span": 1.5},
        "another rule: long spans lose to short ones",
    ),
    Variant(
        "the span counted from the context's first token",
        searched(given="(best[0] - int(np.argmax(inside)), best[1] - int(np.argmax(inside)), best[2])"),
        {"test-best-span": 3.5},
        "no span stands where it is said to",
    ),
    Variant(
        "the score first",
        searched(given="(best[2], best[0], best[1])"),
        {"test-best-span": 4},
        "another order than was asked for",
    ),
    Variant(
        "the end may stand right in front of the start",
        searched(may="inside[i] and inside[j] and -1 <= j - i < longest"),
        {"test-best-span": 1},
        "such a span has no token",
    ),
    Variant(
        "the twenty best starts and ends",
        body(
            "best-span",
            *MASKED,
            "starts, ends = np.argsort(s)[::-1][:20], np.argsort(e)[::-1][:20]",
            "spans = [(s[i] + e[j], i, j) for i in starts for j in ends if 0 <= j - i < longest]",
            "score, i, j = max(spans, default=(-np.inf, 0, 0))",
            "return i, j, score",
        ),
        {"test-best-span": 1},
        "none of these pairs need be a span, and the best span need not be among them",
    ),
    Variant(
        "scores overwritten outside the context",
        body(
            "best-span",
            "start[~inside], end[~inside] = -np.inf, -np.inf",
            "spans = [(start[i] + end[j], i, j) for i in range(len(start)) for j in range(i, len(end))]",
            "score, i, j = max(span for span in spans if span[2] - span[1] < longest)",
            "return i, j, score",
        ),
        {"test-best-span": 0.5},
        "the span is right, and the arguments are changed; the system is tried again with a right best_span",
    ),
]


def shared(*lines: str, given="said.mean(), said[empty == 0].mean(), said[empty == 1].mean()") -> dict:
    """scores_at with these lines and this result, and a choice of the threshold that calls it."""
    return body("scores-at", *lines, f"return {given}") | body(
        "choose-threshold",
        "return max([-np.inf, *margins], key=lambda t: scores_at(margins, answered, empty, t)[0])",
    )


SILENT = [
    Variant(
        "silent where the margin is low",
        body(
            "scores-at",
            "said = np.where(margins >= threshold, answered, empty)",
            "return said.mean(), said[empty == 0].mean(), said[empty == 1].mean()",
        ),
        {"test-scores-at": 0.5},
        "right with the signs of margins and threshold turned",
    ),
    Variant(
        "an equal margin is not answered",
        body(
            "scores-at",
            "said = np.where(margins < threshold, answered, empty)",
            "return said.mean(), said[empty == 0].mean(), said[empty == 1].mean()",
        ),
        {"test-scores-at": 0.5},
        "greater than the threshold is asked for",
    ),
    Variant(
        "0 where nothing is said",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, 0)",
            "return said.mean(), said[empty == 0].mean(), said[empty == 1].mean()",
        ),
        {"test-scores-at": 1.5},
        "silence is right where there is no answer: in the mean of these, of all, and without limit",
    ),
    Variant(
        "1 where nothing is said",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, 1)",
            "return said.mean(), said[empty == 0].mean(), said[empty == 1].mean()",
        ),
        {"test-scores-at": 1.5},
        "silence is wrong where there is an answer",
    ),
    Variant(
        "with and without an answer swapped",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, empty)",
            "return said.mean(), said[empty == 1].mean(), said[empty == 0].mean()",
        ),
        {"test-scores-at": 1},
        "both of the parts",
    ),
    Variant(
        "the kinds by what was said",
        body(
            "scores-at",
            "said, spoke = np.where(margins <= threshold, answered, empty), margins <= threshold",
            "mean = lambda part: part.mean() if part.size else 0.0",
            "return said.mean(), mean(said[spoke]), mean(said[~spoke])",
        ),
        {"test-scores-at": 1},
        "those that have an answer, not those that were given one",
    ),
    Variant(
        "an answer is there where the best span is right",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, empty)",
            "return said.mean(), said[answered > 0].mean(), said[answered == 0].mean()",
        ),
        {"test-scores-at": 1},
        "a wrong answer to a question that has one counts among those without",
    ),
    Variant(
        "shares of all questions",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, empty)",
            "n = len(said)",
            "return said.mean(), said[empty == 0].sum() / n, said[empty == 1].sum() / n",
        ),
        {"test-scores-at": 1},
        "each mean is over its own kind",
    ),
    Variant(
        "the mean of the two means",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, empty)",
            "known, unknown = said[empty == 0].mean(), said[empty == 1].mean()",
            "return (known + unknown) / 2, known, unknown",
        ),
        {"test-scores-at": 1},
        "there are more questions of one kind; at every threshold",
    ),
    Variant(
        "sums",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, empty)",
            "return said.sum(), said[empty == 0].sum(), said[empty == 1].sum()",
        ),
        {"test-scores-at": 2},
        "nothing is a mean",
    ),
    Variant(
        "right or wrong, no F1",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered == 1, empty)",
            "return said.mean(), said[empty == 0].mean(), said[empty == 1].mean()",
        ),
        {"test-scores-at": 1.5},
        "what is partly right counts for nothing",
    ),
    Variant(
        "means of three digits",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, empty)",
            "return [round(float(part.mean()), 3) for part in (said, said[empty == 0], said[empty == 1])]",
        ),
        {"test-scores-at": 0.5},
        "nothing is said of rounding",
    ),
    Variant(
        "means without a return",
        body(
            "scores-at",
            "said = np.where(margins <= threshold, answered, empty)",
            "said.mean(), said[empty == 0].mean(), said[empty == 1].mean()",
        ),
        {"test-scores-at": 2},
        "nothing is returned",
    ),
    Variant(
        "the mean of all questions alone",
        body("scores-at", "return np.where(margins <= threshold, answered, empty).mean()"),
        {"test-scores-at": 2},
        "one number, where three are asked for",
    ),
    Variant(
        "F1 overwritten where nothing is said",
        body(
            "scores-at",
            "answered[margins > threshold] = empty[margins > threshold]",
            "return answered.mean(), answered[empty == 0].mean(), answered[empty == 1].mean()",
        ),
        {"test-scores-at": 0.5},
        "the means are right, and the argument is changed",
    ),
]

THRESHOLDS = [
    Variant(
        "silent where the margin is low, in the choice",
        body(
            "choose-threshold",
            "values = [-np.inf, *margins, np.inf]",
            "return max(values, key=lambda t: np.where(margins >= t, answered, empty).mean())",
        ),
        {"test-choose-threshold": 0.5},
        "right with the signs turned",
    ),
    Variant(
        "the best mean itself",
        body(
            "choose-threshold",
            "values = [-np.inf, *margins]",
            "return max(np.where(margins <= t, answered, empty).mean() for t in values)",
        ),
        {"test-choose-threshold": 2},
        "the threshold is asked for",
    ),
    Variant(
        "the number of the best margin",
        body(
            "choose-threshold",
            "return int(np.argmax([np.where(margins <= t, answered, empty).mean() for t in margins]))",
        ),
        {"test-choose-threshold": 2},
        "the margin is asked for, not its number",
    ),
    Variant(
        "zero",
        body("choose-threshold", "return 0.0"),
        {"test-choose-threshold": 2},
        "nothing is chosen",
    ),
    Variant(
        "the margins alone, so at least one is answered",
        body("choose-threshold", "return max(margins, key=lambda t: np.where(margins <= t, answered, empty).mean())"),
        {"test-choose-threshold": 0.5},
        "it may be best to answer none",
    ),
    Variant(
        "never all",
        body(
            "choose-threshold",
            "values = [-np.inf, *np.sort(margins)[:-1]]",
            "return max(values, key=lambda t: np.where(margins <= t, answered, empty).mean())",
        ),
        {"test-choose-threshold": 0.5},
        "it may be best to answer all",
    ),
    Variant(
        "never the lowest alone",
        body(
            "choose-threshold",
            "values = [-np.inf, *np.sort(margins)[1:]]",
            "return max(values, key=lambda t: np.where(margins <= t, answered, empty).mean())",
        ),
        {"test-choose-threshold": 0.5},
        "it may be best to answer one",
    ),
    Variant(
        "a grid from -10 to 10",
        body(
            "choose-threshold",
            "values = np.linspace(-10, 10, 201)",
            "return max(values, key=lambda t: np.where(margins <= t, answered, empty).mean())",
        ),
        {"test-choose-threshold": 1.5},
        "margins may be smaller than its steps, or lie beyond it",
    ),
    Variant(
        "a grid of a thousand from the lowest margin to the highest",
        body(
            "choose-threshold",
            "values = [-np.inf, *np.linspace(margins.min(), margins.max(), 1000)]",
            "return max(values, key=lambda t: np.where(margins <= t, answered, empty).mean())",
        ),
        {"test-choose-threshold": 0.5},
        "the best threshold may lie between two margins that are closer than its steps",
    ),
    Variant(
        "equal margins taken apart",
        body(
            "choose-threshold",
            "order = np.argsort(margins, kind='stable')",
            "steps = np.cumsum((answered - empty)[order])",
            "return margins[order][steps.argmax()] if steps.max() > 0 else -np.inf",
        ),
        {"test-choose-threshold": 0.5},
        "the best place in the sum stands between questions of one margin",
    ),
    Variant(
        "the best for those with an answer",
        body(
            "choose-threshold",
            "values, known = [-np.inf, *np.sort(margins)], empty == 0",
            "return max(values, key=lambda t: np.where(margins <= t, answered, empty)[known].mean())",
        ),
        {"test-choose-threshold": 1.5},
        "all are answered then; where none is right, the first of the thresholds is",
    ),
    Variant(
        "the mean of the two kinds",
        body(
            "choose-threshold",
            "def value(t):",
            "    said = np.where(margins <= t, answered, empty)",
            "    kinds = [said[empty == k].mean() for k in (0, 1) if (empty == k).any()]",
            "    return sum(kinds) / len(kinds)",
            "return max([-np.inf, *margins], key=value)",
        ),
        {"test-choose-threshold": 1.5},
        "there are more questions of one kind, also where margins are equal",
    ),
    Variant(
        "the lowest mean",
        body(
            "choose-threshold",
            "return min([-np.inf, *margins], key=lambda t: np.where(margins <= t, answered, empty).mean())",
        ),
        {"test-choose-threshold": 2},
        "the highest is asked for",
    ),
    Variant(
        "silence never counts",
        body(
            "choose-threshold",
            "return max([-np.inf, *margins], key=lambda t: np.where(margins <= t, answered, 0).mean())",
        ),
        {"test-choose-threshold": 1.5},
        "all are answered then; where none is right, the first of the thresholds is",
    ),
    Variant(
        "an equal margin is not answered, and the choice by this",
        shared("said = np.where(margins < threshold, answered, empty)"),
        {"test-scores-at": 0.5},
        "one mistake, charged once: the choice is tried again with a right scores_at",
    ),
    Variant(
        "silent where the margin is low, and the choice by this",
        shared("said = np.where(margins >= threshold, answered, empty)"),
        {"test-scores-at": 0.5},
        "one mistake, charged once",
    ),
    Variant(
        "the mean of all last, and the choice by the first",
        shared(
            "said = np.where(margins <= threshold, answered, empty)",
            given="said[empty == 0].mean(), said[empty == 1].mean(), said.mean()",
        ),
        {"test-scores-at": 2},
        "the three means in another order; the choice is tried again with a right scores_at",
    ),
    Variant(
        "no scores_at, and the choice by it",
        shared("raise NotImplementedError()"),
        {"test-scores-at": 2},
        "what is not written costs its own points",
    ),
    Variant(
        "sorted in place",
        body(
            "choose-threshold",
            "order = np.argsort(margins)",
            "margins[:], answered[:], empty[:] = margins[order], answered[order], empty[order]",
            "values = [-np.inf, *margins]",
            "return max(values, key=lambda t: np.where(margins <= t, answered, empty).mean())",
        ),
        {"test-choose-threshold": 0.5},
        "the threshold is right, and the arguments are changed",
    ),
    Variant(
        "what an answer gains, written over its F1",
        body(
            "choose-threshold",
            "answered -= empty",
            "values = [-np.inf, *margins]",
            "return max(values, key=lambda t: answered[margins <= t].sum())",
        ),
        {"test-choose-threshold": 0.5},
        "the threshold is right, and the argument is changed",
    ),
]


def system(
    *best: str,
    inside="offsets[:, 0] >= 0",
    limit="longest",
    text="context[offsets[i, 0] : offsets[j, 1]]",
    null="min(nulls)",
    result="text, null - score",
    more="score > top",
) -> dict:
    """The system, with another condition, limit, text, score of no answer, result or comparison of windows."""
    return body(
        "find-answer",
        "top, said, nulls = -np.inf, '', []",
        "for number, window in enumerate(windows):",
        "    start, end, offsets = window['start'], window['end'], window['offsets']",
        f"    i, j, value = best_span(start, end, {inside}, {limit})",
        "    nulls.append(start[0] + end[0])",
        f"    if {more.replace('score', 'value')}:",
        f"        top, said, where = value, {text}, number",
        f"text, score, null = said, top, {null}",
        f"return {result}",
    )


SYSTEM = [
    Variant(
        "the best span minus no answer",
        system(result="text, score - null"),
        {"test-find-answer": 0.5},
        "right with the other sign",
    ),
    Variant(
        "the last token left out of the text",
        system(text="context[offsets[i, 0] : offsets[j, 0]]"),
        {"test-find-answer": 2},
        "every text",
    ),
    Variant(
        "a character too few",
        system(text="context[offsets[i, 0] : offsets[j, 1] - 1]"),
        {"test-find-answer": 1},
        "every text, where it is compared letter for letter; the span is right",
    ),
    Variant(
        "a character too many",
        system(text="context[offsets[i, 0] : offsets[j, 1] + 1]"),
        {"test-find-answer": 1},
        "every text, where it is compared letter for letter; the span is right",
    ),
    Variant(
        "positions for characters",
        system(text="context[i : j + 1]"),
        {"test-find-answer": 2},
        "every text",
    ),
    Variant(
        "tokens put together with spaces",
        system(text="' '.join(context[p:q] for p, q in offsets[i : j + 1])"),
        {"test-find-answer": 1},
        "parts of words stand apart, and the spaces of the context are lost; the span is right",
    ),
    Variant(
        "in small letters",
        system(text="context[offsets[i, 0] : offsets[j, 1]].lower()"),
        {"test-find-answer": 1},
        "every text, where it is compared letter for letter; SQuAD's measure would forgive it, a reader would not",
    ),
    Variant(
        "the first window alone",
        system(more="number == 0", null="nulls[0]"),
        {"test-find-answer": 1.5},
        "the others are not read, also for the length and for no answer",
    ),
    Variant(
        "the last window's answer",
        system(more="True"),
        {"test-find-answer": 1.5},
        "the best of all windows counts, in the text and in the margin",
    ),
    Variant(
        "the first answer above no answer",
        system(more="top == -np.inf and score > nulls[-1]"),
        {"test-find-answer": 2},
        "the best of all windows counts, in the text and in the margin, and where no answer scores more",
    ),
    Variant(
        "the text of the window that believes most in its span",
        body(
            "find-answer",
            "top, nulls, spans = -np.inf, [], []",
            "for window in windows:",
            "    start, end, offsets = window['start'], window['end'], window['offsets']",
            "    i, j, value = best_span(start, end, offsets[:, 0] >= 0, longest)",
            "    nulls.append(start[0] + end[0])",
            "    spans.append(value)",
            "    if value - nulls[-1] > top:",
            "        top, text = value - nulls[-1], context[offsets[i, 0] : offsets[j, 1]]",
            "return text, min(nulls) - max(spans)",
        ),
        {"test-find-answer": 0.5},
        "the score of the span alone counts",
    ),
    Variant(
        "the windows in a row",
        body(
            "find-answer",
            "start, end, offsets = (np.concatenate([w[k] for w in windows]) for k in ('start', 'end', 'offsets'))",
            "i, j, value = best_span(start, end, offsets[:, 0] >= 0, longest)",
            "null = min(w['start'][0] + w['end'][0] for w in windows)",
            "return context[offsets[i, 0] : offsets[j, 1]], null - value",
        ),
        {"test-find-answer": 0.5},
        "a span from one window to the next is none",
    ),
    Variant(
        "the highest scores of each token in all windows",
        body(
            "find-answer",
            "start, end = {}, {}",
            "for w in windows:",
            "    for one, two, (p, q) in zip(w['start'], w['end'], w['offsets'].tolist()):",
            "        start[p, q], end[p, q] = max(one, start.get((p, q), one)), max(two, end.get((p, q), two))",
            "places = [place for place in sorted(start) if place[0] >= 0]",
            "one, two = (np.array([kept[place] for place in places]) for kept in (start, end))",
            "i, j, value = best_span(one, two, np.ones(len(places), dtype=bool), longest)",
            "null = min(w['start'][0] + w['end'][0] for w in windows)",
            "return context[places[i][0] : places[j][1]], null - value",
        ),
        {"test-find-answer": 0.5},
        "a span has both its scores from one window",
    ),
    Variant(
        "no answer: the highest",
        system(null="max(nulls)"),
        {"test-find-answer": 0.5},
        "one window that says that there is an answer is enough",
    ),
    Variant(
        "no answer: of the window with the best span",
        system(null="nulls[where]"),
        {"test-find-answer": 0.5},
        "the lowest of all windows counts",
    ),
    Variant(
        "no answer: of the first window",
        system(null="nulls[0]"),
        {"test-find-answer": 0.5},
        "the lowest of all windows counts",
    ),
    Variant(
        "no answer: the mean",
        system(null="np.mean(nulls)"),
        {"test-find-answer": 0.5},
        "the lowest of all windows counts",
    ),
    Variant(
        "no answer: the start's score alone",
        system(null="min(window['start'][0] for window in windows)"),
        {"test-find-answer": 1},
        "start and end, in one window and in several",
    ),
    Variant(
        "no answer alone as the margin",
        system(result="text, null"),
        {"test-find-answer": 1},
        "less the score of the best span, in one window and in several",
    ),
    Variant(
        "the question counts as context",
        system(inside="np.arange(len(start)) > 0"),
        {"test-find-answer": 0.5},
        "high scores in the question are taken",
    ),
    Variant(
        "the context's first token left out",
        system(inside="offsets[:, 0] > 0"),
        {"test-find-answer": 0.5},
        "its offset is 0",
    ),
    Variant("no limit of the length", system(limit="len(start)"), {"test-find-answer": 0.5}, "three tokens at most"),
    Variant(
        "empty where no answer scores more",
        system(result="(text if null <= score else ''), null - score"),
        {"test-find-answer": 0.5},
        "the threshold is for later; the best span is asked for",
    ),
    Variant(
        "the best begun with 0",
        body(
            "find-answer",
            "top, said, nulls = 0, '', []",
            "for window in windows:",
            "    i, j, value = best_span(window['start'], window['end'], window['offsets'][:, 0] >= 0, longest)",
            "    nulls.append(window['start'][0] + window['end'][0])",
            "    if value > top:",
            "        top, said = value, context[window['offsets'][i, 0] : window['offsets'][j, 1]]",
            "return said, min(nulls) - top",
        ),
        {"test-find-answer": 0.5},
        "the best span may have a score below zero",
    ),
    Variant(
        "no answer: the lowest start and the lowest end",
        system(null="min(w['start'][0] for w in windows) + min(w['end'][0] for w in windows)"),
        {"test-find-answer": 0.5},
        "they may be those of two windows",
    ),
    Variant(
        "no answer: of the window with the lowest start",
        system(null="sum(min((w['start'][0], w['end'][0]) for w in windows))"),
        {"test-find-answer": 0.5},
        "the lowest sum counts",
    ),
    Variant(
        "a margin of 0 at most",
        system(result="text, min(null - score, 0)"),
        {"test-find-answer": 0.5},
        "no answer may score more than the best span",
    ),
    Variant(
        "windows overwritten outside the context",
        body(
            "find-answer",
            "null = min(window['start'][0] + window['end'][0] for window in windows)",
            "top, said = -np.inf, ''",
            "for window in windows:",
            "    inside = window['offsets'][:, 0] >= 0",
            "    window['start'][~inside] = window['end'][~inside] = -np.inf",
            "    i, j, value = best_span(window['start'], window['end'], inside, longest)",
            "    if value > top:",
            "        top, said = value, context[window['offsets'][i, 0] : window['offsets'][j, 1]]",
            "return said, null - top",
        ),
        {"test-find-answer": 0.5},
        "text and margin are right, and the argument is changed",
    ),
    Variant(
        "the best span kept in its window",
        body(
            "find-answer",
            "for window in windows:",
            "    inside = window['offsets'][:, 0] >= 0",
            "    window['span'] = best_span(window['start'], window['end'], inside, longest)",
            "best = max(windows, key=lambda window: window['span'][2])",
            "i, j, value = best['span']",
            "text = context[best['offsets'][i, 0] : best['offsets'][j, 1]]",
            "return text, min(window['start'][0] + window['end'][0] for window in windows) - value",
        ),
        {"test-find-answer": 0.5},
        "text and margin are right, and the argument is changed",
    ),
    Variant(
        "windows taken off their list",
        body(
            "find-answer",
            "top, said, null = -np.inf, '', np.inf",
            "while windows:",
            "    window = windows.pop(0)",
            "    offsets = window['offsets']",
            "    i, j, value = best_span(window['start'], window['end'], offsets[:, 0] >= 0, longest)",
            "    null = min(null, window['start'][0] + window['end'][0])",
            "    if value > top:",
            "        top, said = value, context[offsets[i, 0] : offsets[j, 1]]",
            "return said, null - top",
        ),
        {"test-find-answer": 0.5},
        "text and margin are right, and the argument is changed",
    ),
]

VARIANTS = SPANS + SILENT + THRESHOLDS + SYSTEM
