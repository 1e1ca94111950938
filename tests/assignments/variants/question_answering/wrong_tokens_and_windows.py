"""Wrong solutions of parts 2 and 3: the tokens of an answer, and windows."""

from tests.assignments.variants import Variant
from tests.assignments.variants.question_answering.changed import body

NONE = ("if answer is None:", "    return 0, 0", "p, q = answer")
BEGINS = "begins = np.flatnonzero((offsets[:, 0] <= p) & (p < offsets[:, 1]))"
ENDS = "ends = np.flatnonzero((offsets[:, 0] < q) & (q <= offsets[:, 1]))"
BOTH = ("if not len(begins) or not len(ends):", "    return 0, 0")

TOKENS = [
    Variant(
        "the token after the last",
        body("answer-tokens", *NONE, BEGINS, ENDS, *BOTH, "return begins[0], ends[0] + 1"),
        {"test-answer-tokens": 1},
        "right with one less",
    ),
    Variant(
        "counted from the context's first token",
        body(
            "answer-tokens",
            *NONE,
            BEGINS,
            ENDS,
            *BOTH,
            "first = np.argmax(offsets[:, 0] >= 0)",
            "return begins[0] - first, ends[0] - first",
        ),
        {"test-answer-tokens": 2.5},
        "no answer that is there has the right tokens",
    ),
    Variant(
        "characters returned",
        body("answer-tokens", *NONE, BEGINS, ENDS, *BOTH, "return p, q"),
        {"test-answer-tokens": 2.5},
        "no answer that is there has the right tokens",
    ),
    Variant(
        "the beginning must be that of a token",
        body(
            "answer-tokens",
            *NONE,
            "begins = np.flatnonzero(offsets[:, 0] == p)",
            ENDS,
            *BOTH,
            "return begins[0], ends[0]",
        ),
        {"test-answer-tokens": 0.5},
        "answers that begin inside a token are not found",
    ),
    Variant(
        "the end must be that of a token",
        body(
            "answer-tokens",
            *NONE,
            BEGINS,
            "ends = np.flatnonzero(offsets[:, 1] == q)",
            *BOTH,
            "return begins[0], ends[0]",
        ),
        {"test-answer-tokens": 0.5},
        "answers that end inside a token are not found",
    ),
    Variant(
        "both must be those of a token",
        body(
            "answer-tokens",
            *NONE,
            "begins = np.flatnonzero(offsets[:, 0] == p)",
            "ends = np.flatnonzero(offsets[:, 1] == q)",
            *BOTH,
            "return begins[0], ends[0]",
        ),
        {"test-answer-tokens": 1},
        "answers that begin or end inside a token are not found",
    ),
    Variant(
        "only tokens that stand whole in the answer",
        body(
            "answer-tokens",
            *NONE,
            "if p < offsets[offsets[:, 0] >= 0][0, 0] or q > offsets[:, 1].max():",
            "    return 0, 0",
            "found = np.flatnonzero((offsets[:, 0] >= p) & (offsets[:, 1] <= q))",
            "return (found[0], found[-1]) if len(found) else (0, 0)",
        ),
        {"test-answer-tokens": 1},
        "the tokens at both ends are lost where the answer begins or ends inside them",
    ),
    Variant(
        "tokens that begin or end in the answer",
        body(
            "answer-tokens",
            *NONE,
            "found = [t for t, (a, b) in enumerate(offsets) if p <= a < q or p < b <= q]",
            "if not found or offsets[found[0], 0] > p or offsets[found[-1], 1] < q:",
            "    return 0, 0",
            "return found[0], found[-1]",
        ),
        {"test-answer-tokens": 0.5},
        "a token that reaches beyond both ends of it does neither",
    ),
    Variant(
        "no answer where it begins with the text",
        body(
            "answer-tokens",
            "if not answer or not answer[0]:",
            "    return 0, 0",
            "p, q = answer",
            BEGINS,
            ENDS,
            *BOTH,
            "return begins[0], ends[0]",
        ),
        {"test-answer-tokens": 0.5},
        "0 is a character as others are",
    ),
    Variant(
        "an end that belongs to the next token",
        body(
            "answer-tokens",
            *NONE,
            BEGINS,
            "ends = np.flatnonzero((offsets[:, 0] <= q) & (q < offsets[:, 1]))",
            *BOTH,
            "return begins[0], ends[0]",
        ),
        {"test-answer-tokens": 2},
        "q is the character after the last: whole tokens end where the next one begins, or a space",
    ),
    Variant(
        "a beginning that belongs to the token before",
        body(
            "answer-tokens",
            *NONE,
            "begins = np.flatnonzero((offsets[:, 0] <= p) & (p <= offsets[:, 1]))",
            ENDS,
            *BOTH,
            "return begins[0], ends[0]",
        ),
        {"test-answer-tokens": 2},
        "where two tokens touch, the first of them is taken as well",
    ),
    Variant(
        "the part of the answer that the window has",
        body(
            "answer-tokens",
            *NONE,
            "found = np.flatnonzero((offsets[:, 0] < q) & (offsets[:, 1] > p))",
            "return (found[0], found[-1]) if len(found) else (0, 0)",
        ),
        {"test-answer-tokens": 1.5},
        "an answer that the window cuts is labelled, at either end and at both",
    ),
    Variant(
        "cut at its end, taken to the last token",
        body(
            "answer-tokens",
            *NONE,
            BEGINS,
            ENDS,
            "if not len(begins):",
            "    return 0, 0",
            "return begins[0], ends[0] if len(ends) else len(offsets) - 2",
        ),
        {"test-answer-tokens": 0.5},
        "a window that cuts it does not hold it",
    ),
    Variant(
        "cut at its beginning, taken from the first token",
        body(
            "answer-tokens",
            *NONE,
            BEGINS,
            ENDS,
            "if not len(ends):",
            "    return 0, 0",
            "return begins[0] if len(begins) else np.argmax(offsets[:, 0] >= 0), ends[0]",
        ),
        {"test-answer-tokens": 0.5},
        "a window that cuts it does not hold it",
    ),
    Variant(
        "an error where the answer is elsewhere",
        body("answer-tokens", *NONE, BEGINS, ENDS, "return begins[0], ends[0]"),
        {"test-answer-tokens": 1.5},
        "cut at either end, or not there",
    ),
    Variant(
        "an error where there is no answer",
        body("answer-tokens", "p, q = answer", BEGINS, ENDS, *BOTH, "return begins[0], ends[0]"),
        {"test-answer-tokens": 0.5},
        "None cannot be taken apart",
    ),
    Variant(
        "-1 for no answer",
        body(
            "answer-tokens",
            "if answer is None:",
            "    return -1, -1",
            "p, q = answer",
            BEGINS,
            ENDS,
            "if not len(begins) or not len(ends):",
            "    return -1, -1",
            "return begins[0], ends[0]",
        ),
        {"test-answer-tokens": 1.5},
        "the label is [CLS], 0",
    ),
    Variant(
        "the number of tokens as the second",
        body("answer-tokens", *NONE, BEGINS, ENDS, *BOTH, "return begins[0], ends[0] - begins[0] + 1"),
        {"test-answer-tokens": 2.5},
        "the last token is asked for",
    ),
    Variant(
        "the first token twice",
        body("answer-tokens", *NONE, BEGINS, ENDS, *BOTH, "return begins[0], begins[0]"),
        {"test-answer-tokens": 2},
        "right for one token",
    ),
    Variant(
        "offsets overwritten outside the context",
        body("answer-tokens", *NONE, "offsets[offsets < 0] = 10**6", BEGINS, ENDS, *BOTH, "return begins[0], ends[0]"),
        {"test-answer-tokens": 0.5},
        "the tokens are right, and the argument is changed",
    ),
]

