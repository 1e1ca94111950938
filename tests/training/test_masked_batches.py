"""Blanks: how many, which, what the model reads there, and batches of them whose epochs can be entered anywhere."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from course_lib.batches.masked import MaskedBatches, Masking
from course_lib.batches.texts import IGNORED
from course_lib.text.wordpiece import WordPiece
from course_lib.training.arguments import check_padding

V, PAD, UNK, CLS, SEP, MASK = 1000, 7, 1, 2, 3, 4
SPECIAL = (PAD, UNK, CLS, SEP, MASK)
CONTINUES = np.arange(V) % 3 == 2  # of the special ones, CLS: what it says of a special token does not count

def masking(**options):
    return Masking(V, MASK, PAD, (UNK, CLS, SEP), **options)


def texts(n=400, longest=40, seed=0):
    """Ids of n texts, [CLS] ... [SEP], of 1 to `longest` tokens between."""
    rng = np.random.default_rng(seed)
    ordinary = np.setdiff1d(np.arange(V), SPECIAL)
    return [np.array([CLS, *rng.choice(ordinary, rng.integers(1, longest + 1)), SEP]) for _ in range(n)]


def test_another_padding_than_the_models_is_refused():
    with pytest.raises(ValueError, match=f"the batches are padded with {PAD}, but the model takes 0"):
        check_padding(MaskedBatches(texts(5), masking()), 0)
    check_padding(MaskedBatches(texts(5), masking()), PAD)


@pytest.fixture(scope="module")
def batch():
    """2,000 rows of 62 tokens, some shorter and padded, with an unknown word here and there."""
    rng = np.random.default_rng(5)
    ids = rng.choice(np.setdiff1d(np.arange(V), SPECIAL), (2000, 64))
    ids[:, 0], ids[:, 63] = CLS, SEP
    ids[rng.random(ids.shape) < 0.02] = UNK
    ids[:500, 40], ids[:500, 41:] = SEP, PAD
    return ids


def within(count, n, share, sure=1e-6):
    """Whether so many of n may be a draw with this probability."""
    return stats.binomtest(int(count), int(n), share).pvalue > sure


def same(first, second):
    return all(a.shape == b.shape and (a == b).all() for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("whole", [None, CONTINUES], ids=["tokens", "whole words"])
@pytest.mark.parametrize(
    "share, masked, random", [(0.15, 0.8, 0.1), (0.4, 0.5, 0.5), (0.25, 1.0, 0.0), (1.0, 0.0, 0.3)]
)
def test_shares_are_those_asked_for(batch, whole, share, masked, random):
    ids, labels = masking(share=share, masked=masked, random=random, continues=whole)(batch, seed=1)
    blank = labels != IGNORED
    real = ~np.isin(batch, SPECIAL)
    assert within(blank.sum(), real.sum(), share)
    n = blank.sum()
    is_mask, is_same = ids[blank] == MASK, ids[blank] == batch[blank]
    assert within(is_mask.sum(), n, masked)
    assert within(is_same.sum(), n, 1 - masked - random + random / (V - len(SPECIAL)))
    others = ids[blank][~is_mask & ~is_same]
    assert (random == 0) == (len(others) == 0)
    if random:
        counts = np.bincount(others, minlength=V)
        assert not counts[list(SPECIAL)].any(), "no special token takes the place of another"
        # the first and the last tokens come as often as others
        assert within(counts[:500].sum(), counts.sum(), (500 - len(SPECIAL)) / (V - len(SPECIAL)))
        assert counts[990:].any() and counts[5:15].any()


def test_labels_are_the_tokens_in_the_blanks_and_nothing_else_changes(batch):
    ids, labels = masking(share=0.2)(batch, seed=2)
    blank = labels != IGNORED
    assert ids.dtype == labels.dtype == np.int64 and ids.shape == labels.shape == batch.shape
    assert_array_equal(labels[blank], batch[blank])
    assert_array_equal(ids[~blank], batch[~blank])
    assert not np.isin(batch[blank], SPECIAL).any()
    assert (ids[blank] == MASK).any() and not (ids[~blank] == MASK).any()
    assert IGNORED == -100


def test_a_blank_says_nothing_of_its_answer():
    """Other answers, and the model reads the same: at [MASK] and at other tokens alike."""
    first = np.full((50, 30), 10)
    second = np.where(np.arange(30) % 2, 10, 500)[None].repeat(50, 0)
    (a, labels), (b, others) = (masking(random=0.2)(ids, seed=3) for ids in (first, second))
    assert_array_equal(labels != IGNORED, others != IGNORED)
    changed = (labels != others) & ((a != first) | (b != second))
    assert changed.sum() > 50
    assert_array_equal(a[changed], b[changed])


@pytest.mark.parametrize("whole", [None, CONTINUES], ids=["tokens", "whole words"])
def test_each_row_has_its_share_as_exactly_as_whole_numbers_allow(batch, whole):
    real = ~np.isin(batch, SPECIAL)
    first = real & ~(np.pad(real, ((0, 0), (1, 0)))[:, :-1] & CONTINUES[batch]) if whole is not None else real
    blank = masking(continues=whole)(batch).labels != IGNORED
    wanted = 0.15 * first.sum(1)
    chosen = (blank & first).sum(1)
    assert ((chosen == np.floor(wanted)) | (chosen == np.ceil(wanted))).all()
    assert len(set(chosen[1000:1100].tolist())) > 1, "rounded up and down, as the fraction says"
    assert within((chosen - np.floor(wanted)).sum(), len(batch), (wanted - np.floor(wanted)).mean())


def test_every_text_has_a_blank_if_it_has_a_token():
    ids = np.array([[CLS, 20, SEP, PAD], [CLS, SEP, PAD, PAD], [CLS, UNK, SEP, PAD]])
    for seed in range(20):
        _, labels = masking()(ids, seed)
        assert_array_equal(labels != IGNORED, [[False, True, False, False], [False] * 4, [False] * 4])


def test_whole_words_are_whole():
    word, inside = [n for n in range(10, V) if not CONTINUES[n]], [n for n in range(10, V) if CONTINUES[n]]
    rng = np.random.default_rng(0)
    rows, words = [], []  # words: the number of each token's word, 0 for special tokens
    for _ in range(300):
        row, number = [CLS], [0]
        for k in range(1, 9):
            row += [rng.choice(word), *rng.choice(inside, rng.integers(0, 4))]
            number += [k] * (len(row) - len(number))
        row, number = [*row, SEP, *rng.choice(inside, 2), SEP], [*number, 0, 9, 9, 0]  # the rest of a word cut off
        rows.append(row + [PAD] * (40 - len(row)))
        words.append(number + [0] * (40 - len(number)))
    words = np.array(words)
    blank = masking(share=0.3, continues=CONTINUES)(np.array(rows), 4).labels != IGNORED
    some_in_part = 0
    for row, chosen in zip(words, blank, strict=True):
        for k in range(1, 10):
            assert chosen[row == k].all() == chosen[row == k].any()
            some_in_part += chosen[row == k].all() and (row == k).sum() > 1
        assert not chosen[row == 0].any()
    assert some_in_part > 200
    alone = masking(share=0.3)(np.array(rows), 4).labels != IGNORED
    parts = [chosen[row == k] for row, chosen in zip(words, alone, strict=True) for k in range(1, 10)]
    assert sum(part.any() and not part.all() for part in parts) > 200, "by tokens, words come in parts"


def test_long_words_are_chosen_as_often_as_short_ones():
    word, inside = 12, 11
    assert CONTINUES[inside] and not CONTINUES[word]
    row = [word, word, inside, inside, inside, inside] * 10
    blank = masking(continues=CONTINUES)(np.tile(row, (3000, 1)), 6).labels != IGNORED
    assert within(blank[:, ::6].sum(), 30_000, 0.15) and within(blank[:, 1::6].sum(), 30_000, 0.15)


def test_every_place_is_chosen_as_often(batch):
    blank = masking()(batch[500:], 8).labels != IGNORED
    real = ~np.isin(batch[500:], SPECIAL)
    for place in range(1, 63):
        assert within(blank[:, place].sum(), real[:, place].sum(), 0.15)


def test_the_same_seed_makes_the_same_blanks(batch):
    assert same(masking()(batch, 1), masking()(batch, 1))
    assert not same(masking()(batch, 1), masking()(batch, 2))


def test_blanks_for_a_tokenizer():
    tokenizer = WordPiece.train(["the film is filmed and filming", "and acting is acted"] * 2, 60)
    ids = tokenizer.encode(["the film and the acting", "snow"]).ids
    for whole in (False, True):
        masked = Masking.of(tokenizer, 1.0, 1.0, 0.0, whole_words=whole)(ids)
        special = np.isin(ids, [tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id])
        assert_array_equal(masked.ids, np.where(special, ids, tokenizer.mask_id))
        assert_array_equal(masked.labels, np.where(special, IGNORED, ids))
    ids = tokenizer.encode(["filmi actet " * 4] * 40).ids
    assert set(tokenizer.tokens(ids[0])) & {"##i", "##et", "##t"}
    found = [Masking.of(tokenizer, 0.3, whole_words=whole)(ids).labels != IGNORED for whole in (False, True)]
    word = np.cumsum(~tokenizer.continues[ids[0]])
    parts = [{(row[word == k].all(), row[word == k].any()) for row in blank for k in set(word)} for blank in found]
    assert (False, True) in parts[0] and (False, True) not in parts[1]


def test_special_tokens_that_were_added_are_no_blanks():
    tokenizer = WordPiece.train(["the cat sat on the mat"] * 20, 60)
    bare = tokenizer.special_ids
    assert bare == (0, 1, 2, 3, 4)
    tokenizer._fast.add_special_tokens(["[E1]"])
    tokenizer._fast.add_tokens(["catflap"])
    tokenizer = WordPiece(tokenizer._fast)
    added, ordinary = tokenizer.vocab_size - 2, tokenizer.vocab_size - 1
    assert tokenizer.special_ids == (*bare, added)
    ids = tokenizer.encode(["[E1] cat [E1] sat catflap"]).ids
    blanks = Masking.of(tokenizer, 1.0, 1.0, 0.0)(ids)
    assert (ids == added).sum() == 2 and (blanks.ids[ids == added] == added).all()
    assert ordinary in ids and (blanks.labels[ids == ordinary] == ordinary).all()


@pytest.mark.parametrize("multiple", [1, 42])
def test_every_sequence_comes_once_and_its_answers_put_it_together_again(multiple):
    sequences = texts()
    rows, batches = [], MaskedBatches(sequences, masking(), 32, seed=3, multiple=multiple)
    assert len(batches) == 13
    for ids, labels in batches:
        assert multiple == 1 or ids.shape[1] == 42
        whole = np.where(labels == IGNORED, ids, labels)
        for row in whole:
            kept = row[: (row != PAD).sum()]
            rows.append(tuple(kept.tolist()))
            assert (row[len(kept) :] == PAD).all()
        if multiple == 1:
            assert (whole != PAD).any(0).all(), "padded to the longest and no further"
    assert sorted(rows) == sorted(tuple(row.tolist()) for row in sequences)


def test_little_is_padding():
    batches = list(MaskedBatches(texts(2000), masking(), 32))
    assert sum((ids == PAD).sum() for ids, _ in batches) / sum(ids.size for ids, _ in batches) < 0.1


def blanks_of(batches):
    """The blanks of each sequence, by the sequence."""
    found = {}
    for ids, labels in batches:
        for row, answers in zip(np.where(labels == IGNORED, ids, labels), labels, strict=True):
            kept = (row != PAD).sum()
            found[tuple(row[:kept].tolist())] = (answers[:kept] != IGNORED).tolist()
    return found


def test_blanks_are_fresh_in_every_epoch_or_stay():
    for fresh in (True, False):
        batches = MaskedBatches(texts(longest=200), masking(), 32, seed=3, fresh=fresh)
        first, second = blanks_of(batches), blanks_of(batches.epoch(1))
        equal = sum(first[text] == second[text] for text in first)
        assert equal < len(first) / 5 if fresh else equal == len(first)
        orders = [[len(ids[0]) for ids, _ in epoch] for epoch in (batches, batches.epoch(1))]
        assert orders[0] != orders[1], "the order is another one in any case"
        assert blanks_of(MaskedBatches(texts(longest=200), masking(), 32, seed=4, fresh=fresh)) != first


def test_the_size_of_a_batch_changes_no_blank():
    first, second = (MaskedBatches(texts(), masking(), size, seed=3, epoch=2) for size in (8, 50))
    assert blanks_of(first) == blanks_of(second)


def test_texts_of_one_batch_have_blanks_of_their_own():
    batches = MaskedBatches([np.full(60, 10)] * 64, masking(), 64)
    assert len({tuple(row) for row in (batches[0].labels != IGNORED).tolist()}) > 60


def test_any_epoch_can_be_entered_anywhere():
    batches = MaskedBatches(texts(), masking(), 32, seed=4)
    straight = [list(batches.epoch(epoch)) for epoch in range(4)]
    assert same(MaskedBatches(texts(), masking(), 32, seed=4, epoch=3)[5], straight[3][5])
    assert same(batches.epoch(2).epoch(1)[7], straight[1][7])
    assert same(batches[2], straight[0][2]), "asking for another epoch leaves this one as it is"
    assert [batches.number, batches.epoch(3).number] == [0, 3]
    n = len(batches)
    expected = [*straight[0][-2:], *straight[1][:3]]
    assert all(same(a, b) for a, b in zip(batches.steps(n - 2, n + 3), expected, strict=True))
    assert same(next(batches.epoch(1).steps(n + 1)), straight[1][1])


def test_windows_in_one_array_are_sequences_too():
    ids = np.random.default_rng(0).integers(8, V, (100, 16))
    assert same(MaskedBatches(ids, masking())[1], MaskedBatches(list(ids), masking())[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0}, "share must lie above 0 and be 1 at most, such as 0.15; got 0"),
        ({"share": 1.5}, "share must lie above 0"),
        ({"share": float("nan")}, "share must lie above 0"),
        ({"masked": 0.8, "random": 0.3}, "masked and random are shares, 1 in all at most, .* got 0.8 and 0.3"),
        ({"random": -0.1}, "masked and random are shares"),
        ({"continues": np.zeros(5, bool)}, r"continues must be boolean, one for each of 1000 tokens; got bool \(5,\)"),
        ({"continues": np.zeros(V, int)}, r"got int64 \(1000,\)"),
        ({"special_ids": (V,)}, r"special tokens must lie in 0 \.\.\. 999"),
        ({"pad_id": -1}, r"special tokens must lie in 0 \.\.\. 999"),
        ({"vocab_size": 2, "pad_id": 0, "mask_id": 1}, "tokens in the vocabulary that are not special"),
    ],
)
def test_blanks_that_cannot_be_made(options, message):
    with pytest.raises(ValueError, match=message):
        Masking(**{"vocab_size": V, "mask_id": MASK, "pad_id": PAD, **options})


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (np.array([1, 2]), ValueError, r"ids must have shape \(B, T\), got \(2,\)"),
        (np.array([[0.5]]), TypeError, "ids must be integers, got float64"),
        (np.array([[5, V]]), ValueError, r"ids must lie in 0 \.\.\. 999, got ids from 5 to 1000"),
        (np.array([[-100]]), ValueError, r"ids must lie in 0 \.\.\. 999"),
    ],
)
def test_ids_that_are_none(ids, error, message):
    with pytest.raises(error, match=message):
        masking()(ids)


def test_ids_outside_the_vocabulary_in_a_batch():
    with pytest.raises(ValueError, match=r"ids must lie in 0 \.\.\. 999"):
        MaskedBatches([np.array([V])], masking())[0]


@pytest.mark.parametrize(
    ("sequences", "options", "error", "message"),
    [
        ([], {}, ValueError, "at least one sequence"),
        ([np.array([], int)], {}, ValueError, "every sequence needs at least one token"),
        (["text"], {}, TypeError, "encode the texts"),
        ([np.array([8])], {"batch_size": 0}, ValueError, "batch_size must be a whole number of 1 or more"),
        ([np.array([8])], {"seed": -1}, ValueError, "seed must be a whole number of 0 or more"),
        ([np.array([8])], {"seed": None}, ValueError, "seed must be a whole number of 0 or more"),
        ([np.array([8])], {"epoch": -1}, ValueError, "epoch must be a whole number of 0 or more"),
        ([np.array([8])], {"multiple": 0}, ValueError, "multiple must be a whole number of 1 or more"),
    ],
)
def test_bad_batches(sequences, options, error, message):
    with pytest.raises(error, match=message):
        MaskedBatches(sequences, masking(), **options)


def test_no_epoch_before_the_first():
    with pytest.raises(ValueError, match="epoch must be a whole number of 0 or more, got -1"):
        MaskedBatches(texts(3), masking()).epoch(-1)


def test_other_epochs_bring_texts_into_other_company():
    batches = MaskedBatches([np.full(40, 8 + n) for n in range(400)], masking(), 8)
    together = [
        {frozenset(np.where(labels == IGNORED, ids, labels)[:, 0].tolist()) for ids, labels in epoch}
        for epoch in (batches, batches.epoch(1))
    ]
    assert len(together[0] & together[1]) < 5


def test_batches_do_not_come_in_order_of_length():
    lengths = [ids.shape[1] for ids, _ in MaskedBatches(texts(512), masking(), 32)]
    assert abs(np.corrcoef(lengths, np.arange(len(lengths)))[0, 1]) < 0.7 and lengths != sorted(lengths)
