"""Learned sub-word tokens: what they look like, what becomes of characters and sentences that do not fit."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from course_lib.batches.pairs import EncodedPairs, encode_pairs
from course_lib.data import sentence_pairs
from course_lib.text.bpe import BytePairEncoding

TEXTS = [
    "Este es un problema que tenemos que resolver.",
    "¿Cómo estás, Tom?",
    "¡Qué problema!",
    "Tenemos 25 problemas.",
    "Él está aquí; ella, también.",
] * 4


@pytest.fixture(scope="module")
def tokenizer():
    return BytePairEncoding.train(TEXTS, vocab_size=90)


def test_ids_of_the_special_tokens(tokenizer):
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.start_id, tokenizer.end_id) == (0, 1, 2, 3)
    assert tokenizer.tokens([0, 1, 2, 3]) == ["[PAD]", "[UNK]", "[START]", "[END]"]
    assert 50 < tokenizer.vocab_size <= 90


def test_a_sentence_has_a_start_an_end_and_its_words(tokenizer):
    (ids,) = tokenizer.encode("Que problema.")
    assert ids.dtype == np.int64 and ids.shape == (5,)
    assert tokenizer.tokens(ids) == ["[START]", "▁que", "▁problema", ".", "[END]"]


@pytest.mark.parametrize("text", TEXTS[:5])
def test_decoding_gives_the_text_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)[0]) == text.lower()
    exact = BytePairEncoding.train(TEXTS, vocab_size=90, lower=False)
    assert exact.decode(exact.encode(text)[0]) == text
    assert (tokenizer.lower, exact.lower) == (True, False)


def test_decoding_of_a_batch_stops_at_the_end_token(tokenizer):
    first, second = tokenizer.encode(["Tom está aquí.", "¿Qué?"])
    batch = np.zeros((2, len(first) + 3), dtype=int)
    batch[0, : len(first)], batch[1, : len(second)] = first, second
    batch[0, len(first) :] = first[1]  # what a decoder may write after the end
    assert tokenizer.decode(batch) == ["tom está aquí.", "¿qué?"]
    assert tokenizer.decode([first[1:], second[1:-1]]) == ["tom está aquí.", "¿qué?"]
    assert tokenizer.decode(first[1:-1]) == "tom está aquí."


def test_words_and_punctuation_share_no_token():
    tokenizer = BytePairEncoding.train(["¿que?", "«que»", "que.", "(que) 'que'"] * 50, vocab_size=60)
    for token in tokenizer.tokens(np.arange(4, tokenizer.vocab_size)):
        letters = [character.isalnum() for character in token.replace("▁", "")]
        assert all(letters) or not any(letters), token


def test_unknown_characters_become_one_token_and_nothing_breaks(tokenizer):
    (ids,) = tokenizer.encode("Tom está 日本 ☃.")
    assert (ids == tokenizer.unk_id).sum() == 2
    assert tokenizer.decode(ids) == "tom está [UNK] [UNK]."


def test_what_looks_like_a_special_token_is_text(tokenizer, tmp_path):
    for one in (tokenizer, BytePairEncoding.load(tokenizer.save(tmp_path / "t.json"))):
        (ids,) = one.encode("tom [END] [PAD]")
        assert (ids == one.end_id).sum() == 1 and (ids == one.pad_id).sum() == 0


def test_empty_and_blank_texts_are_start_and_end(tokenizer):
    for ids in tokenizer.encode(["", "  \n"]):
        assert_array_equal(ids, [tokenizer.start_id, tokenizer.end_id])
        assert tokenizer.decode(ids) == ""
    assert tokenizer.encode([]) == [] and tokenizer.decode([]) == ""


def test_white_space_and_unicode_forms_do_not_matter(tokenizer):
    plain, spaced, apart = tokenizer.encode(["¿cómo estás?", " ¿cómo \u00a0\t estás? ", "¿co\u0301mo esta\u0301s?"])
    assert_array_equal(plain, spaced)
    assert_array_equal(plain, apart)


def test_one_json_file_holds_it_all(tokenizer, tmp_path):
    path = tokenizer.save(tmp_path / "new" / "es.json")
    assert [file.name for file in path.parent.iterdir()] == ["es.json"] and json.loads(path.read_text("utf-8"))
    loaded = BytePairEncoding.load(path)
    assert (loaded.vocab_size, loaded.lower) == (tokenizer.vocab_size, True)
    for ours, theirs in zip(tokenizer.encode(TEXTS), loaded.encode(TEXTS), strict=True):
        assert_array_equal(ours, theirs)


def test_the_same_texts_give_the_same_tokens_in_another_process(tokenizer, tmp_path):
    path = tmp_path / "es.json"
    code = f"from course_lib.text.bpe import BytePairEncoding as S; S.train({TEXTS!r}, 90).save({str(path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    digests = [hashlib.sha256(p.read_bytes()).hexdigest() for p in (path, tokenizer.save(tmp_path / "own.json"))]
    assert digests[0] == digests[1]


def test_real_sentences_survive():
    pairs = sentence_pairs.load("tatoeba-es-en")
    texts = pairs.sources[::70].tolist()
    tokenizer = BytePairEncoding.train(texts, vocab_size=1000, lower=False)
    assert tokenizer.vocab_size == 1000
    changed = [text for text in texts if tokenizer.decode(tokenizer.encode(text)[0]) != text]
    assert len(changed) <= 2, changed  # NFKC rewrites a few signs


def test_odd_characters_and_long_words_are_read(tokenizer):
    assert tokenizer.decode(tokenizer.encode("Tom\0está")[0]) == "tom[UNK]está"
    (ids,) = tokenizer.encode("problema" * 10_000)
    assert tokenizer.decode(ids) == "problema" * 10_000


@pytest.mark.parametrize("function", ["encode", "train"])
@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["Tom", None], TypeError, r"texts\[1\] is a NoneType, not a str"),
        ([None, "Tom"], TypeError, r"texts\[0\] is a NoneType, not a str"),
        (5, TypeError, "texts must be a str or a sequence of them, not a int"),
        (["Tom", "To\ud83dm"], ValueError, r"texts\[1\] holds half of a character, the lone surrogate '\\ud83d' at 2;"),
    ],
)
def test_what_is_no_text(tokenizer, function, texts, error, message):
    with pytest.raises(error, match=message):
        getattr(tokenizer, function)(texts)


def test_pairs_that_do_not_fit_are_left_out_and_counted(tokenizer):
    sources = ["tom", "", "que", "que problema", "¿qué?"]
    targets = ["que", "que", " ", "tom " * 9, "tom"]
    found = encode_pairs(sources, targets, tokenizer, tokenizer, max_len=6)
    assert isinstance(found, EncodedPairs)
    assert_array_equal(found.rows, [0, 4])
    assert (found.n_empty, found.n_long) == (2, 1)
    assert str(found) == "2 of 5 pairs kept; 2 empty and 1 over-long ones left out"
    assert tokenizer.decode(found.sources) == ["tom", "¿qué?"] and tokenizer.decode(found.targets) == ["que", "tom"]


def test_max_len_counts_the_special_tokens(tokenizer):
    (ids,) = tokenizer.encode("que problema.")
    for max_len, kept in ((len(ids), 1), (len(ids) - 1, 0)):
        assert len(encode_pairs(["que problema."], ["tom"], tokenizer, tokenizer, max_len).rows) == kept


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: BytePairEncoding.train("one text"), TypeError, "not one str"),
        (lambda t: BytePairEncoding.train(["", " "]), ValueError, "from no text"),
        (lambda t: BytePairEncoding.train(TEXTS, vocab_size=10), ValueError, "vocab_size must be .* or more.*got 10"),
        (lambda t: t.encode(["a", None]), TypeError, r"texts\[1\] is a NoneType, not a str"),
        (lambda t: t.decode([5, 1000]), ValueError, "must lie in 0"),
        (lambda t: t.decode([0.5]), ValueError, "must be integers"),
        (lambda t: t.decode([-1]), ValueError, "must lie in 0"),
        (lambda t: BytePairEncoding.load("nowhere.json"), FileNotFoundError, "no file nowhere.json"),
        (lambda t: encode_pairs(["a"], [], t, t), ValueError, "1 sources but 0 targets"),
        (lambda t: encode_pairs(["a"], ["b"], t, t, 2), ValueError, "max_len must be 3 or more"),
    ],
)
def test_bad_arguments(tokenizer, call, error, message):
    with pytest.raises(error, match=message):
        call(tokenizer)


def test_a_file_that_is_no_tokenizer(tokenizer, tmp_path):
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(ValueError, match="broken.json is not a tokenizer's file"):
        BytePairEncoding.load(tmp_path / "broken.json")
    other = tokenizer.save(tmp_path / "other.json")
    other.write_text(other.read_text("utf-8").replace("[START]", "[BEGIN]"), encoding="utf-8")
    with pytest.raises(ValueError, match="the ids 0 to 3 must be"):
        BytePairEncoding.load(other)
