"""Tokens, the characters they stand for, and windows of long texts: against `transformers` on the real vocabulary."""

import numpy as np
import pytest
from transformers import BertTokenizerFast

from course_lib.data import fetch
from course_lib.text.offsets import locate
from course_lib.text.wordpiece import WordPiece

TEXTS = [
    "Snowboarding in São João, 1066.",
    "e\u0301cole ÉTÉ İstanbul ﬁne ½",
    "한국어 인 人工智能 and 日本語",
    "smile 😀 family 👨‍👩‍👧 flag 🇵🇹 end",
    "zero\u200bwidth, bell\x07 no\u00a0break \ufffd",
    "",
    " \n ",
    "x" * 10_000 + " after",
    "[SEP] inside [MASK]",
    "word " * 150,
]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece.from_pretrained("minilm-l6")


@pytest.fixture(scope="module")
def theirs():
    tokenizer = BertTokenizerFast.from_pretrained(fetch("minilm-l6"))
    tokenizer.model_max_length = 10**9
    return tokenizer


def same(found, expected, parts):
    """Windows equal those of `transformers`."""
    assert len(found.ids) == len(expected["input_ids"])
    for w, ids in enumerate(found.ids):
        assert ids.tolist() == expected["input_ids"][w]
        assert found.segments[w].tolist() == expected["token_type_ids"][w]
        assert found.offsets[w].tolist() == [list(place) for place in expected["offset_mapping"][w]]
        assert found.parts[w].tolist() == [-1 if part is None else part for part in expected.sequence_ids(w)]
        assert set(found.parts[w]) <= {-1, *parts}
    assert found.rows.tolist() == expected["overflow_to_sample_mapping"] and found.rows.dtype == np.int64


def test_texts_and_pairs_equal_transformers(tokenizer, theirs):
    options = {"return_offsets_mapping": True, "return_overflowing_tokens": True}
    same(locate(tokenizer, TEXTS), theirs(TEXTS, **options), (0,))
    same(locate(tokenizer, TEXTS, TEXTS[::-1]), theirs(TEXTS, TEXTS[::-1], **options), (0, 1))
    assert [len(ids) for ids in locate(tokenizer, "").ids] == [2]


@pytest.mark.parametrize(("max_len", "stride"), [(32, 0), (32, 5), (40, 18), (152, 20), (1000, 900)])
def test_windows_equal_transformers(tokenizer, theirs, max_len, stride):
    questions = [f"who is number {i}?" for i in range(len(TEXTS))]
    options = {"return_offsets_mapping": True, "return_overflowing_tokens": True, "max_length": max_len}
    expected = theirs(questions, TEXTS, truncation="only_second", stride=stride, **options)
    same(locate(tokenizer, questions, TEXTS, max_len, stride), expected, (0, 1))
    expected = theirs(TEXTS, truncation=True, stride=stride, **options)
    same(locate(tokenizer, TEXTS, None, max_len, stride), expected, (0,))


@pytest.mark.parametrize("length", range(1, 14))
def test_windows_hold_every_token_and_share_the_stride(tokenizer, length):
    text = " ".join("abcdefghijklm"[:length])
    found = locate(tokenizer, "who?", text, max_len=10, stride=2)  # room for 5 tokens of the text
    bodies = [place[part == 1, 0].tolist() for place, part in zip(found.offsets, found.parts, strict=True)]
    assert bodies[0][0] == 0 and bodies[-1][-1] == 2 * length - 2 and max(map(len, bodies)) <= 5
    for before, after in zip(bodies[:-1], bodies[1:], strict=True):
        assert before[-2:] == after[:2] and after[-1] > before[-1]
    assert locate(tokenizer, text, max_len=length + 2, stride=99).rows.tolist() == [0], "it fits"
    assert len(bodies) == (1 if length <= 5 else -(-(length - 2) // 3))


def test_offsets_are_of_the_text_as_it_was_written(tokenizer):
    text = "E\u0301COLE São 人工 😀!"
    found = locate(tokenizer, text)
    pieces = [text[first:last] for first, last in found.offsets[0]]
    assert pieces == ["", "E\u0301COLE", "São", "人", "工", "😀", "!", ""]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([],), {}, ValueError, "texts is empty"),
        ((["a"], ["b", "c"]), {}, ValueError, "1 texts but 2 pairs"),
        ((3,), {}, TypeError, "texts must be a str or a sequence"),
        ((["a"], [None]), {}, TypeError, r"pairs\[0\] is a NoneType"),
        ((["a"], ["b\ud83d"]), {}, ValueError, r"pairs\[0\] holds half of a character"),
        (("a b c d",), {"max_len": 5, "stride": 3}, ValueError, "special tokens take 2 tokens, so 3 of max_len = 5"),
        (("a b c d",), {"max_len": 0}, ValueError, "max_len must be a whole number of 1 or more"),
        (("a b c d",), {"max_len": 1}, ValueError, "so 0 of max_len = 1 are left"),
        ((["a", "b " * 20], ["c", "d"]), {"max_len": 12}, ValueError, "the first text of pair 1 and the special"),
        (("a",), {"stride": -1}, ValueError, "stride must be a whole number of 0 or more"),
    ],
)
def test_what_is_refused(tokenizer, arguments, options, error, message):
    with pytest.raises(error, match=message):
        locate(tokenizer, *arguments, **options)
