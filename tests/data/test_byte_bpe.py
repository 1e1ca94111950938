"""Byte-level BPE: no text is unknown, none is changed; the pairs are those that the paper's procedure joins."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from course_lib.text.byte_bpe import END, LETTERS, ByteLevelBPE

TEXTS = [
    "The cat sat on the mat; the cat was fat.",
    "It's 1984, and they're naïve: 日本語, 🙂, ﬁne.",
    "  two  spaces\n\n\tand\r\nlines ",
    "the other theatre, then there",
] * 3


@pytest.fixture(scope="module")
def tokenizer():
    return ByteLevelBPE.train(TEXTS, 300)


@pytest.mark.parametrize("text", [*TEXTS[:4], "", " ", "\x00\x7f\u2028", "e\u0301", "never seen: ĸ ∮ 𝔘 ॐ", "\ufffd"])
def test_a_text_comes_back_as_it_was(tokenizer, text):
    (ids,) = tokenizer.encode(text)
    assert ids.dtype == np.int64 and ids.ndim == 1
    assert tokenizer.decode(ids) == text
    assert b"".join(tokenizer.tokens(ids)) == text.encode()


def test_random_texts_come_back(tokenizer):
    rng = np.random.default_rng(0)
    points = rng.integers(0x110000, size=(200, 30))
    texts = ["".join(chr(p) for p in row if not 0xD800 <= p < 0xE000) for row in points]
    assert tokenizer.decode(tokenizer.encode(texts)) == texts


def test_what_is_left_when_no_pair_was_learned():
    plain = ByteLevelBPE.train(TEXTS, 257)
    assert (plain.vocab_size, plain.end_id) == (257, 0)
    assert plain.tokens(plain.encode("né")[0]) == [b"n", b"\xc3", b"\xa9"]


def learned(text: str, n: int) -> list[bytes]:
    """The first n pairs that are joined in a text of one word, of which no two are equally frequent."""
    pieces, joined = [bytes([byte]) for byte in text.encode()], []
    for _ in range(n):
        ((pair, _),) = Counter(zip(pieces, pieces[1:], strict=False)).most_common(1)
        joined.append(b"".join(pair))
        found, i = [], 0
        while i < len(pieces):
            both = tuple(pieces[i : i + 2]) == pair
            found.append(b"".join(pair) if both else pieces[i])
            i += 1 + both
        pieces = found
    return joined


def test_the_most_frequent_pair_is_joined_first():
    text = "abababababcdcdcdefef"
    tokenizer = ByteLevelBPE.train([text], 260)
    assert tokenizer.tokens([257, 258, 259]) == learned(text, 3) == [b"ab", b"abab", b"cd"]


def test_pieces_are_those_of_gpt2():
    """Words take the space before them; numbers, punctuation and the endings of English stand apart."""
    tokenizer = ByteLevelBPE.train(["they're 1984  fine... they're 1984  fine..."] * 9, 2000)
    said = tokenizer.tokens(tokenizer.encode("they're 1984  fine...")[0])
    assert said == [b"they", b"'re", b" 1984", b" ", b" fine", b"..."]


def test_no_pair_reaches_from_one_text_into_the_next():
    tokenizer = ByteLevelBPE.train(["a", "b"] * 50, 300)
    assert tokenizer.vocab_size == 257
    assert ByteLevelBPE.train(["ab"] * 50, 300).vocab_size == 258  # no space comes in front


def test_transformers_reads_the_same(tokenizer, tmp_path):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.GPT2TokenizerFast.from_pretrained(tokenizer.save(tmp_path / "made"))
    for text in [*TEXTS, "unseen ĸ 𝔘"]:
        (ids,) = tokenizer.encode(text)
        assert theirs(text)["input_ids"] == ids.tolist()
        assert theirs.decode(ids, clean_up_tokenization_spaces=False) == text


def test_a_text_that_looks_like_the_special_token(tokenizer):
    (ids,) = tokenizer.encode(f"a{END}b")
    assert tokenizer.end_id not in ids
    assert tokenizer.decode(ids) == f"a{END}b"


def test_decoding_stops_at_the_end_and_shows_half_a_character(tokenizer):
    (ids,) = tokenizer.encode("the cat")
    after = [*ids, tokenizer.end_id, *ids]
    assert tokenizer.decode(after) == "the cat"
    assert tokenizer.decode([ids, np.array(after)]) == ["the cat", "the cat"]
    plain = ByteLevelBPE.train(["x"], 257)
    assert plain.decode(plain.encode("é")[0][:1]) == "\N{REPLACEMENT CHARACTER}"
    assert tokenizer.decode([]) == ""


def test_letters_are_those_of_gpt2():
    assert len(LETTERS) == len(set(LETTERS.values())) == 256
    assert (LETTERS["A"], LETTERS["Ġ"], LETTERS["Ċ"], LETTERS["Ã"]) == (65, 32, 10, 195)


def test_saved_and_loaded(tokenizer, tmp_path):
    folder = tokenizer.save(tmp_path / "new" / "folder")
    again = ByteLevelBPE.load(folder)
    for text in TEXTS:
        assert_array_equal(again.encode(text)[0], tokenizer.encode(text)[0])
    assert (again.vocab_size, again.end_id) == (tokenizer.vocab_size, tokenizer.end_id)
    assert (folder / "merges.txt").read_text(encoding="utf-8").startswith("#version: 0.2\n")
    again.save(folder)  # over what is there


def test_a_folder_without_the_special_token(tokenizer, tmp_path):
    """RoBERTa's has other ones."""
    tokenizer.save(tmp_path)
    path = tmp_path / "vocab.json"
    path.write_text(path.read_text(encoding="utf-8").replace(END, "<s>"), encoding="utf-8")
    assert ByteLevelBPE.load(tmp_path).end_id is None


