"""Pairs of pieces: balanced, never by accident of one document, with nothing but the two together to tell them by."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from course_lib.batches.masked import Masking
from course_lib.batches.next_sentence import PretrainingBatches, encode_documents, pairs_of, pieces_of
from course_lib.batches.texts import IGNORED
from course_lib.text.sentences import sentences
from course_lib.text.wordpiece import WordPiece
from course_lib.training.arguments import check_padding

PAD, CLS, SEP, MASK = 1, 2, 3, 4
V = 5000
MASKING = Masking(V, MASK, PAD, (CLS, SEP))


def document(number, *lengths):
    """Sentences of these lengths, whose tokens count on from 10 + 100 times the number of the document."""
    ends = np.cumsum([0, *lengths])
    return [10 + 100 * number + np.arange(a, b) for a, b in zip(ends, ends[1:], strict=False)]


@pytest.fixture(scope="module")
def documents():
    """45 documents of 0 to 12 sentences of 1 to 8 tokens."""
    rng = np.random.default_rng(0)
    return [document(n, *rng.integers(1, 9, rng.integers(0, 13))) for n in range(45)]


def test_another_padding_than_the_models_is_refused(documents):
    with pytest.raises(ValueError, match="the batches are padded with 1, but the model takes 0"):
        check_padding(PretrainingBatches(documents, MASKING, CLS, SEP), 0)


def plain(batch):
    """The ids without blanks."""
    return np.where(batch.labels == IGNORED, batch.ids, batch.labels)


def halves(batches):
    """The (first, second, follows) of all pairs, as the batches have them."""
    for batch in batches:
        for ids, follows in zip(plain(batch), batch.follows, strict=True):
            ends = np.flatnonzero(ids == SEP)
            yield ids[1 : ends[0]].tolist(), ids[ends[0] + 1 : ends[1]].tolist(), follows


def same(first, second):
    return all(a.shape == b.shape and (a == b).all() for a, b in zip(first, second, strict=True))


def test_sentences_are_joined_as_long_as_they_fit():
    found = pieces_of([document(0, 2, 3, 4, 1, 5), [], document(1, 13, 1), document(2, 2, 2)], longest=5)
    assert [len(piece) for piece in found.pieces] == [5, 5, 5, 5, 5, 4]
    assert [piece[0] for piece in found.pieces] == [10, 15, 20, 110, 115, 120]
    assert_array_equal(np.concatenate(found.pieces), np.concatenate([*document(0, 15), *document(1, 14)]))
    assert_array_equal(found.documents, [0, 0, 0, 2, 2, 2])
    assert_array_equal(found.starts, [0, 3])
    assert found.n_short == 2
    assert str(found) == "6 pieces of 2 documents; 2 documents of fewer than two pieces left out"
    assert all(piece.dtype == np.int64 for piece in found.pieces)


def test_every_document_but_the_short_ones_stands_whole_in_pieces(documents):
    found = pieces_of(documents, 12)
    kept = [np.concatenate(text) for text in documents if text and sum(map(len, text)) > 12]
    assert_array_equal(np.concatenate(found.pieces), np.concatenate(kept))
    assert len(found.starts) == len(kept) == len(documents) - found.n_short
    assert max(map(len, found.pieces)) <= 12


@pytest.mark.parametrize("epoch", range(3))
def test_half_follow_and_half_are_of_another_document(documents, epoch):
    pieces = pieces_of(documents, 12)
    pairs = pairs_of(pieces, seed=1, epoch=epoch)
    first, second = pieces.documents[pairs.first], pieces.documents[pairs.second]
    follows = pairs.follows == 1
    assert len(pairs.follows) == (np.bincount(pieces.documents) // 2).sum()
    assert len(pairs.follows) - 2 * follows.sum() in (0, -1)
    assert_array_equal(pairs.second[follows], pairs.first[follows] + 1)
    assert (first[follows] == second[follows]).all() and (first[~follows] != second[~follows]).all()


def test_every_piece_takes_part_but_one_of_an_odd_number(documents):
    pieces = pieces_of(documents, 12)
    left = set()
    for epoch in range(20):
        pairs = pairs_of(pieces, epoch=epoch)
        assert len(set(pairs.first)) == len(pairs.first)
        whole = set(pairs.first) | set(pairs.first + 1)
        for number in set(pieces.documents):
            rows = np.flatnonzero(pieces.documents == number)
            missing = set(rows) - whole
            assert len(missing) == len(rows) % 2
            left |= {(number, row - rows[0], len(rows)) for row in missing}
    assert {place for _, place, _ in left} > {0} and all(place in (0, n - 1) for _, place, n in left)
    assert len(left) == 2 * len({number for number, *_ in left}), "now the first, now the last"


def test_equal_documents_count_as_one():
    texts = [document(0, *[6] * 8), document(1, *[6] * 8), document(0, *[3] * 16), document(2, *[6] * 8)]
    pieces = pieces_of(texts, 6)
    assert_array_equal(pieces.documents, np.repeat([0, 1, 0, 3], 8))
    for seed in range(30):
        pairs = pairs_of(pieces, seed)
        wrong = pairs.follows == 0
        assert (pieces.documents[pairs.first][wrong] != pieces.documents[pairs.second][wrong]).all()
    with pytest.raises(ValueError, match="two different documents .* there are 1"):
        pieces_of([document(0, 6, 6), document(0, 3, 3, 6)], 6)


def test_two_documents_are_enough_however_unequal():
    message = r"documents\[0\] has 100 of 102 pieces, more than half, so .* alone says .*; cut it into several"
    with pytest.warns(UserWarning, match=message):
        pieces = pieces_of([document(0, *[5] * 100), document(8, 5, 5)], 5)
    for seed in range(30):
        pairs = pairs_of(pieces, seed)
        wrong = pairs.follows == 0
        assert (pieces.documents[pairs.first][wrong] != pieces.documents[pairs.second][wrong]).all()
        assert (pairs.follows == 0).sum() == 25


def test_any_second_of_another_document_may_come():
    pieces = pieces_of([document(n, *[5] * 4) for n in range(4)], 5)
    found = set()
    for seed in range(300):
        pairs = pairs_of(pieces, seed)
        found |= {(a // 4, b) for a, b, follows in zip(*pairs, strict=True) if not follows}
    assert found == {(number, second) for number in range(4) for second in range(1, 16, 2) if second // 4 != number}


def test_neither_side_alone_gives_the_answer_away():
    """Documents differ in their lengths and in their words, and end in short pieces."""
    rng = np.random.default_rng(3)
    texts = [document(n % 40, *rng.integers(2, 3 + n % 9, rng.integers(2, 30))) for n in range(600)]
    pieces = pieces_of(texts, 12)
    pairs = pairs_of(pieces)
    lengths = np.array([len(piece) for piece in pieces.pieces])
    first, second = pieces.documents[pairs.first], pieces.documents[pairs.second]
    for side in (lengths[pairs.first], lengths[pairs.second], first, second, first % 40, second % 40):
        assert stats.ks_2samp(side[pairs.follows == 1], side[pairs.follows == 0]).pvalue > 1e-4


@pytest.mark.parametrize("multiple", [1, 32])
def test_what_a_batch_holds(documents, multiple):
    batches = PretrainingBatches(documents, MASKING, CLS, SEP, max_len=30, batch_size=16, multiple=multiple)
    pieces, n = batches.pieces, 0
    assert max(map(len, pieces.pieces)) <= 13
    for batch in batches:
        assert batch._fields == ("ids", "segments", "labels", "follows")
        n += len(batch.ids)
        shape = batch.ids.shape
        assert batch.segments.shape == batch.labels.shape == shape and batch.follows.shape == shape[:1]
        assert all(part.dtype == np.int64 for part in batch)
        assert shape[1] == 32 if multiple == 32 else (plain(batch) != PAD).any(0).all() and shape[1] <= 30
        for ids, sides in zip(plain(batch), batch.segments, strict=True):
            ends = np.flatnonzero(ids == SEP)
            assert ids[0] == CLS and len(ends) == 2 and (ids[ends[1] + 1 :] == PAD).all()
            assert_array_equal(sides, np.repeat([0, 1, 0], [ends[0] + 1, ends[1] - ends[0], shape[1] - ends[1] - 1]))
        assert not np.isin(batch.labels, [CLS, SEP, PAD, MASK]).any() and (batch.labels != IGNORED).any(1).all()
        assert_array_equal(batch.ids[batch.labels == IGNORED], plain(batch)[batch.labels == IGNORED])
    assert n == len(batches.pairs.follows)


def test_the_label_says_what_stands_there(documents):
    texts = {tuple(np.concatenate(text).tolist()) for text in documents if text}
    batches, n = PretrainingBatches(documents, MASKING, CLS, SEP, 29, 16, seed=2, epoch=1), [0, 0]
    for first, second, follows in halves(batches):
        assert follows == (second[0] == first[-1] + 1), "tokens count on within a document"
        assert follows == any(tuple(first + second) == text[i : i + len(first + second)]
                              for text in texts for i in range(len(text)))  # fmt: skip
        n[follows] += 1
    assert abs(n[0] - n[1]) <= 1


def test_epochs_differ_and_come_again(documents):
    batches = PretrainingBatches(documents, MASKING, CLS, SEP, 29, 8, seed=4)
    straight = [list(batches.epoch(epoch)) for epoch in range(3)]
    assert {len(epoch) for epoch in straight} == {len(batches)}
    afresh = PretrainingBatches(documents, MASKING, CLS, SEP, 29, 8, seed=4, epoch=2)
    assert all(same(a, b) for a, b in zip(afresh, straight[2], strict=True))
    assert all(same(a, b) for a, b in zip(batches, straight[0], strict=True))
    assert same(next(batches.steps(len(batches) + 3)), straight[1][3])
    wrong = [{(tuple(a), tuple(b)) for a, b, follows in halves(epoch) if not follows} for epoch in straight]
    assert len(wrong[0] & wrong[1]) < len(wrong[0]) / 3, "other pairs in every epoch"
    other = PretrainingBatches(documents, MASKING, CLS, SEP, 29, 8, seed=5)
    assert list(halves(other)) != list(halves(batches))
    # and other blanks where a pair comes again
    texts = [document(n, 6, 6) for n in range(30)]
    batches = PretrainingBatches(texts, MASKING, CLS, SEP, 15, 8)
    blanks = [{tuple(p): tuple(r) for p, r in zip(plain(b).tolist(), (b.labels != IGNORED).tolist(), strict=True)}
              for b in [batches[0], *batches.epoch(1)]]  # fmt: skip
    again = [(blanks[0][pair], other[pair]) for other in blanks[1:] for pair in other if pair in blanks[0]]
    assert again and any(a != b for a, b in again)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_len": 4}, ValueError, "max_len must be a whole number of 5 or more, got 4"),
        ({"batch_size": 0}, ValueError, "batch_size must be"),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"epoch": 0.5}, ValueError, "epoch must be"),
        ({"multiple": 0}, ValueError, "multiple must be"),
        ({"documents": []}, ValueError, "two different documents of two pieces or more, .*; there are 0"),
        ({"documents": [document(0, 2), document(1, 2)]}, ValueError, "there are 0"),
        ({"documents": [document(0, 40, 40), [], document(1, 2)]}, ValueError, "there are 1"),
        ({"documents": [["one", "two"]]}, TypeError, r"documents\[0\]\[0\] is 'one', not token ids"),
        ({"documents": ["a text"]}, TypeError, r"documents\[0\] must be many arrays of token ids, got str"),
    ],
)
def test_what_cannot_be_dealt(options, error, message):
    documents = [document(n, *[20] * 6) for n in range(3)]
    with pytest.raises(error, match=message):
        PretrainingBatches(**{"documents": documents, "masking": MASKING, "cls_id": CLS, "sep_id": SEP, **options})


def test_documents_of_texts():
    tokenizer = WordPiece.train(["the film is a film"] * 2, 40)
    found = encode_documents([sentences("The film! A film"), [], ["", "is"]], tokenizer)
    assert [[tokenizer.decode(ids) for ids in document] for document in found] == [
        ["the film", "a film"], [], ["", "is"],
    ]  # fmt: skip
    assert encode_documents([], tokenizer) == encode_documents([[]], tokenizer)[0] == []
    for documents, error, message in (
        ([["a"], "The film."], TypeError, r"documents\[1\] is one str; cut it into its sentences first"),
        ([["a", None]], TypeError, r"texts\[1\] is a NoneType"),
    ):
        with pytest.raises(error, match=message):
            encode_documents(documents, tokenizer)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n", []),
        ("One sentence", ["One sentence"]),
        ("It is. Is it? Yes! No…  Well.", ["It is.", "Is it?", "Yes!", "No…", "Well."]),
        ('He said "Go." She went. (Really?) "So."', ['He said "Go."', "She went.", "(Really?)", '"So."']),
        ("Mr. Smith met J. R. Ewing and Mrs. Doe in St. Louis. They spoke.",
         ["Mr. Smith met J. R. Ewing and Mrs. Doe in St. Louis.", "They spoke."]),
        ("At 9.30 it was 3.5 degrees, e.g. cold. 20 came.", ["At 9.30 it was 3.5 degrees, e.g. cold.", "20 came."]),
        ("Really?! Étonnant... and more.", ["Really?!", "Étonnant... and more."]),
    ],
)  # fmt: skip
def test_sentences_of_a_text(text, expected):
    assert sentences(text) == expected


def test_a_text_that_is_none():
    with pytest.raises(TypeError, match="a text must be a str, not a NoneType"):
        sentences(None)
