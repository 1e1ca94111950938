"""The translation pairs: what is in them, and held-out sets that training never saw."""

import numpy as np
import pytest

from course_lib.data import DataError, sentence_pairs
from course_lib.data.families import LARGEST_FAMILY, families, same_text
from course_lib.data.sentence_pairs import BANDS, Pairs, references, split, words


@pytest.fixture(scope="module")
def corpus():
    return sentence_pairs.load("tatoeba-es-en")


@pytest.fixture(scope="module")
def parts(corpus):
    return split(corpus)


def pairs_of(*rows):
    sources, targets = zip(*rows, strict=True)
    return Pairs(*(np.array(column, dtype=object) for column in (sources, targets, [""] * len(rows))))


def keys(part):
    return {same_text(text) for text in part.sources}, {same_text(text) for text in part.targets}


def test_real_corpus(corpus):
    assert [len(column) for column in corpus] == [140_868] * 3
    assert all(column.dtype == object for column in corpus)
    assert all(text.strip() for column in corpus for text in column)
    assert all("tatoeba.org #" in text for text in corpus.attributions)


def test_source_is_spanish_and_target_english(corpus):
    spanish = [sum(" de " in text for text in side) for side in corpus[:2]]
    english = [sum(" the " in text for text in side) for side in corpus[:2]]
    assert spanish[0] > 100 * spanish[1] and english[1] > 100 * english[0]
    assert ("Go.", "Ve.") in zip(corpus.targets[:10], corpus.sources[:10], strict=True)


def test_no_sentence_of_either_language_stands_in_two_sets(parts):
    sides = [keys(part) for part in parts]
    for first in range(4):
        for second in range(first):
            for language in range(2):
                shared = sides[first][language] & sides[second][language]
                assert not shared, (parts._fields[first], parts._fields[second], list(shared)[:3])


def test_a_split_by_pairs_would_leak(corpus):
    order = np.random.default_rng(0).permutation(len(corpus.sources))
    held_out, train = keys(corpus.take(order[:1000])), keys(corpus.take(order[1000:]))
    assert len(held_out[0] & train[0]) > 50 and len(held_out[1] & train[1]) > 100


def test_sizes_of_the_real_split(corpus, parts):
    assert [len(part.sources) for part in parts[1:]] == [1000, 1000, 1000]
    assert len(parts.train.sources) > 136_000
    lengths = words(parts.test.sources)
    assert [((lengths >= low) & (lengths <= high)).sum() for low, high in BANDS] == [250] * 4


def test_natural_sets_are_as_long_as_the_corpus_is(corpus, parts):
    def shares(texts):
        lengths = words(texts)
        return np.array([((lengths >= low) & (lengths <= high)).mean() for low, high in BANDS])

    for part in (parts.validation, parts.natural_test):
        assert abs(shares(part.sources) - shares(corpus.sources)).max() < 0.04


def test_held_out_sources_are_all_different(parts):
    for part in parts[1:]:
        assert len(keys(part)[0]) == len(part.sources)


def test_every_pair_of_a_set_is_a_pair_of_the_corpus(corpus, parts):
    known = set(zip(*corpus, strict=True))
    for part in parts:
        assert set(zip(*part, strict=True)) <= known


def test_sets_are_shuffled(parts):
    for part in parts:
        lengths = words(part.sources)
        assert abs(np.corrcoef(lengths, np.arange(len(lengths)))[0, 1]) < 0.1


def test_the_split_depends_on_the_seed_alone(corpus, parts):
    again, other = split(corpus), split(corpus, seed=1)
    for name in parts._fields:
        assert list(getattr(parts, name).sources) == list(getattr(again, name).sources)
        assert list(getattr(parts, name).sources) != list(getattr(other, name).sources)


def test_a_chain_of_common_sentences_is_one_family():
    # 0-1 share a target, 1-2 a source, so 0 and 2 are linked although they share nothing
    data = pairs_of(("Ve.", "Go."), ("Vete.", "go!"), ("VETE", "Go away."), ("Hola.", "Hi."), ("¡Hola!", "Hello."))
    family = families(data)
    assert family[0] == family[1] == family[2] != family[3] == family[4]