def test_the_same_texts_give_the_same_tokens_in_another_process(tokenizer, tmp_path):
    code = f"from course_lib.text.byte_bpe import ByteLevelBPE as B; B.train({TEXTS!r}, 300).save({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
    tokenizer.save(tmp_path / "here")
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / name).read_text("utf-8") == (tmp_path / "here" / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("texts", "size", "error", "says"),
    [
        ("one text", 300, TypeError, "many texts, not one str"),
        ([], 300, ValueError, "from no text"),
        ([""], 300, ValueError, "from no text"),
        (["a", 7], 300, TypeError, r"texts\[1\] is a int"),
        (["a"], 256, ValueError, "vocab_size"),
        (["a", "\ud800"], 300, ValueError, "half of a character"),
    ],
)
def test_what_nothing_is_learned_from(texts, size, error, says):
    with pytest.raises(error, match=says):
        ByteLevelBPE.train(texts, size)


@pytest.mark.parametrize("ids", [[0.5], [300], [-1]])
def test_ids_that_are_none(tokenizer, ids):
    with pytest.raises(ValueError, match="ids must"):
        tokenizer.decode(ids)


def test_half_of_a_character_is_not_encoded(tokenizer):
    with pytest.raises(ValueError, match="lone surrogate"):
        tokenizer.encode(["fine", "\udc00"])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("vocab.json", "{", "holds no byte-level BPE"),
        ("vocab.json", "[1]", "map tokens to ids"),
        ("vocab.json", '{"a": 0}', "lacks 255 of the 256 bytes"),
        ("merges.txt", "a b c\n", "two tokens in each line; one has 3"),
        ("merges.txt", "ab cd\n", "do not belong to this vocabulary"),
    ],
)
def test_files_of_something_else(tokenizer, tmp_path, name, content, says):
    tokenizer.save(tmp_path)
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=says):
        ByteLevelBPE.load(tmp_path)


def test_ids_with_a_gap_or_strange_letters_are_refused(tokenizer):
    vocab = {letter: number for number, letter in enumerate(LETTERS)}
    with pytest.raises(ValueError, match="must be 0 to 256, each once"):
        ByteLevelBPE(vocab | {"ab": 300}, [])
    with pytest.raises(ValueError, match="stand for no byte, such as '語'"):
        ByteLevelBPE(vocab | {"語": 256}, [])


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"vocab\.json; train a tokenizer"):
        ByteLevelBPE.load(tmp_path)


def test_files_stay_when_the_disk_is_full(tokenizer, tmp_path, monkeypatch):
    tokenizer.save(tmp_path)
    before = (tmp_path / "vocab.json").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dumps", full)
    with pytest.raises(OSError, match="No space"):
        ByteLevelBPE.train(["other"], 260).save(tmp_path)
    assert (tmp_path / "vocab.json").read_bytes() == before
