"""Windows over contexts, answers as characters and as tokens, and the search for the best span."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.batches.spans import QuestionWindows, SpanBatches, characters, encode_questions
from course_lib.evaluation.best_spans import Found, Span, answer_texts, best_spans
from course_lib.text.wordpiece import WordPiece

CONTEXT = (
    "On Monday, Zoë took the violoncello from École Street to Merrow. Nobody knew why; the instrument had stood "
    "there for 27 years. 人工智能 said 😀 Owen, who plays in 서울, and laughed at the antidisestablishmentarians."
)
ANSWERS = ["Zoë", "Monday", "the violoncello", "École Street", "27 years", "智能", "😀 Owen", "서울", CONTEXT]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece.from_pretrained("minilm-l6")


def place(answer, context=CONTEXT):
    return context.index(answer), context.index(answer) + len(answer)


@pytest.mark.parametrize(("max_len", "stride"), [(384, 128), (24, 8), (18, 9)])
def test_answers_come_back_from_their_tokens(tokenizer, max_len, stride):
    n = len(ANSWERS)
    places = [place(answer) for answer in ANSWERS]
    found = encode_questions(["who was it?"] * n, [CONTEXT] * n, tokenizer, places, max_len, stride)
    assert found.starts.dtype == found.ends.dtype == np.int64 and max(map(len, found.ids)) <= max_len
    for row, answer in enumerate(ANSWERS):
        held = 0
        for w in np.flatnonzero(found.rows == row):
            inside = found.offsets[w][found.offsets[w][:, 0] >= 0]
            whole = inside[0, 0] <= place(answer)[0] and place(answer)[1] <= inside[-1, 1]
            back = characters(found.offsets[w], found.starts[w], found.ends[w])
            assert (back is not None) == whole, "in the windows that hold all of it, and in no other"
            if whole:
                held += 1
                assert CONTEXT[slice(*back)] == answer
        assert held >= (answer != CONTEXT or max_len == 384)


def test_an_answer_inside_a_token_becomes_the_token(tokenizer):
    found = encode_questions("what?", "the violoncello", tokenizer, [(5, 7)])
    assert characters(found.offsets[0], found.starts[0], found.ends[0]) == (4, 9)


def test_the_context_is_segment_1_and_has_offsets_alone(tokenizer):
    found = encode_questions("where?", "In Hull.", tokenizer)
    assert tokenizer.tokens(found.ids[0]) == ["[CLS]", "where", "?", "[SEP]", "in", "hull", ".", "[SEP]"]
    assert found.segments[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    none = [-1, -1]
    assert found.offsets[0].tolist() == [none, none, none, none, [0, 2], [3, 7], [7, 8], none]
    assert (found.starts.tolist(), found.ends.tolist(), found.rows.tolist()) == ([0], [0], [0])


def test_questions_without_an_answer_point_at_cls(tokenizer):
    found = encode_questions(["q", "q"], ["In Hull.", "In Hull."], tokenizer, [None, (3, 7)])
    assert found.starts.tolist() == found.ends.tolist() == [0, 4]
    assert characters(found.offsets[0], 0, 0) is None and characters(found.offsets[1], 4, 4) == (3, 7)


def test_odd_contexts(tokenizer):
    contexts = ["", " \n\u200b", "x" * 10_000, "word " * 600, "[SEP] [PAD]"]
    found = encode_questions(["who?"] * 5, contexts, tokenizer, [None, None, (0, 10_000), None, (0, 5)], 64, 16)
    inside = [(part >= 0).any(axis=1).sum() for part in found.offsets]
    assert inside[:3] == [0, 0, 1] and found.rows[:3].tolist() == [0, 1, 2] and (found.rows == 3).sum() > 10
    assert characters(found.offsets[2], found.starts[2], found.ends[2]) == (0, 10_000)
    assert CONTEXT and characters(found.offsets[-1], found.starts[-1], found.ends[-1]) == (0, 5)
    zeros = [np.zeros(len(ids)) for ids in found.ids]
    best = best_spans(zeros, zeros, found)
    assert best[0] == Found([], 0.0) and best[0].margin == math.inf
    assert answer_texts(best, contexts)[:3] == ["", "", "x" * 10_000]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["q"], ["a", "b"]), ValueError, "there are 1 questions, 2 contexts"),
        ((["q"], ["a"], []), ValueError, "1 questions, 1 contexts and 0 answers"),
        ((["q"], [3]), TypeError, r"contexts\[0\] is a int"),
        ((["q"], ["a\ud83d"]), ValueError, "holds half of a character"),
        ((["q"], ["In Hull."], [(3, 9)]), ValueError, "answer 0 should lie in the 8 characters of .* at 3:9"),
        ((["q"], ["In Hull."], [(3, 3)]), ValueError, "not at 3:3"),
        ((["q"], ["In Hull."], [(-1, 3)]), ValueError, "not at -1:3"),
        ((["q"], ["In \u200b Hull."], [(2, 5)]), ValueError, "answer 0, ' .u200b ', has no token"),
        ((["q " * 300], ["word " * 300]), ValueError, "pair 0 and the special tokens take 303 tokens"),
        ((["q"], ["word " * 600], None, 100, 96), ValueError, "which needs more than stride = 96"),
    ],
)
def test_what_encoding_refuses(tokenizer, arguments, error, message):
    with pytest.raises(error, match=message):
        encode_questions(arguments[0], arguments[1], tokenizer, *arguments[2:])


@pytest.mark.parametrize("span", [(0, 2), (2, 1), (4, 9), (-2, 5), (1, 5), (4, 7), (6, 5)])
def test_tokens_that_are_no_span(tokenizer, span):
    found = encode_questions("where?", "In Hull.", tokenizer)
    with pytest.raises(ValueError, match="are no span of the context in a window of 8"):
        characters(found.offsets[0], *span)


def test_batches_of_windows(tokenizer):
    contexts = [CONTEXT[: 40 + 20 * i] for i in range(8)]
    windows = encode_questions(["who?"] * 8, contexts, tokenizer, [place("Zoë")] * 8, 32, 8)
    batches = SpanBatches(windows, batch_size=3, seed=1, pad_id=7)
    seen = []
    for i, (ids, segments, starts, ends) in enumerate(batches):
        assert ids.shape == segments.shape and ids.dtype == segments.dtype == starts.dtype == np.int64
        for k, w in enumerate(batches.groups[i]):
            n = len(windows.ids[w])
            assert ids[k, :n].tolist() == windows.ids[w].tolist() and (ids[k, n:] == 7).all()
            assert segments[k, :n].tolist() == windows.segments[w].tolist() and (segments[k, n:] == 0).all()
            assert (starts[k], ends[k]) == (windows.starts[w], windows.ends[w])
            seen.append(w)
        assert ids.shape[1] == max(len(windows.ids[w]) for w in batches.groups[i])
    assert sorted(seen) == list(range(len(windows.ids))) and len(batches) == -(-len(seen) // 3)
    orders = [SpanBatches(windows, 3, seed).groups[0].tolist() for seed in (1, 1, 4)]
    assert orders[0] == orders[1] != orders[2]
    again = [np.concatenate(SpanBatches(windows, 3, *other).groups).tolist() for other in ((0, 1000), (1, 0))]
    assert again[0] != again[1]
    orders = [np.concatenate(batches.epoch(epoch).groups).tolist() for epoch in (0, 1, 2)]
    assert orders[0] == seen and orders[1] not in (seen, orders[2]) and sorted(orders[2]) == sorted(seen)
    assert np.concatenate(SpanBatches(windows, 3, 1, 1).groups).tolist() == orders[1]
    assert batches.epoch(1).pad_id == batches.pad_id == 7 and len(batches.epoch(1)) == len(batches)
    with pytest.raises(ValueError, match="epoch must be a whole number of 0 or more"):
        batches.epoch(-1)
    lengths = [len(windows.ids[w]) for group in SpanBatches(windows, 3, None).groups for w in group]
    assert lengths == sorted(lengths), "without a seed"
    assert SpanBatches(windows, 3, multiple=40)[0].ids.shape == (3, 40)


def by_definition(start, end, windows, row, max_answer, n_best):
    """Every pair of tokens of every window, the best score of each span of characters."""
    best, null = {}, math.inf
    for w in np.flatnonzero(windows.rows == row):
        null = min(null, start[w][0] + end[w][0])
        inside = [t for t in range(len(windows.ids[w])) if windows.offsets[w][t, 0] >= 0]
        for i in inside:
            for j in inside:
                if i <= j < i + max_answer:
                    span = (windows.offsets[w][i, 0], windows.offsets[w][j, 1])
                    best[span] = max(best.get(span, -math.inf), start[w][i] + end[w][j])
    return sorted(best.items(), key=lambda entry: -entry[1])[:n_best], null


@pytest.mark.parametrize(("max_answer", "n_best"), [(1, 1), (3, 4), (30, 5), (500, 7)])
def test_the_best_spans_are_the_best_of_all(tokenizer, max_answer, n_best):
    contexts = [CONTEXT, CONTEXT[:60], "Hull", "word " * 30]
    windows = encode_questions(["who was it?"] * 4, contexts, tokenizer, None, 32, 10)
    rng = np.random.default_rng(0)
    start, end = ([rng.normal(size=len(ids)) * 3 for ids in windows.ids] for _ in range(2))
    found = best_spans(start, end, windows, max_answer, n_best)
    assert len(found) == 4
    for row, one in enumerate(found):
        spans, null = by_definition(start, end, windows, row, max_answer, n_best)
        assert [(span.start, span.end) for span in one.spans] == [place for place, _ in spans]
        assert_allclose([span.score for span in one.spans], [score for _, score in spans])
        assert_allclose([one.null, one.margin], [null, null - spans[0][1]])
    padded = [np.full((len(windows.ids), 50), 99.0) for _ in range(2)]  # behind the end nothing is read
    for array, rows in zip(padded, (start, end), strict=True):
        for values, own in zip(array, rows, strict=True):
            values[: len(own)] = own
    assert best_spans(*padded, windows, max_answer, n_best) == found


def test_no_answer_and_its_threshold():
    found = [Found([Span(3, 7, 2.0)], 3.0), Found([Span(0, 2, 2.0), Span(3, 7, 1.0)], 1.0), Found([], 0.0)]
    contexts = ["In Hull.", "In York.", ""]
    assert answer_texts(found, contexts) == ["Hull", "In", ""]
    assert answer_texts(found, contexts, 0.0) == ["", "In", ""]
    assert answer_texts(found, contexts, 1.0) == ["Hull", "In", ""], "at the threshold itself it answers"
    assert answer_texts(found, contexts, -math.inf) == ["", "", ""]
    with pytest.raises(ValueError, match="3 results but 2 contexts"):
        answer_texts(found, contexts[:2])
    with pytest.raises(TypeError, match=r"contexts\[2\] is a NoneType"):
        answer_texts(found, [*contexts[:2], None])


@pytest.mark.parametrize(
    ("start", "end", "options", "message"),
    [
        ([], [], {}, "start_logits must be of the 1 windows, got 0"),
        ([np.zeros(8)], [], {}, "end_logits must be of the 1 windows, got 0"),
        ([np.zeros(8)], [np.zeros(7)], {}, r"window 0 has 8 tokens, but its logits have the shape \(7,\)"),
        ([np.zeros((8, 2))], [np.zeros(8)], {}, r"the shape \(8, 2\)"),
        ([np.full(8, np.nan)], [np.zeros(8)], {}, "the logits of window 0 are not numbers"),
        ([np.zeros(8)], [np.zeros(8)], {"max_answer": 0}, "max_answer must be a whole number of 1 or more"),
        ([np.zeros(8)], [np.zeros(8)], {"n_best": 0}, "n_best must be a whole number of 1 or more"),
    ],
)
def test_logits_that_are_refused(tokenizer, start, end, options, message):
    windows = encode_questions("where?", "In Hull.", tokenizer)
    assert isinstance(windows, QuestionWindows)
    with pytest.raises(ValueError, match=message):
        best_spans(start, end, windows, **options)