ROOM = ("room = max_len - len(question) - 3", "if room <= stride:", "    raise ValueError('no room')")


def cut(*lines: str, starts="range(0, max(len(context) - stride, 1), room - stride)", room=ROOM, **parts) -> dict:
    """Windows, with another room, other starts or other parts of a window."""
    ids = parts.get("ids", "[CLS, *question, SEP, *piece, SEP]")
    segments = parts.get("segments", "[0] * (len(question) + 2) + [1] * (len(piece) + 1)")
    places = parts.get("places", "[-1] * (len(question) + 2) + list(range(i, i + len(piece))) + [-1]")
    return body(
        "windows",
        *room,
        "found = []",
        f"for i in {starts}:",
        "    piece = context[i : i + room]",
        *(f"    {line}" for line in lines),
        f"    found.append(({ids}, {segments}, {places}))",
        "return found",
    )


WINDOWS = [
    Variant(
        "the stride is the step",
        body(
            "windows",
            *ROOM,
            "found, i = [], 0",
            "while True:",
            "    piece = context[i : i + room]",
            "    places = [-1] * (len(question) + 2) + list(range(i, i + len(piece))) + [-1]",
            "    segments = [0] * (len(question) + 2) + [1] * (len(piece) + 1)",
            "    found.append(([CLS, *question, SEP, *piece, SEP], segments, places))",
            "    if i + room >= len(context):",
            "        return found",
            "    i += stride",
        ),
        {"test-windows": 1},
        "no two windows share what they should; they are full, and the last reaches the end",
    ),
    Variant(
        "the special tokens not counted",
        cut(room=("room = max_len - len(question)", *ROOM[1:])),
        {"test-windows": 1},
        "windows of three tokens too many, and room where there is none",
    ),
    Variant(
        "one special token too few counted",
        cut(room=("room = max_len - len(question) - 2", *ROOM[1:])),
        {"test-windows": 1},
        "a window of one token too many, and room where there is none",
    ),
    Variant(
        "no overlap",
        cut(starts="range(0, len(context), room)"),
        {"test-windows": 1},
        "windows one behind the other",
    ),
    Variant(
        "one window too many",
        cut(starts="range(0, len(context), room - stride)"),
        {"test-windows": 0.5},
        "the last holds nothing that the one before it has not",
    ),
    Variant(
        "the end of the context lost",
        cut(starts="range(0, max(len(context) - room + 1, 1), room - stride)"),
        {"test-windows": 0.5},
        "whole windows alone",
    ),
    Variant(
        "nothing of a short context",
        cut(starts="range(0, len(context) - stride, room - stride)"),
        {"test-windows": 1},
        "a context of fewer tokens than the stride has no window",
    ),
    Variant(
        "the last window moved back, so that it is full",
        cut(
            starts="[min(i, max(len(context) - room, 0)) for i in "
            "range(0, max(len(context) - stride, 1), room - stride)]"
        ),
        {"test-windows": 1},
        "its overlap is larger than the stride",
    ),
    Variant(
        "filled up to max_len",
        cut(
            "fill = room - len(piece)",
            ids="[CLS, *question, SEP, *piece, SEP] + [0] * fill",
            segments="[0] * (len(question) + 2) + [1] * (len(piece) + 1) + [0] * fill",
            places="[-1] * (len(question) + 2) + list(range(i, i + len(piece))) + [-1] * (fill + 1)",
        ),
        {"test-windows": 2},
        "no filling was asked for; the ids, the segments of the fillers, and what is not of question and context",
    ),
    Variant(
        "one window, the rest cut off",
        cut(starts="[0]"),
        {"test-windows": 2.5},
        "all that asks for several windows, and room for them",
    ),
    Variant(
        "the [SEP] at the end forgotten",
        cut(
            ids="[CLS, *question, SEP, *piece]",
            segments="[0] * (len(question) + 2) + [1] * len(piece)",
            places="[-1] * (len(question) + 2) + list(range(i, i + len(piece)))",
        ),
        {"test-windows": 2},
        "the ids, the length of full windows, and the special tokens of each",
    ),
    Variant(
        "the [SEP] behind the question forgotten",
        cut(
            ids="[CLS, *question, *piece, SEP]",
            segments="[0] * (len(question) + 1) + [1] * (len(piece) + 1)",
            places="[-1] * (len(question) + 1) + list(range(i, i + len(piece))) + [-1]",
        ),
        {"test-windows": 2},
        "the ids, the length of full windows, and the special tokens of each",
    ),
    Variant(
        "the question in the first window alone",
        cut(
            ids="[CLS, *question, SEP, *piece, SEP] if i == 0 else [CLS, *piece, SEP]",
            segments="[0] * (len(question) + 2) + [1] * (len(piece) + 1) if i == 0 else [0] + [1] * (len(piece) + 1)",
            places="[-1] * (len(question) + 2 if i == 0 else 1) + list(range(i, i + len(piece))) + [-1]",
        ),
        {"test-windows": 1},
        "later windows lack it, and are shorter than max_len",
    ),
    Variant(
        "context before question",
        cut(
            ids="[CLS, *piece, SEP, *question, SEP]",
            segments="[0] * (len(piece) + 2) + [1] * (len(question) + 1)",
            places="[-1] + list(range(i, i + len(piece))) + [-1] * (len(question) + 2)",
        ),
        {"test-windows": 2},
        "the ids, the segments and the order of the tokens in each window",
    ),
    Variant(
        "segment 1 from the first [SEP] on",
        cut(segments="[0] * (len(question) + 1) + [1] * (len(piece) + 2)"),
        {"test-windows": 0.5},
        "the [SEP] behind the question belongs to it",
    ),
    Variant(
        "segment 0 for the last [SEP]",
        cut(segments="[0] * (len(question) + 2) + [1] * len(piece) + [0]"),
        {"test-windows": 0.5},
        "it belongs to the context",
    ),
    Variant(
        "segments the other way round",
        cut(segments="[1] * (len(question) + 2) + [0] * (len(piece) + 1)"),
        {"test-windows": 0.5},
        "the question is segment 0",
    ),
    Variant(
        "segment 0 for the ids of the question",
        cut(segments="[0 if token in question else 1 for token in [*question[:1] * 2, *question, *piece, SEP]]"),
        {"test-windows": 0.5},
        "the context may have them, too",
    ),
    Variant(
        "place -1 for the ids of the question",
        cut(
            "own = [-1 if token in question else i + t for t, token in enumerate(piece)]",
            places="[-1] * (len(question) + 2) + own + [-1]",
        ),
        {"test-windows": 0.5},
        "the context may have them, too",
    ),
    Variant(
        "segments in floats",
        cut(segments="np.concatenate([np.zeros(len(question) + 2), np.ones(len(piece) + 1)])"),
        {"test-windows": 0.5},
        "integers are asked for; right when they are made of these",
    ),
    Variant(
        "places as text",
        cut(places="['-1'] * (len(question) + 2) + [str(i + t) for t in range(len(piece))] + ['-1']"),
        {"test-windows": 0.5},
        "integers are asked for; right when they are made of these",
    ),
    Variant(
        "no place outside the context",
        cut(places="[None] * (len(question) + 2) + list(range(i, i + len(piece))) + [None]"),
        {"test-windows": 0.5},
        "-1 is asked for; right when it stands there",
    ),
    Variant(
        "places in the piece",
        cut(places="[-1] * (len(question) + 2) + list(range(len(piece))) + [-1]"),
        {"test-windows": 0.5},
        "right in the first window alone",
    ),
    Variant(
        "places in the window",
        cut(places="list(range(len(question) + len(piece) + 3))"),
        {"test-windows": 0.5},
        "they count in the context",
    ),
    Variant(
        "place 0 for special tokens",
        cut(places="[0] * (len(question) + 2) + list(range(i, i + len(piece))) + [0]"),
        {"test-windows": 0.5},
        "0 is the context's first token",
    ),
    Variant(
        "places before segments",
        cut(
            segments="[-1] * (len(question) + 2) + list(range(i, i + len(piece))) + [-1]",
            places="[0] * (len(question) + 2) + [1] * (len(piece) + 1)",
        ),
        {"test-windows": 1},
        "both in the place of the other",
    ),
    Variant(
        "no error without room",
        cut(room=("room = max(max_len - len(question) - 3, 1)", "stride = min(stride, room - 1)")),
        {"test-windows": 0.5},
        "another stride than was asked for",
    ),
    Variant(
        "a loop without end where there is no room",
        body(
            "windows",
            "room = max_len - len(question) - 3",
            "found, i = [], 0",
            "while True:",
            "    piece = context[i : i + room]",
            "    places = [-1] * (len(question) + 2) + list(range(i, i + len(piece))) + [-1]",
            "    segments = [0] * (len(question) + 2) + [1] * (len(piece) + 1)",
            "    found.append(([CLS, *question, SEP, *piece, SEP], segments, places))",
            "    if i + room >= len(context):",
            "        return found",
            "    i += room - stride",
        ),
        {"test-windows": 0.5},
        "it is stopped; nothing else is wrong with it",
    ),
    Variant(
        "an error only where there is no room at all",
        cut(
            room=("room = max_len - len(question) - 3", "if room <= 0:", "    raise ValueError"),
            starts="range(0, max(len(context) - stride, 1), max(room - stride, 1))",
        ),
        {"test-windows": 0.5},
        "the room must be larger than the stride",
    ),
    Variant(
        "an assertion in the place of a ValueError",
        cut(room=("room = max_len - len(question) - 3", "assert room > stride")),
        {"test-windows": 0.5},
        "another kind of error",
    ),
    Variant(
        "a ValueError too early",
        cut(room=("room = max_len - len(question) - 3", "if room <= stride + 1:", "    raise ValueError")),
        {"test-windows": 1.5},
        "room for one token more than the stride is enough: a step of one",
    ),
    Variant(
        "places looked up by the ids",
        cut(places="[-1] * (len(question) + 2) + [context.index(token) for token in piece] + [-1]"),
        {"test-windows": 0.5},
        "a token may occur several times",
    ),
    Variant(
        "the context in the order of its ids",
        cut("piece = sorted(context)[i : i + room]"),
        {"test-windows": 0.5},
        "the text loses its order",
    ),
    Variant(
        "four windows at most",
        cut(starts="list(range(0, max(len(context) - stride, 1), room - stride))[:4]"),
        {"test-windows": 0.5},
        "a long context needs more",
    ),
    Variant(
        "a last window of one new token lost",
        cut(starts="range(0, max(len(context) - stride - 1, 1), room - stride)"),
        {"test-windows": 0.5},
        "the end of the context is lost where one token is left over",
    ),
    Variant(
        "windows without a return",
        body(
            "windows",
            *ROOM,
            "found = []",
            "for i in range(0, max(len(context) - stride, 1), room - stride):",
            "    piece = context[i : i + room]",
            "    ids = [CLS, *question, SEP, *piece, SEP]",
            "    found.append((ids, [0] * len(ids), [-1] * len(ids)))",
        ),
        {"test-windows": 5},
        "nothing is returned",
    ),
    Variant(
        "windows in a zip",
        body(
            "windows",
            *ROOM,
            "pieces = [context[i : i + room] for i in range(0, max(len(context) - stride, 1), room - stride)]",
            "ids = [[CLS, *question, SEP, *piece, SEP] for piece in pieces]",
            "segments = [[0] * (len(question) + 2) + [1] * (len(piece) + 1) for piece in pieces]",
            "places = [[-1] * (len(question) + 2) + list(range(len(piece))) + [-1] for piece in pieces]",
            "for k, row in enumerate(places):",
            "    row[len(question) + 2 : -1] = [k * (room - stride) + place for place in row[len(question) + 2 : -1]]",
            "return zip(ids, segments, places)",
        ),
        {"test-windows": 0.5},
        "a list is asked for; what is in it is right",
    ),
    Variant(
        "windows made one by one",
        body(
            "windows",
            "room = max_len - len(question) - 3",
            "if room <= stride:",
            "    raise ValueError('no room')",
            "for i in range(0, max(len(context) - stride, 1), room - stride):",
            "    piece = context[i : i + room]",
            "    places = [-1] * (len(question) + 2) + list(range(i, i + len(piece))) + [-1]",
            "    segments = [0] * (len(question) + 2) + [1] * (len(piece) + 1)",
            "    yield [CLS, *question, SEP, *piece, SEP], segments, places",
        ),
        {"test-windows": 0.5},
        "a list is asked for, and the error comes too late",
    ),
    Variant(
        "pieces taken off the context",
        body(
            "windows",
            *ROOM,
            "found, i = [], 0",
            "while i == 0 or len(context) > stride:",
            "    piece = context[:room]",
            "    places = [-1] * (len(question) + 2) + list(range(i, i + len(piece))) + [-1]",
            "    segments = [0] * (len(question) + 2) + [1] * (len(piece) + 1)",
            "    found.append(([CLS, *question, SEP, *piece, SEP], segments, places))",
            "    del context[: room - stride]",
            "    i += room - stride",
            "return found",
        ),
        {"test-windows": 0.5},
        "the windows are right, and the argument is changed",
    ),
    Variant(
        "special tokens put into the question",
        body(
            "windows",
            *ROOM,
            "question.insert(0, CLS)",
            "question.append(SEP)",
            "found, lead = [], len(question)",
            "for i in range(0, max(len(context) - stride, 1), room - stride):",
            "    piece = context[i : i + room]",
            "    places = [-1] * lead + list(range(i, i + len(piece))) + [-1]",
            "    found.append(([*question, *piece, SEP], [0] * lead + [1] * (len(piece) + 1), places))",
            "return found",
        ),
        {"test-windows": 0.5},
        "the windows are right, and the argument is changed",
    ),
]

VARIANTS = TOKENS + WINDOWS
