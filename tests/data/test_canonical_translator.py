"""The source tutorial's way from Portuguese to English: archive, training, folder, `load_translator`, a text."""

from pathlib import Path

import pytest

import course_lib.tensorflow
import course_lib.torch
from course_lib.data import sentence_pairs
from notebooks.experiments import train_translator
from notebooks.experiments.train_translator import RECIPES, SHIPPED, make

SENTENCE = "este é um problema que temos que resolver."
PORTUGUESE = "este é um problema que temos que resolver agora , e não há mais tempo .".split()
ENGLISH = "this is a problem that we have to solve now , and there is no more time .".split()


def lines(words, names):
    """A sentence for each name; their lengths lie in every band that the test set is balanced by."""
    return "".join(" ".join([name, *words[: 3 + 4 * (n % 4)]]) + "\n" for n, name in enumerate(names))


@pytest.fixture
def parts(place):
    """The split of an archive of 80 sentences."""
    names = [first + second for first in ("ba", "de", "fi", "go", "lu") for second in "rstvxzmnpqbdfgkl"]
    files = {}
    for part, some in (("train", names[:64]), ("dev", names[64:72]), ("test", names[72:])):
        files |= {f"pt.{part}": lines(PORTUGUESE, some), f"en.{part}": lines(ENGLISH, some)}
    place(files)
    pairs = sentence_pairs.load("ted-pt-en", progress=False)
    return sentence_pairs.split(pairs, validation=4, test=8, natural_test=4)


def test_the_tutorials_sentence_is_translated_in_both_frameworks(parts, tmp_path):
    recipe = RECIPES["ted-pt-en"]._replace(preset="tiny", vocabulary=120, max_tokens=200)
    often = {"validate_every": 2, "progress": False}
    folder = tmp_path / "my-translator"
    began = make(folder, parts, recipe._replace(epochs=0.5), **often)
    found = make(folder, parts, recipe._replace(epochs=1.0), **often)
    assert 2 < began["updates"] < found["updates"], "the second training goes on where the first was"
    assert found["validation"][: began["updates"] // 2] == began["validation"][: began["updates"] // 2]
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "config.json", "figures.json", "model.safetensors", "tokenizer.json", "training",
    ]  # fmt: skip
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert "train_translator.py --corpus ted-pt-en --to my-translator\n" in page
    assert "{} [{}, {}]".format(*found["test_beam_bleu"]) in page and f"{found['updates']} updates" in page
    assert {"test_beam_bleu", "natural_test_greedy_chrf", "test_by_words", "torch"} < found.keys()
    texts = [library.load_translator(folder)(SENTENCE) for library in (course_lib.torch, course_lib.tensorflow)]
    assert isinstance(texts[0], str) and texts[0] == texts[1]


def test_the_default_is_the_tutorials_model_on_the_courses_corpus(monkeypatch):
    asked = []
    monkeypatch.setattr(sentence_pairs, "load", lambda corpus: asked.append(corpus) or corpus)
    monkeypatch.setattr(sentence_pairs, "split", lambda pairs: pairs)
    monkeypatch.setattr(train_translator, "make", lambda *arguments: asked.append(arguments) or {})
    assert train_translator.main([]) == 0
    assert train_translator.main(["--corpus", "ted-pt-en", "--to", "my-translator", "--epochs", "0.5"]) == 0
    es, pt = RECIPES["tatoeba-es-en"], RECIPES["ted-pt-en"]
    assert (es.corpus, es.preset, es.epochs, pt.corpus) == ("tatoeba-es-en", "tutorial", 10, "ted-pt-en")
    assert asked == [
        es.corpus, (SHIPPED / "translator-es-en", es.corpus, es),
        pt.corpus, (Path("my-translator"), pt.corpus, pt._replace(epochs=0.5)),
    ]  # fmt: skip


def test_an_interrupted_training_says_how_it_goes_on(monkeypatch, capsys):
    def interrupted(corpus):
        raise KeyboardInterrupt

    monkeypatch.setattr(sentence_pairs, "load", interrupted)
    assert train_translator.main([]) == 130
    assert "the same command goes on" in capsys.readouterr().err
