"""The source tutorial's way from Portuguese to English: archive, training, folder, `load_translator`, a text."""

import importlib.util
from pathlib import Path

import pytest

import course_lib.tensorflow
import course_lib.torch
from course_lib.data import sentence_pairs

RECIPE = Path(__file__).parents[2] / "notebooks" / "results" / "07-training-a-translator.py"
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


@pytest.fixture
def recipe():
    """The script that trains the translator, as a module."""
    spec = importlib.util.spec_from_file_location("recipe", RECIPE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tutorials_sentence_is_translated_in_both_frameworks(parts, recipe, tmp_path):
    small = {"preset": "tiny", "vocabulary": 120, "max_tokens": 200, "validate_every": 2, "progress": False}
    folder = tmp_path / "my-translator"
    began = recipe.make(folder, parts, "ted-pt-en", epochs=0.5, **small)
    found = recipe.make(folder, parts, "ted-pt-en", epochs=1.0, **small)
    assert 2 < began["updates"] < found["updates"], "the second training goes on where the first was"
    assert found["validation"][: began["updates"] // 2] == began["validation"][: began["updates"] // 2]
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "config.json", "figures.json", "model.safetensors", "tokenizer.json", "training",
    ]  # fmt: skip
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert "07-training-a-translator.py --corpus ted-pt-en --to my-translator\n" in page
    assert "{} [{}, {}]".format(*found["test_beam_bleu"]) in page and f"{found['updates']} updates" in page
    assert {"test_beam_bleu", "natural_test_greedy_chrf", "test_by_words", "torch"} < found.keys()
    texts = [library.load_translator(folder)(SENTENCE) for library in (course_lib.torch, course_lib.tensorflow)]
    assert isinstance(texts[0], str) and texts[0] == texts[1]


def test_the_default_is_the_tutorials_model_on_the_courses_corpus(recipe, monkeypatch):
    asked = []
    monkeypatch.setattr(recipe.sentence_pairs, "load", lambda corpus: asked.append(corpus) or corpus)
    monkeypatch.setattr(recipe.sentence_pairs, "split", lambda pairs: pairs)
    monkeypatch.setattr(recipe, "make", lambda *arguments, **options: asked.append((arguments, options)) or {})
    recipe.main([])
    recipe.main(["--corpus", "ted-pt-en", "--to", "my-translator", "--epochs", "0.5"])
    es, whole = "tatoeba-es-en", {"epochs": recipe.EPOCHS}
    assert asked == [
        es, ((recipe.SHIPPED / "translator-es-en", es, es), whole),
        "ted-pt-en", ((Path("my-translator"), "ted-pt-en", "ted-pt-en"), {"epochs": 0.5}),
    ]  # fmt: skip