def test_the_same_word_in_two_languages_links_nothing():
    family = families(pairs_of(("No.", "Nope."), ("Jamás.", "No.")))
    assert family[0] != family[1]


def test_relatives_of_a_held_out_pair_are_not_trained_on():
    rows = [(f"frase {n} {letter}", f"sentence {n}") for letter in "ab" for n in range(40)]
    parts = split(pairs_of(*rows), validation=5, test=10, natural_test=5, bands=((3, 3), (1, 9)))
    assert len(parts.train.sources) == 80 - 2 * 20
    numbers = [{text.split()[1] for text in part.targets} for part in parts]
    assert sum(map(len, numbers)) == len(set.union(*numbers)) == 40


def test_large_families_are_always_trained_on():
    greetings = [(f"saludo {n}", "Hi!") for n in range(LARGEST_FAMILY + 1)]
    others = [(f"frase {n}", f"sentence {n}") for n in range(9)]
    parts = split(pairs_of(*greetings, *others), validation=3, test=3, natural_test=3, bands=((1, 9),))
    assert list(parts.train.targets) == ["Hi!"] * (LARGEST_FAMILY + 1)


def test_references_are_all_known_translations_the_own_one_first():
    data = pairs_of(("Ve.", "Go."), ("¡Ve!", "Leave!"), ("Ve.", "Go away."), ("Ven.", "Come."))
    assert references(data.take([2, 3]), data) == [["Go away.", "Go.", "Leave!"], ["Come."]]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"validation": -1}, "validation must be a whole number of 0 or more, got -1"),
        ({"natural_test": 2.5}, "natural_test must be a whole number of 0 or more, got 2.5"),
        ({"test": "4"}, "test must be a whole number of 0 or more, got '4'"),
        ({"bands": ()}, "bands must be pairs of a first and a last number of words, at least one; got ()"),
        ({"bands": (1, 8)}, "bands must be pairs .*; got (1, 8)"),
        ({"bands": ((1, 8, 9),)}, "bands must be pairs .*; got ((1, 8, 9),)"),
        ({"bands": ((8, 1),)}, "bands must be pairs .*; got ((8, 1),)"),
        ({"test": 30}, "test must be a multiple of the number of bands, 4, got 30"),
        ({"test": 0, "validation": 5, "natural_test": 0}, "5 held-out pairs are wanted, but there are families for 2"),
        (
            {"test": 4, "validation": 0, "natural_test": 0},
            "1 held-out pairs of 5 to 8 words .* for 0 only; .*bands=.*8",
        ),
    ],
)
def test_impossible_splits(sizes, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        split(pairs_of(("Ve.", "Go."), ("Hola.", "Hi.")), **sizes)


def test_unknown_corpus():
    with pytest.raises(ValueError, match="no corpus 'wmt'; choose one of tatoeba-es-en, ted-pt-en"):
        sentence_pairs.load("wmt")


def test_a_line_without_attribution_is_reported(tmp_path, monkeypatch):
    (tmp_path / "spa.tsv").write_text("Go.\tVe.\tCC-BY\nGo.\tVete.\n", encoding="utf-8")
    monkeypatch.setattr(sentence_pairs, "fetch", lambda *arguments: tmp_path)
    with pytest.raises(DataError, match="Line 2 of .*spa.tsv should have 3 columns, but has 2"):
        sentence_pairs.load("tatoeba-es-en")


def test_texts_are_composed(tmp_path, monkeypatch):
    (tmp_path / "spa.tsv").write_text("Who?\t¿Quie\u0301n?\tCC-BY\n", encoding="utf-8")
    monkeypatch.setattr(sentence_pairs, "fetch", lambda *arguments: tmp_path)
    assert sentence_pairs.load("tatoeba-es-en").sources[0] == "¿Quién?"


def test_pairs_by_hand_from_lists():
    sources, targets = [f"frase {n}" for n in range(30)], [f"sentence {n}" for n in range(30)]
    sizes = {"validation": 4, "test": 4, "natural_test": 4, "bands": ((1, 9),)}
    arrays = split(Pairs(*(np.array(side, dtype=object) for side in (sources, targets)), None), **sizes)
    for made in (Pairs(sources, targets), Pairs(tuple(sources), np.array(targets), ["Ana"] * 30)):
        parts = split(made, **sizes)
        for part, expected in zip(parts, arrays, strict=True):
            assert part.sources.tolist() == expected.sources.tolist() and part.targets.dtype == object
            assert part.attributions is None or part.attributions.tolist() == ["Ana"] * len(part.sources)
        assert made.take([3, 1]).sources.tolist() == ["frase 3", "frase 1"]
        assert references(made.take([2]), made) == [["sentence 2"]]


@pytest.mark.parametrize(
    ("sources", "targets", "error", "message"),
    [
        (["Ve.", None], ["Go.", "Hi."], TypeError, r"sources\[1\] is a NoneType, not a str"),
        (["Ve.", "Hola."], ["Go.", 3], TypeError, r"targets\[1\] is a int, not a str"),
        (["Ve.", "Hola."], ["Go."], ValueError, "2 sources but 1 targets"),
        ("Ve.", ["Go."], TypeError, "sources must be a sequence of texts, not one str"),
        (["Ve."], "Go.", TypeError, "targets must be a sequence of texts, not one str"),
        (iter(["Ve."]), ["Go."], TypeError, "sources must be a list or an array, which can be read twice"),
    ],
)
def test_columns_that_are_no_pairs(sources, targets, error, message):
    with pytest.raises(error, match=message):
        split(Pairs(sources, targets), validation=0, test=0, natural_test=0)


@pytest.mark.parametrize(("attributions", "count"), [(["Ana"], 1), (["Ana"] * 3, 3), ([], 0)])
def test_attributions_of_other_pairs(attributions, count):
    with pytest.raises(ValueError, match=f"there are 2 sources but {count} attributions"):
        split(Pairs(["Ve.", "Hola."], ["Go.", "Hi."], attributions), validation=0, test=0, natural_test=0)


def test_a_file_of_your_own(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes("\ufeffVe.\tGo.\r\n\n¿Quie\u0301n?\tWho?\tAna\nfin\u2028del\x85todo\tend\t\n".encode())
    found = sentence_pairs.read_pairs(path)
    assert found.sources.tolist() == ["Ve.", "¿Quién?", "fin\u2028del\x85todo"]
    assert found.targets.tolist() == ["Go.", "Who?", "end"] and found.attributions.tolist() == ["", "Ana", ""]
    assert all(column.dtype == object for column in found)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"Ve.\tGo.\nHola, Hi\n", DataError, "Line 2 of .*pairs.tsv should have 2 or 3 columns .* but has 1"),
        (b"a\tb\tc\td\n", DataError, "Line 1 .* but has 4"),
        (b"a\tb\nc\t\n", DataError, "Line 2 of .*pairs.tsv has no target: complete the pair, or remove the line"),
        (b" \tb\n", DataError, "Line 1 of .*pairs.tsv has no source"),
        (b"a\tb\rc\td\r", DataError, "Line 1 of .*pairs.tsv .* a carriage return alone: save it with line feeds"),
        (b"\n\n", DataError, "pairs.tsv holds no pair"),
        ("Qué\tWhat\n".encode("latin-1"), DataError, "pairs.tsv is not a text in UTF-8"),
        (None, FileNotFoundError, "pairs.tsv"),
    ],
)
def test_a_file_of_your_own_that_holds_no_pairs(tmp_path, content, error, message):
    if content is not None:
        (tmp_path / "pairs.tsv").write_bytes(content)
    with pytest.raises(error, match=message):
        sentence_pairs.read_pairs(tmp_path / "pairs.tsv")


def test_an_unknown_corpus_may_be_a_file():
    with pytest.raises(ValueError, match="a file of your own by `read_pairs`"):
        sentence_pairs.load("pairs.tsv")
