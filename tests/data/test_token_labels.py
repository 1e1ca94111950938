"""Labels of words on tokens and back, on the real vocabulary: no word is lost, whatever it is."""

import numpy as np
import pytest
from transformers import BertTokenizerFast

from course_lib.batches.texts import IGNORED
from course_lib.batches.tokens import encode_words, token_labels, word_tags
from course_lib.data import fetch
from course_lib.text.wordpiece import WordPiece

NAMES = ["O", "B-PER", "I-PER", "B-LOC"]
SENTENCES = [
    ["Owen", "O'Snowboarder", "lives", "in", "Llanfairpwll", "."],
    ["two", "words"],
    [],
    ["", "a", "\u200b", "x" * 10_000, "[SEP]", "😀", "人工智能", "été"],
    ["New York", "is", "one", "word", "here"],
]
TAGS = [
    ["B-PER", "I-PER", "O", "O", "B-LOC", "O"],
    ["O", "B-LOC"],
    [],
    ["B-PER", "O", "B-LOC", "I-PER", "B-LOC", "B-PER", "B-LOC", "I-PER"],
    ["B-LOC", "O", "O", "O", "O"],
]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece.from_pretrained("minilm-l6")


def test_ids_and_first_pieces_are_those_of_transformers(tokenizer):
    theirs = BertTokenizerFast.from_pretrained(fetch("minilm-l6"))
    encoded = encode_words(SENTENCES, tokenizer)
    for sentence, ids, firsts in zip(SENTENCES, encoded.ids, encoded.firsts, strict=True):
        expected = theirs(sentence, is_split_into_words=True)
        assert ids.tolist() == expected.input_ids and ids.dtype == np.int64
        words = expected.word_ids()
        assert firsts.tolist() == [words.index(i) if i in words else -1 for i in range(len(sentence))]


def test_the_first_piece_has_the_label_and_nothing_else(tokenizer):
    encoded = encode_words(SENTENCES, tokenizer)
    labels = token_labels(encoded, TAGS, NAMES)
    tokens = tokenizer.tokens(encoded.ids[0])
    named = {i: NAMES[label] for i, label in enumerate(labels[0]) if label != IGNORED}
    expected = {"owen": "B-PER", "o": "I-PER", "lives": "O", "in": "O", "ll": "B-LOC", ".": "O"}
    assert {tokens[i]: tag for i, tag in named.items()} == expected and len(tokens) > len(named) + 4
    assert IGNORED == -100 and labels[0][0] == labels[0][-1] == IGNORED, "special tokens"
    assert [len(row) for row in labels] == [len(row) for row in encoded.ids]
    assert labels[3][-1] == IGNORED, "where words without a token would end up"
    assert labels[2].tolist() == [IGNORED, IGNORED] and labels[0].dtype == np.int64


def test_tags_come_back_and_a_word_without_a_token_is_outside(tokenizer):
    encoded = encode_words(SENTENCES, tokenizer)
    labels = [np.where(row == IGNORED, 1, row) for row in token_labels(encoded, TAGS, NAMES)]  # others are not read
    back = word_tags(encoded, labels, NAMES)
    assert [len(row) for row in back] == [len(row) for row in SENTENCES]
    assert back[:3] == TAGS[:3] and back[4] == TAGS[4]
    assert back[3] == ["O", "O", "O", *TAGS[3][3:]], "an empty word and an invisible one have no token"
    padded = np.full((len(labels), max(map(len, labels)) + 3), 2)
    for row, own in zip(padded, labels, strict=True):
        row[: len(own)] = own
    assert word_tags(encoded, padded, NAMES) == back


@pytest.mark.parametrize("max_len", [3, 4, 7, 8, 100])
def test_what_is_cut_off_is_counted_and_outside(tokenizer, max_len):
    encoded, whole = encode_words(SENTENCES, tokenizer, max_len), encode_words(SENTENCES, tokenizer)
    assert max(map(len, encoded.ids)) <= max_len
    n_cut = 0
    for ids, firsts, all_ids, all_firsts in zip(*encoded[:2], *whole[:2], strict=True):
        kept = all_firsts < (max_len - 1 if len(all_ids) > max_len else len(all_ids))
        assert ids.tolist() == [*all_ids[: len(ids) - 1], tokenizer.sep_id]
        assert firsts.tolist() == np.where(kept, all_firsts, -1).tolist()
        n_cut += (~kept).sum()
    assert encoded.n_cut == n_cut and (n_cut > 0) == (max_len < 100)
    assert str(encoded) == f"21 words in 5 sentences; {n_cut} cut off by the length"
    labels = token_labels(encoded, [["B-LOC"] * len(row) for row in SENTENCES], NAMES)
    back = word_tags(encoded, labels, NAMES)
    assert sum(row.count("B-LOC") for row in back) == 21 - 2 - n_cut
    assert [len(row) for row in back] == [len(row) for row in SENTENCES]


def test_a_word_of_many_tokens_leaves_its_place(tokenizer):
    encoded = encode_words([["stop", "!" * 10_000, "here"]], tokenizer, max_len=16)
    assert encoded.firsts[0].tolist() == [1, 2, -1] and encoded.n_cut == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), ValueError, "sentences is empty"),
        (("a b",), TypeError, "many lists of words, not one str"),
        ((["a b"],), TypeError, r"sentences\[0\] is one str; give its words"),
        (([["a"], ["b", 3]],), TypeError, r"sentences\[1\]\[1\] is a int, not a str"),
        (([["a"], ["b", "c\ud83d"]],), ValueError, r"sentences\[1\]\[1\] holds half of a character"),
        (([["a"]], 2), ValueError, "max_len must be a whole number of 3 or more"),
    ],
)
def test_words_that_are_refused(tokenizer, arguments, error, message):
    with pytest.raises(error, match=message):
        encode_words(arguments[0], tokenizer, *arguments[1:])


def test_labels_that_do_not_fit_are_refused(tokenizer):
    encoded = encode_words([["one", "two"]], tokenizer)
    for tags, message in (
        ([], "1 sentences but tags of 0"),
        ([["O"]], "sentence 0 has 2 words but 1 tags"),
        ([["O", "B-ORG"]], "sentence 0 has the tag 'B-ORG'; the known ones are O, B-PER"),
    ):
        with pytest.raises(ValueError, match=message):
            token_labels(encoded, tags, NAMES)
    for labels, message in (
        ([], "1 sentences but labels of 0"),
        ([[0, 0, 0]], r"sentence 0 has 4 tokens, but its labels have the shape \(3,\)"),
        (np.zeros((1, 4, 2), int), r"the shape \(4, 2\)"),
        ([[0, 4, 0, 0]], r"labels must lie in 0 ... 3, got 0 to 4"),
        ([[0, -100, 0, 0]], "got -100 to 0"),
    ):
        with pytest.raises(ValueError, match=message):
            word_tags(encoded, labels, NAMES)
