"""Documents in windows: every token once and in order, documents apart or mixed, and a count of what is left out."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from course_lib.batches.windows import document_tokens, windows
from course_lib.text.wordpiece import WordPiece

CLS, SEP = 2, 3


def documents(*lengths):
    """Documents whose tokens say where they stand: 100, 101, ... in the first, 200, 201, ... in the second."""
    return [100 * (row + 1) + np.arange(n) for row, n in enumerate(lengths)]


def inside(found):
    return [window[1:-1].tolist() for window in found.sequences]


def test_documents_apart():
    found = windows(documents(7, 0, 3, 4, 1), CLS, SEP, length=5)
    assert inside(found) == [
        [100, 101, 102], [103, 104, 105], [106], [300, 301, 302], [400, 401, 402], [403], [500],
    ]  # fmt: skip
    assert_array_equal(found.documents, [0, 0, 0, 2, 3, 3, 4])
    assert all(window[0] == CLS and window[-1] == SEP and window.dtype == np.int64 for window in found.sequences)
    assert (found.n_empty, found.n_short, found.n_lost) == (1, 0, 0)


def test_documents_mixed():
    found = windows(documents(4, 0, 3, 3), CLS, SEP, length=6, mixed=True)
    assert inside(found) == [[100, 101, 102, 103], [300, 301, 302, SEP], [400, 401, 402]]
    assert_array_equal(found.documents, [0, 2, 3])
    assert str(found) == "3 windows of 10 tokens; 1 empty documents and 0 short windows of 0 tokens left out"
    assert found.n_empty == 1
    assert inside(windows(documents(4, 2), CLS, SEP, length=5, mixed=True)) == [[100, 101, 102], [103, SEP, 200], [201]]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("length", [3, 10, 64, 1000])
def test_nothing_is_lost_or_read_twice(length, mixed):
    rng = np.random.default_rng(0)
    texts = [rng.integers(10, 99, n) for n in rng.integers(0, 90, 30)]
    found = windows(texts, CLS, SEP, length, mixed)
    stream = np.concatenate(inside(found))
    assert_array_equal(stream[stream != SEP], np.concatenate(texts))
    assert (stream == SEP).sum() <= (sum(len(text) > 0 for text in texts) - 1 if mixed else 0)
    assert all(window[1] != SEP for window in found.sequences)
    assert str(found).startswith(f"{len(found.sequences):,} windows of {sum(map(len, texts)):,} tokens")
    lengths = [len(window) for window in found.sequences]
    assert max(lengths) <= length and (found.n_short, found.n_lost) == (0, 0)
    if mixed:
        assert set(lengths[:-1]) <= {length}


def test_what_is_left_out_is_counted():
    found = windows(documents(7, 0, 3, 5, 1), CLS, SEP, length=5, least=2)
    assert inside(found) == [[100, 101, 102], [103, 104, 105], [300, 301, 302], [400, 401, 402], [403, 404]]
    assert (found.n_empty, found.n_short, found.n_lost) == (1, 2, 2)
    assert str(found) == "5 windows of 14 tokens; 1 empty documents and 2 short windows of 2 tokens left out"


def test_a_separator_is_no_token():
    found = windows(documents(3, 1), CLS, SEP, length=6, mixed=True, least=2)
    assert inside(found) == [[100, 101, 102, SEP]] and (found.n_short, found.n_lost) == (1, 1)
    found = windows(documents(4, 1, 1), CLS, SEP, length=6, mixed=True, least=4)
    assert inside(found) == [[100, 101, 102, 103]] and (found.n_short, found.n_lost) == (1, 2)
    assert inside(windows(documents(1, 1), CLS, SEP, length=5, mixed=True, least=3)) == [[100, SEP, 200]]
    found = windows(documents(2, 2, 1), CLS, SEP, length=4, mixed=True, least=2)
    assert inside(found) == [[100, 101], [200, 201]] and (found.n_short, found.n_lost) == (1, 1)


def test_a_window_longer_than_the_text():
    for mixed in (False, True):
        (window,) = windows(documents(3), CLS, SEP, 1000, mixed).sequences
        assert_array_equal(window, [CLS, 100, 101, 102, SEP])


def test_lists_and_other_integers_are_documents():
    found = windows([[5, 6], np.array([7], np.int32)], CLS, SEP, 4)
    assert [window.tolist() for window in found.sequences] == [[2, 5, 6, 3], [2, 7, 3]]
    assert {window.dtype for window in found.sequences} == {np.dtype(np.int64)}


def test_tokens_of_texts():
    tokenizer = WordPiece.train(["the film is a film"] * 2, 40)
    found = document_tokens(["the film", "", "is"], tokenizer)
    assert [tokenizer.tokens(ids) for ids in found] == [["the", "film"], [], ["is"]]
    assert document_tokens([], tokenizer) == []
    cut = windows(found, tokenizer.cls_id, tokenizer.sep_id, 4)
    assert [tokenizer.decode(window, skip_special=False) for window in cut.sequences] == [
        "[CLS] the film [SEP]", "[CLS] is [SEP]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "options", "error", "message"),
    [
        ([], {}, ValueError, "there must be a document with at least one token"),
        ([[], []], {}, ValueError, "there must be a document with at least one token"),
        (["text"], {}, TypeError, "encode the texts"),
        ([[5]], {"length": 2}, ValueError, "length must be a whole number of 3 or more, got 2"),
        ([[5]], {"least": 0}, ValueError, "least must be a whole number of 1 or more, got 0"),
        ([[5]], {"length": 5, "least": 4}, ValueError, "least must be 3 at most, the tokens of a window of 5; got 4"),
    ],
)
def test_documents_that_cannot_be_cut(texts, options, error, message):
    with pytest.raises(error, match=message):
        windows(texts, CLS, SEP, **options)
