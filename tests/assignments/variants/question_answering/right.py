"""Right solutions in other styles. None may lose a point."""

from tests.assignments.variants import Variant
from tests.assignments.variants.question_answering.changed import body, measures

VARIANTS = [
    Variant("the reference", {}),
    Variant(
        "as the official script of SQuAD writes it",
        {
            "normalise": """
            def normalise(text):
                def remove_articles(text):
                    return re.sub(re.compile(r"\\b(a|an|the)\\b", re.UNICODE), " ", text)
                def remove_punctuation(text):
                    exclude = set(string.punctuation)
                    return "".join(ch for ch in text if ch not in exclude)
                return remove_articles(remove_punctuation(text.lower())).split()
            """,
            "measures": """
            def compute_exact(a_gold, a_pred):
                return int(normalise(a_gold) == normalise(a_pred))

            def compute_f1(a_gold, a_pred):
                gold_toks = normalise(a_gold)
                pred_toks = normalise(a_pred)
                common = Counter(gold_toks) & Counter(pred_toks)
                num_same = sum(common.values())
                if len(gold_toks) == 0 or len(pred_toks) == 0:
                    return int(gold_toks == pred_toks)
                if num_same == 0:
                    return 0
                precision = 1.0 * num_same / len(pred_toks)
                recall = 1.0 * num_same / len(gold_toks)
                return (2 * precision * recall) / (precision + recall)

            def exact_match(said, answers):
                return max(compute_exact(a, said) for a in (answers if len(answers) else [""]))

            def f1(said, answers):
                return max(compute_f1(a, said) for a in (answers if len(answers) else [""]))
            """,
        },
    ),
    Variant(
        "a table of characters, sorted lists, loops",
        {
            "normalise": """
            def normalise(text):
                words = text.translate(str.maketrans("", "", string.punctuation)).lower().split()
                while any(article in words for article in ("a", "an", "the")):
                    for article in ("a", "an", "the"):
                        if article in words:
                            words.remove(article)
                return words
            """,
            "measures": """
            def exact_match(said, answers):
                score = 0
                if len(answers) == 0:
                    return 1 if normalise(said) == [] else 0
                for answer in answers:
                    if " ".join(normalise(answer)) == " ".join(normalise(said)):
                        score = 1
                return score

            def f1(said, answers):
                score = 0
                if len(answers) == 0:
                    return 1 if normalise(said) == [] else 0
                for answer in answers:
                    ours, left = normalise(said), normalise(answer)
                    m, n, common = len(ours), len(left), 0
                    for word in ours:
                        if word in left:
                            left.remove(word)
                            common += 1
                    if common > 0:
                        score = max(score, 2 * common / (m + n))
                return score
            """,
        },
    ),
    Variant(
        "words of NumPy, windows in a tuple, the question's length of the first window",
        {
            "normalise": """
            def normalise(text):
                kept = "".join(c for c in text.lower() if c not in string.punctuation)
                words = np.array(kept.split(), dtype=str)
                return list(words[~np.isin(words, ["a", "an", "the"])])
            """,
            "windows": """
            from dataclasses import astuple, dataclass

            @dataclass
            class check:
                ids: list
                segments: list
                places: list

            def windows(question, context, max_len, stride):
                lead = len(question) + 2
                room = max_len - lead - 1
                if room <= stride:
                    raise ValueError("no room")
                found = []
                for begin in range(0, max(1, len(context) - stride), room - stride):
                    piece = context[begin : begin + room]
                    segments = np.zeros(lead + len(piece) + 1, dtype=np.uint8)
                    segments[lead:] = 1
                    places = np.full(lead + len(piece) + 1, -1)
                    places[lead:-1] = np.arange(begin, begin + len(piece))
                    found.append(astuple(check([CLS, *question, SEP, *piece, SEP], segments, list(places))))
                return tuple(found)
            """,
            "find-answer": """
            def find_answer(context, windows, longest):
                lead = int(np.argmax(windows[0]["offsets"][:, 0] >= 0))
                text, best, null = "", -np.inf, np.inf
                for w in windows:
                    inside = np.zeros(len(w["start"]), dtype=bool)
                    inside[lead:-1] = True
                    i, j, score = best_span(w["start"], w["end"], inside, longest)
                    if score > best:
                        best, text = score, context[w["offsets"][i, 0] : w["offsets"][j, 1]]
                    null = min(null, w["start"][0] + w["end"][0])
                return text, null - best
            """,
        },
    ),
    Variant(
        "words translated by NumPy, words of a class of their own in the measures",
        {
            "normalise": """
            def normalise(text):
                words = np.char.lower(np.array(text.split() or [""]))
                words = np.char.translate(words, str.maketrans("", "", string.punctuation))
                class Word(str):
                    pass
                return [Word(w) for w in words if w and w not in ["a", "an", "the"]]
            """,
        },
    ),
    Variant(
        "loops over tokens",
        {
            "answer-tokens": """
            def answer_tokens(offsets, answer):
                if answer is None:
                    return (0, 0)
                first = last = None
                for t, (low, high) in enumerate(offsets.tolist()):
                    if low == -1:
                        continue
                    if low <= answer[0] < high:
                        first = t
                    if low <= answer[1] - 1 < high:
                        last = t
                if first is None or last is None:
                    return (0, 0)
                return first, last
            """,
            "windows": """
            def windows(question, context, max_len, stride):
                heads = [CLS] + list(question) + [SEP]
                room = max_len - len(heads) - 1
                if not room > stride:
                    raise ValueError(f"room for {room} tokens, of which {stride} are shared")
                result, begin = [], 0
                while True:
                    stop = min(begin + room, len(context))
                    ids, segments, places = list(heads), [0 for _ in heads], [-1 for _ in heads]
                    for i in range(begin, stop):
                        ids.append(context[i]); segments.append(1); places.append(i)
                    ids.append(SEP); segments.append(1); places.append(-1)
                    result.append((ids, segments, places))
                    if stop == len(context):
                        return result
                    begin = stop - stride
            """,
            "best-span": """
            def best_span(start, end, inside, longest):
                best, score = None, float("-inf")
                for i in range(len(start)):
                    if not inside[i]:
                        continue
                    for j in range(i, len(end)):
                        if j - i + 1 > longest or not inside[j]:
                            break
                        if start[i] + end[j] > score:
                            best, score = (i, j), start[i] + end[j]
                return [best[0], best[1], score]
            """,
            "scores-at": """
            def scores_at(margins, answered, empty, threshold):
                every, known, unknown = [], [], []
                for margin, best, nothing in zip(margins, answered, empty):
                    score = nothing if margin > threshold else best
                    every.append(score)
                    (unknown if nothing else known).append(score)
                return tuple(sum(scores) / len(scores) for scores in (every, known, unknown))
            """,
            "find-answer": """
            def find_answer(context, windows, longest):
                found, nulls = [], []
                for window in windows:
                    mask = [bool(low >= 0) for low, _ in window["offsets"]]
                    i, j, score = best_span(window["start"], window["end"], np.array(mask), longest)
                    found.append((float(score), int(window["offsets"][i][0]), int(window["offsets"][j][1])))
                    nulls.append(float(window["start"][0]) + float(window["end"][0]))
                found.sort()
                score, low, high = found[-1]
                return [context[low:high], min(nulls) - score]
            """,
        },
    ),
    Variant(
        "searchsorted, arrays instead of lists",
        {
            "answer-tokens": """
            def answer_tokens(offsets, answer):
                own = np.flatnonzero(offsets[:, 0] >= 0)
                if answer is None or answer[0] < offsets[own[0], 0] or answer[1] > offsets[own[-1], 1]:
                    return np.array([0, 0])
                first = np.searchsorted(offsets[own, 0], answer[0], side="right") - 1
                last = np.searchsorted(offsets[own, 1], answer[1], side="left")
                return own[[first, last]]
            """,
            "windows": """
            def windows(question, context, max_len, stride):
                question, context = np.asarray(question), np.asarray(context)
                room = max_len - question.size - 3
                if room <= stride:
                    raise ValueError
                count = max(1, int(np.ceil((context.size - stride) / (room - stride))))
                found = []
                for start in np.arange(count) * (room - stride):
                    places = np.arange(start, min(start + room, context.size), dtype=np.int32)
                    around = np.full(question.size + 2, -1)
                    ids = np.concatenate([[CLS], question, [SEP], context[places], [SEP]])
                    segments = np.repeat([0, 1], [around.size, places.size + 1]).astype(np.int8)
                    found.append([ids, segments, np.concatenate([around, places, [-1]])])
                return found
            """,
            "choose-threshold": """
            def choose_threshold(margins, answered, empty):
                order = np.argsort(margins)
                steps = np.cumsum((answered - empty)[order])
                last = np.append(np.diff(margins[order]) > 0, True)
                steps, ends = steps[last], margins[order][last]
                return ends[steps.argmax()] if steps.max() > 0 else -np.inf
            """,
        },
    ),
    Variant(
        "masked arrays",
        body(
            "best-span",
            "score = np.ma.masked_array(start[:, None] + end[None, :])",
            "apart = np.arange(len(end))[None, :] - np.arange(len(start))[:, None]",
            "score.mask = (apart < 0) | (apart >= longest) | ~inside[:, None] | ~inside[None, :]",
            "first, last = np.unravel_index(score.argmax(), score.shape)",
            "return first, last, score.max()",
        ),
    ),
    Variant(
        "a triangle, minus infinity, float32",
        body(
            "best-span",
            "pairs = np.add.outer(start, end).astype(np.float32)",
            "heads = np.tril(np.triu(np.ones(pairs.shape, dtype=bool)), longest - 1)",
            "mask = heads & inside[:, None] & inside",
            "pairs[~mask] = -np.inf",
            "i, j = divmod(int(pairs.argmax()), len(end))",
            "return i, j, pairs[i, j]",
        ),
    ),
    Variant(
        "the best start so far, in one pass",
        {
            "best-span": """
            def best_span(start, end, inside, longest):
                from collections import deque
                heads, best = deque(), (0, 0, -np.inf)
                for j in np.flatnonzero(inside):
                    while heads and start[heads[-1]] <= start[j]:
                        heads.pop()
                    heads.append(j)
                    while j - heads[0] >= longest:
                        heads.popleft()
                    score = start[heads[0]] + end[j]
                    if score > best[2]:
                        best = (heads[0], j, score)
                return best
            """,
        },
    ),
    Variant(
        "all spans in order, the first one that may be",
        {
            "best-span": """
            def best_span(start, end, inside, longest):
                s, e = np.where(inside, start, -1e30), np.where(inside, end, -1e30)
                for flat in np.argsort(-(s[:, None] + e), axis=None, kind="stable"):
                    i, j = divmod(int(flat), len(e))
                    if i <= j < i + longest:
                        return i, j, start[i] + end[j]
            """,
            "find-answer": """
            def find_answer(context, windows, longest):
                spans = []
                for number, w in enumerate(windows):
                    spans.append((*best_span(w["start"], w["end"], (w["offsets"] >= 0).all(axis=1), longest), number))
                i, j, score, number = max(spans, key=lambda span: span[2])
                offsets = windows[number]["offsets"]
                null = np.min([w["start"][0] + w["end"][0] for w in windows])
                return context[slice(offsets[i][0], offsets[j][1])], np.float32(null - score)
            """,
        },
    ),
    Variant(
        "thresholds between the margins",
        {
            "choose-threshold": """
            def choose_threshold(margins, answered, empty):
                heads = np.unique(margins)
                cuts = np.concatenate([[heads[0] - 1], (heads[1:] + heads[:-1]) / 2, [np.inf]])
                means = (np.where(margins[:, None] <= cuts, answered[:, None], empty[:, None])).mean(axis=0)
                return float(cuts[means.argmax()])
            """,
            "scores-at": """
            def scores_at(margins, answered, empty, threshold):
                keep = (margins <= threshold).astype(float)
                score = keep * answered + (1 - keep) * empty
                mask = empty.astype(bool)
                return np.array([score.mean(), np.average(score, weights=~mask), np.average(score, weights=mask)])
            """,
        },
    ),
    Variant(
        "sums in the place of means, the last of the best thresholds",
        {
            "choose-threshold": """
            def choose_threshold(margins, answered, empty):
                thresholds = [float("-inf"), *sorted(map(float, margins))]
                mean = {t: sum(np.where(margins <= t, answered, empty).tolist()) for t in thresholds}
                return max(reversed(thresholds), key=mean.get)
            """,
        },
    ),
    Variant(
        "the threshold by the student's own scores_at, in plain Python",
        {
            "scores-at": """
            def scores_at(margins, answered, empty, threshold):
                f = [e if m > threshold else a for m, a, e in zip(margins, answered, empty)]
                have = [x for x, e in zip(f, empty) if e == 0]
                none = [x for x, e in zip(f, empty) if e == 1]
                return sum(f) / len(f), sum(have) / len(have), sum(none) / len(none)
            """,
            "choose-threshold": """
            def choose_threshold(margins, answered, empty):
                return max([float("-inf"), *margins], key=lambda t: scores_at(margins, answered, empty, t)[0])
            """,
        },
    ),
    Variant(
        "one window wherever the context fits, and no error there",
        body(
            "windows",
            "room = max_len - len(question) - 3",
            "if len(context) > room and room <= stride:",
            "    raise ValueError('no room')",
            "found, i, lead = [], 0, len(question) + 2",
            "while True:",
            "    piece = context[i : i + room]",
            "    places = [-1] * lead + list(range(i, i + len(piece))) + [-1]",
            "    segments = [0] * lead + [1] * (len(piece) + 1)",
            "    found.append(([CLS, *question, SEP, *piece, SEP], segments, places))",
            "    if i + room >= len(context):",
            "        return found",
            "    i += room - stride",
        ),
    ),
    Variant(
        "prints, warns, and writes from a thread",
        {
            "find-answer": """
            import sys, threading, time, warnings

            def _chatter():
                for _ in range(20):
                    print("still here", file=sys.stderr)
                    time.sleep(0.01)

            threading.Thread(target=_chatter, daemon=True).start()

            def find_answer(context, windows, longest):
                print("windows:", len(windows))
                warnings.warn("scores may be equal")
                best, null = ("", -np.inf), np.inf
                for window in windows:
                    inside = window["offsets"][:, 1] > 0
                    first, last, score = best_span(window["start"], window["end"], inside, longest)
                    low, high = window["offsets"][first, 0], window["offsets"][last, 1]
                    best = max(best, (context[low:high], score), key=lambda pair: pair[1])
                    null = min(null, window["start"][0] + window["end"][0])
                return best[0], null - best[1]
            """,
        },
    ),
    Variant(
        "helpers called check, expect, score, heads, mask, test and hidden_tests",
        {
            "normalise": """
            mask = str.maketrans({mark: None for mark in string.punctuation})
            heads = frozenset({"a", "an", "the"})
            def score(text):
                return text.lower().translate(mask)
            def hidden_words(text):
                return [word for word in score(text).split() if word not in heads]
            def check(text):
                return hidden_words(text)
            expect, test, found, compared, as_array, expect_array, expect_unchanged, hidden_tests = [None] * 8
            def normalise(text):
                return tuple(check(text))
            """,
        }
        | measures(
            (
                "texts = [normalise(text) for text in (answers or [''])]",
                "return bool(normalise(said) in texts)",
            ),
            (
                "scores = []",
                "for text in answers or ['']:",
                "    a, b = sorted(normalise(said)), sorted(normalise(text))",
                "    c = sum(min(a.count(word), b.count(word)) for word in set(a))",
                "    with np.errstate(divide='raise', invalid='raise'):",
                "        p, r = (c / len(a) if a else 0.0), (c / len(b) if b else 0.0)",
                "        scores.append(np.float32(a == b) if p + r == 0 else 2 * p * r / (p + r))",
                "return np.max(scores)",
            ),
        ),
    ),
]
