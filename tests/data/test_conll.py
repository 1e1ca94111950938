"""CoNLL-2003: its format in both schemes, its documents, and its numbers as published."""

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from course_lib.data import DataError, conll
from course_lib.data.conll import iob2, load, read_conll

ORIGINAL = """-DOCSTART- -X- O O

U.N. NNP I-NP I-ORG
official NN I-NP O
Rolf NNP I-NP I-PER
Ekeus NNP I-NP I-PER

In IN I-PP O
Paris NNP I-NP I-LOC
London NNP I-NP B-LOC
EU NNP I-NP I-ORG

-DOCSTART- -X- O O

-DOCSTART- -X- O O

Peter NNP I-NP I-PER
-DOCSTART- -X- O O
Ü NNP I-NP O"""


def test_the_original_format(tmp_path):
    path = tmp_path / "eng.testa"
    path.write_text(ORIGINAL, encoding="utf-8")
    found = read_conll(path)
    assert found.words == [["U.N.", "official", "Rolf", "Ekeus"], ["In", "Paris", "London", "EU"], ["Peter"], ["Ü"]]
    assert found.tags == [
        ["B-ORG", "O", "B-PER", "I-PER"], ["O", "B-LOC", "B-LOC", "B-ORG"], ["B-PER"], ["O"],
    ]  # fmt: skip
    assert_array_equal(found.documents, [0, 0, 1, 2])
    assert found.documents.dtype == np.int64
    for other in (ORIGINAL.replace("\n", "\r\n"), ORIGINAL + "\n\n\n", "\ufeff" + ORIGINAL):
        path.write_bytes(other.encode())
        again = read_conll(str(path))
        assert again.words == found.words and again.tags == found.tags


def test_a_file_without_documents(tmp_path):
    (tmp_path / "own.txt").write_text("Peter\tI-PER\nsings\tO\n\nYes\tO\n")
    assert_array_equal(read_conll(tmp_path / "own.txt").documents, [0, 0])


def test_a_word_may_hold_spaces_of_another_kind(tmp_path):
    """A no-break space is a part of its word, and any space where tabs divide the columns."""
    (tmp_path / "own.txt").write_text("10\u00a0000 B-NUM\nNew York \tB-LOC\t\n \t \n", encoding="utf-8")
    found = read_conll(tmp_path / "own.txt")
    assert found.words == [["10\u00a0000", "New York"]] and found.tags == [["B-NUM", "B-LOC"]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("O", "O"),
        ("I-PER", "B-PER"),
        ("I-PER I-PER O I-PER", "B-PER I-PER O B-PER"),
        ("I-PER B-PER I-PER", "B-PER B-PER I-PER"),
        ("I-PER I-ORG I-ORG", "B-PER B-ORG I-ORG"),
        ("B-PER I-PER B-PER O B-LOC I-LOC", "B-PER I-PER B-PER O B-LOC I-LOC"),
        ("B-PER I-ORG", "B-PER B-ORG"),
    ],
)
def test_schemes(before, after):
    assert iob2(before.split()) == after.split()
    assert iob2(after.split()) == after.split()


@pytest.mark.parametrize("tag", ["E-PER", "S-PER", "PER", "B-", "", "B_PER", "o"])
def test_tags_of_no_scheme(tag):
    with pytest.raises(ValueError, match="a tag is O, or B- or I- and a kind of entity, such as B-PER; got"):
        iob2(["O", tag])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no sentence"),
        (b"-DOCSTART- -X- O O\n\n", "holds no sentence"),
        (b"Peter I-PER\nsings\n", "Line 2 of .* should have a word and a tag, and has 1 column"),
        (b"Peter I-PER\nsings V\n", "Line 2 of .*: a tag is O, .* got 'V'"),
        (b"M\xfcller I-PER\n", "is not a text in UTF-8"),
    ],
)
def test_files_that_are_something_else(tmp_path, content, message):
    (tmp_path / "eng.train").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_conll(tmp_path / "eng.train")


def test_no_such_file_or_part(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_conll(tmp_path / "nothing")
    with pytest.raises(ValueError, match="part must be one of 'train', 'validation', 'test'; got 'testa'"):
        load("testa")


@pytest.fixture(scope="module")
def parts():
    return {part: load(part) for part in conll.PARTS}


def test_real_sentences_as_many_as_published(parts):
    """Tables 1 and 2 of the paper; its numbers of sentences count the lines between documents as well."""
    published = {
        "train": (946, 14987, 203621, 7140, 3438, 6321, 6600),
        "validation": (216, 3466, 51362, 1837, 922, 1341, 1842),
        "test": (231, 3684, 46435, 1668, 702, 1661, 1617),
    }
    for part, (documents, sentences, words, *entities) in published.items():
        found = parts[part]
        assert len(set(found.documents)) == documents and (np.diff(found.documents) >= 0).all()
        assert len(found.words) == sentences - documents
        assert sum(map(len, found.words)) == words
        kinds = Counter(tag[2:] for tags in found.tags for tag in tags if tag[0] == "B")
        assert [kinds[kind] for kind in ("LOC", "MISC", "ORG", "PER")] == entities


def test_real_tags_are_one_for_each_word_and_in_their_scheme(parts):
    for found in parts.values():
        for words, tags in zip(found.words, found.tags, strict=True):
            assert len(words) == len(tags) and iob2(tags) == tags
    assert parts["train"].words[0] == "EU rejects German call to boycott British lamb .".split()
    assert parts["train"].tags[0] == "B-ORG O B-MISC O O O B-MISC O O".split()


def test_no_canonical_source_changes_that(monkeypatch, parts):
    monkeypatch.setenv("COURSE_DATA_SOURCE", "canonical")
    assert load("validation").words == parts["validation"].words
