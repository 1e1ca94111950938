"""Text in, text out: `Translator`, and the folders that `load_translator` reads and `save_translator` writes."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from course_lib import data
from course_lib.checkpoints import folders
from course_lib.checkpoints.weights import CheckpointError
from course_lib.data.registry import UnknownNameError
from course_lib.decoding import translator as translate
from course_lib.decoding.search import beam_search, greedy
from course_lib.decoding.translator import Translator, save_translator
from course_lib.models.bert import BertConfig
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.transformer import TransformerConfig
from course_lib.text.bpe import BytePairEncoding
from course_lib.text.wordpiece import WordPiece
from tests.support import states
from tests.support.backends import BACKENDS, NUMPY, TENSORFLOW, TORCH

SPANISH = [
    "Hace frío.", "Hace mucho calor hoy.", "¿Quién es ella?", "No lo sé.", "Tom quiere comer.",
    "Este es un problema que tenemos que resolver.",
]  # fmt: skip
ENGLISH = [
    "It is cold.", "It is very hot today.", "Who is she?", "I don't know.", "Tom wants to eat.",
    "This is a problem we have to solve.",
]  # fmt: skip
TEXTS = ["Tom", "Este es un problema que tenemos que resolver.", "Hace frío hoy.", "¿Quién?", "No sé.", "Hace calor."]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Random weights seldom end a sentence."""
    monkeypatch.setattr(translate, "LONGER", 4)


@pytest.fixture(scope="module")
def tokenizers():
    """For Spanish, for English, and for both; the first two are of different sizes."""
    texts = {"source": (SPANISH, 90), "target": (ENGLISH, 80), "shared": ([*SPANISH, *ENGLISH], 120)}
    return {name: BytePairEncoding.train(text, size, lower=False) for name, (text, size) in texts.items()}


def config_of(source, target, **changes):
    sizes = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 24, "max_len": 40, "tie_output": False}
    vocabularies = {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}
    return TransformerConfig(**{**vocabularies, **sizes, "share_embeddings": source is target, **changes})


def written(folder, source, target, dtype=np.float32, **changes):
    """A translator of random weights, saved; some of its sentences end and others do not."""
    config = config_of(source, target, **changes)
    state = states.random_state(states.transformer(config), seed=1)
    model = NUMPY.make("Transformer", config, state=state)
    state = {name: value.astype(dtype) for name, value in state.items()}
    return save_translator(folder, Translator(model, source, target), state)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizers):
    return written(tmp_path_factory.mktemp("separate"), tokenizers["source"], tokenizers["target"])


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory, tokenizers):
    return written(tmp_path_factory.mktemp("shared"), tokenizers["shared"], tokenizers["shared"])


@pytest.fixture
def copy(folder, tmp_path):
    """A copy of the folder, to be damaged."""
    return shutil.copytree(folder, tmp_path / "copy")


@pytest.fixture(scope="module")
def loaded(folder):
    """The translator of each framework, loaded once."""
    return {backend: backend.lib.load_translator(folder) for backend in BACKENDS}


@pytest.fixture
def translator(loaded, backend):
    return loaded[backend]


def by_hand(translator, text, search):
    """One sentence alone, decoded by `search(next_logits, start, end_id, max_len, min_len=1)`."""
    (ids,) = translator.source_tokenizer.encode(text)
    end = translator.target_tokenizer.end_id
    limit = min(len(ids) + translate.LONGER, translator.model.config.max_len - 1)
    start = [[translator.target_tokenizer.start_id]]
    found = search(translator.model.next_logits(ids[None]), start, end, limit, min_len=1)
    return translator.target_tokenizer.decode(np.asarray(found)[0])


def test_a_text_for_a_text_and_a_list_for_many(translator):
    one = translator("Hace frío.")
    assert isinstance(one, str) and one
    assert translator(["Hace frío."]) == [one]
    assert translator(("Hace frío.", "Tom")) == [one, translator("Tom")]
    assert translator(text for text in ["Hace frío.", "Tom"]) == [one, translator("Tom")]
    assert translator(np.array(["Hace frío.", "Tom"], dtype=object)) == [one, translator("Tom")]
    assert translator([]) == []


@pytest.mark.parametrize("width", [1, 4])
def test_the_order_is_kept_and_the_batch_changes_nothing(translator, width):
    alone = [translator(text, width=width) for text in TEXTS]
    assert len(set(alone)) == len(alone), "translations that differ, so that their order can be seen"
    for batch_size in (1, 2, 4, 64):
        assert translator(TEXTS, width=width, batch_size=batch_size) == alone
    assert translator(TEXTS[::-1], width=width, batch_size=4) == alone[::-1]


def test_sentences_that_are_translated_together_are_as_many_as_asked_for(translator, monkeypatch):
    search, seen = translator._search, []

    def noting(ids, *rest):
        seen.append([len(row) for row in ids])
        return search(ids, *rest)

    monkeypatch.setattr(translator, "_search", noting)
    translator(TEXTS, width=1, batch_size=4)
    assert [len(lengths) for lengths in seen] == [4, 2]
    assert max(seen[0]) <= min(seen[1]), "sentences of similar length stand together"


def test_a_translation_that_does_not_end_is_cut(monkeypatch):
    """After 50 tokens more than the source has (Vaswani et al. 2017, section 6.1), as long as positions last."""
    monkeypatch.undo()
    limits = []

    class Model:
        config = TransformerConfig(60, 60, max_len=70)

        def next_logits(self, source):
            return lambda ids: limits.append(ids.shape) or np.tile(np.arange(60.0), (len(ids), 1))

    tokenizer = BytePairEncoding.train(SPANISH, 60)
    for text in ("Tom", SPANISH[-1]):
        limits.clear()
        (ids,) = tokenizer.encode(text)
        Translator(Model(), tokenizer, tokenizer)(text, width=1)
        assert limits[-1] == (1, min(len(ids) + 50, 69))


def test_a_width_of_one_is_greedy_search(translator):
    for text in TEXTS[:3]:
        assert translator(text, width=1) == by_hand(translator, text, greedy)


def test_a_width_of_four_is_beam_search(translator):
    def search(*arguments, **options):
        return beam_search(*arguments, width=4, **options).ids[:, 0]

    found = translator(TEXTS)
    assert found == [by_hand(translator, text, search) for text in TEXTS]
    assert found != translator(TEXTS, width=1)


class ByLength:
    """Predicts from the number of tokens so far: `steps` are {token: probability}, the last one from then on.

    A model of one's own that generates, and nothing else: it has no `config`.
    """

    def __init__(self, *steps):
        self.steps = steps

    def next_logits(self, source):
        def predict(ids):
            probabilities = np.full((len(ids), 60), 1e-9)
            for token, p in self.steps[min(ids.shape[1], len(self.steps)) - 1].items():
                probabilities[:, token] = p
            return np.log(probabilities)

        return predict


def test_alpha_decides_between_short_and_long():
    """One token has 0.4, and a second one 0.6 * 0.6: equation 14 of Wu et al. 2016 by hand."""
    tokenizer = BytePairEncoding.train(SPANISH, 60)
    end = tokenizer.end_id
    translator = Translator(ByLength({29: 1.0}, {end: 0.4, 30: 0.6}, {end: 0.6, 31: 0.4}), tokenizer, tokenizer)
    short, long = (tokenizer.decode(np.array(ids)) for ids in ([29], [29, 30]))
    assert short != long
    assert [translator("Tom", alpha=alpha) for alpha in (0.0, 1.0)] == [short, long]
    assert translator("Tom") == translator("Tom", alpha=0.6)


@pytest.mark.parametrize("width", [1, 4])
def test_a_text_never_becomes_nothing(width):
    tokenizer = BytePairEncoding.train(SPANISH, 60)
    translator = Translator(ByLength({tokenizer.end_id: 0.9, 29: 0.1}, {tokenizer.end_id: 1.0}), tokenizer, tokenizer)
    assert translator("Tom", width=width) == tokenizer.decode(np.array([29])) != ""


def test_a_model_without_a_config_is_asked_itself():
    tokenizer = BytePairEncoding.train(SPANISH, 60)
    model = ByLength({29: 1.0}, {tokenizer.end_id: 1.0})
    assert Translator(model, tokenizer, tokenizer)("Tom" * 60) == tokenizer.decode(np.array([29]))
    model.max_len = 4
    with pytest.raises(ValueError, match="over the maximum of 4"):
        Translator(model, tokenizer, tokenizer)("Tom" * 60)
    model.pad_id = 7
    with pytest.raises(ValueError, match="the model's padding is the token 7"):
        Translator(model, tokenizer, tokenizer)


def test_the_defaults_are_those_of_the_paper(translator):
    assert translator(TEXTS) == translator(TEXTS, width=4, alpha=0.6)


@pytest.mark.parametrize("width", [1, 4])
def test_the_same_translation_in_every_framework(loaded, width):
    found = {backend: translator(TEXTS, width=width) for backend, translator in loaded.items()}
    assert found[TORCH] == found[TENSORFLOW] == found[NUMPY]


def test_either_attention_function(backend, folder, translator):
    calls = []

    def noting(*arguments, **options):
        calls.append(len(arguments))
        return backend.lib.fused_attention(*arguments, **options)

    assert backend.lib.load_translator(folder, attention=noting)(TEXTS) == translator(TEXTS)
    assert calls


def test_a_text_without_a_token_becomes_an_empty_one(translator):
    assert translator("") == translator(" \t\n") == ""
    assert translator(["", "Tom", "  "]) == ["", translator("Tom"), ""]
    assert translator(["", " "]) == ["", ""]


def test_characters_that_the_vocabulary_lacks(translator):
    for text in ("日本語", "Tom 🙂", "[END] Tom [PAD]"):
        assert isinstance(translator(text, width=1), str)


def test_the_longest_text_and_one_token_more(translator):
    limit = translator.model.config.max_len - 2  # the start and the end token
    longest = "日 " * (limit // 2)  # two tokens each, for the space and for [UNK]
    assert len(translator.source_tokenizer.encode(longest)[0]) == limit + 2
    assert isinstance(translator(longest, width=1), str)
    with pytest.raises(ValueError, match=r"a text of 42 tokens is over the maximum of 40; translate its sentences one"):
        translator(["Tom", longest + "日"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (5, "must be a str, got int"),
        (None, "must be a str, got NoneType"),
        (["Tom", 5], r"texts\[1\] is a int, not a str"),
        (b"Tom", "not a str"),
        ([["Tom"]], "not a str"),
        ({"Tom": 1}, "must be a str, got dict"),  # its keys would be translated
    ],
)
def test_what_is_no_text(translator, texts, message):
    with pytest.raises(TypeError, match=message):
        translator(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of 1 or more, got 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number of 1 or more, got 2.5"),
        ({"width": 0}, "width must be a whole number of 1 or more, got 0"),
        ({"width": 1.5}, "width must be a whole number of 1 or more, got 1.5"),
        ({"width": "2"}, "width must be a whole number of 1 or more, got '2'"),
        ({"width": True}, "width must be a whole number of 1 or more, got True"),
        ({"alpha": -1.0}, "alpha must be a number of 0 or more, got -1.0"),
        ({"alpha": "0"}, "alpha must be a number of 0 or more, got '0'"),
    ],
)
def test_bad_settings(translator, options, message):
    with pytest.raises(ValueError, match=message):
        translator("Tom", **options)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_one_tokenizer_or_two_come_back(backend, folder, shared_folder):
    separate, shared = (backend.lib.load_translator(path) for path in (folder, shared_folder))
    assert files_in(folder) == ["config.json", "model.safetensors", "source_tokenizer.json", "target_tokenizer.json"]
    assert files_in(shared_folder) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert shared.source_tokenizer is shared.target_tokenizer
    assert (separate.source_tokenizer.vocab_size, separate.target_tokenizer.vocab_size) == (90, 80)
    assert isinstance(shared("Tom"), str)


def test_what_is_loaded_is_saved_the_same(backend, folder, tmp_path):
    translator = backend.lib.load_translator(folder)
    again = save_translator(tmp_path / "new" / "folder", translator, backend.lib.get_state(translator.model))
    assert again == tmp_path / "new" / "folder"
    assert files_in(again) == files_in(folder)
    for name in ("config.json", "source_tokenizer.json", "target_tokenizer.json"):
        assert (again / name).read_text() == (folder / name).read_text()
    assert NUMPY.lib.load_translator(again)(TEXTS) == translator(TEXTS)


def test_saving_over_the_other_kind_leaves_no_stale_file(tmp_path, tokenizers):
    both, (source, target) = tokenizers["shared"], (tokenizers["source"], tokenizers["target"])
    for a, b, expected in (
        (both, both, ["tokenizer.json"]),
        (source, target, ["source_tokenizer.json", "target_tokenizer.json"]),
        (both, both, ["tokenizer.json"]),
    ):
        folder = written(tmp_path, a, b)
        assert files_in(folder) == ["config.json", "model.safetensors", *expected]
        assert NUMPY.lib.load_translator(folder).source_tokenizer.vocab_size == a.vocab_size


def test_weights_of_half_precision(backend, tmp_path, tokenizers):
    half = written(tmp_path / "half", tokenizers["source"], tokenizers["target"], np.float16)
    full = written(tmp_path / "full", tokenizers["source"], tokenizers["target"])
    sizes = [(path / "model.safetensors").stat().st_size for path in (half, full)]
    assert sizes[0] < 0.6 * sizes[1]
    translator = backend.lib.load_translator(half)
    state, expected = backend.lib.get_state(translator.model), NUMPY.lib.load_translator(full).model
    assert {value.dtype for value in state.values()} == {np.dtype(backend.float_type)}
    for name, value in NUMPY.lib.get_state(expected).items():
        np.testing.assert_allclose(state[name], value, rtol=1e-3, atol=1e-6)
    assert translator(TEXTS) == NUMPY.lib.load_translator(half)(TEXTS)


def test_a_loaded_model_has_no_dropout(training_backend, tmp_path, tokenizers):
    folder = written(tmp_path, tokenizers["source"], tokenizers["target"], dropout=0.5, attention_dropout=0.5)
    translator = training_backend.lib.load_translator(folder)
    assert translator(TEXTS) == translator(TEXTS) == NUMPY.lib.load_translator(folder)(TEXTS)
    if training_backend is TORCH:
        assert not translator.model.training, "also when the model is called without the translator"


@pytest.fixture
def shipping(monkeypatch, tmp_path, folder):
    """The place of what ships, with two translators, a file, and a folder of a training that is not over."""
    monkeypatch.setattr(folders, "SHIPPED", tmp_path / "translators")
    for name in ("b-to-c", "a-to-b"):
        shutil.copytree(folder, tmp_path / "translators" / name)
    (tmp_path / "translators" / "not-yet" / "training").mkdir(parents=True)
    (tmp_path / "translators" / "README.md").write_text("about them\n")
    return tmp_path / "translators"


def test_what_ships_is_found_by_its_name(backend, shipping, translator):
    assert backend.lib.load_translator("b-to-c")(TEXTS[:2]) == translator(TEXTS[:2])


def test_a_path_is_no_name_of_what_ships(backend, shipping, copy, monkeypatch):
    monkeypatch.chdir(copy)
    assert backend.lib.load_translator(".").model.config.d_model == 16
    for path in ("../nowhere", "./b-to-c"):
        with pytest.raises(FileNotFoundError):
            backend.lib.load_translator(path)


def test_a_folder_comes_before_what_ships(backend, shipping, copy, monkeypatch, tmp_path):
    """As with checkpoints: a folder of the user's is never passed over in silence."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    shutil.copytree(copy, "b-to-c")
    config = json.loads(Path("b-to-c/config.json").read_text())
    Path("b-to-c/config.json").write_text(json.dumps(config | {"dropout": 0.625}))
    assert backend.lib.load_translator("b-to-c").model.config.dropout == 0.625
    Path("b-to-c/config.json").unlink()
    with pytest.raises(FileNotFoundError, match="folder b-to-c here is no translator, .* of one that ships: rename"):
        backend.lib.load_translator("b-to-c")


def test_a_source_that_is_none_is_a_mistake_also_for_what_ships(backend, shipping):
    for name in ("b-to-c", shipping / "b-to-c"):
        with pytest.raises(ValueError, match="no data source 'nonsense'"):
            backend.lib.Transformer.from_pretrained(name, source="nonsense")
        assert backend.lib.Transformer.from_pretrained(name, source="pypi").config.d_model == 16


def test_an_unknown_name_lists_what_ships(backend, shipping):
    message = r"there is no translator 'x-to-y': give a folder, or one of a-to-b, b-to-c$"
    with pytest.raises(FileNotFoundError, match=message):
        backend.lib.load_translator("x-to-y")


@pytest.mark.parametrize("exists", [True, False])
def test_an_unknown_name_when_nothing_ships(backend, tmp_path, monkeypatch, exists):
    monkeypatch.setattr(folders, "SHIPPED", tmp_path / "translators")
    if exists:
        (tmp_path / "translators").mkdir()
    with pytest.raises(FileNotFoundError, match="there is no translator 'x-to-y': give a folder"):
        backend.lib.load_translator("x-to-y")
    with pytest.raises(FileNotFoundError, match="no translator 'translator-es-en'"):
        backend.lib.load_translator()


def truncate(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def config_of_a_bert(folder):
    settings = BertConfig(d_model=16, n_heads=2).to_hugging_face("BertModel")
    (folder / "config.json").write_text(json.dumps(settings))


def changed_config(**changes):
    def change(folder):
        settings = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**settings, **changes}))

    return change


def of_another_size(side):
    def change(folder):
        BytePairEncoding.train(SPANISH, 60).save(folder / f"{side}_tokenizer.json")

    return change


def no_tokenizer(folder):
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')


def without(name):
    return lambda folder: (folder / name).unlink()


FAULTS = {
    "truncated weights": (truncate, CheckpointError, "model.safetensors is truncated"),
    "another kind of model": (config_of_a_bert, CheckpointError, "'bert', no translator; BertModel.from_pretrained"),
    "an unknown setting": (changed_config(colour="red"), CheckpointError, "does not describe a translator.*'colour'"),
    "impossible sizes": (changed_config(n_heads=3), CheckpointError, "does not describe a translator.*n_heads"),
    "a text for a number": (changed_config(dropout="much"), CheckpointError, "does not describe a translator"),
    "weights of another size": (changed_config(d_ff=30), CheckpointError, "do not fit the model.*wrong shape"),
    "weights of fewer layers": (changed_config(n_layers=2), CheckpointError, "do not fit the model; missing"),
    "weights of other positions": (changed_config(positions="learned"), CheckpointError, "not fit the model; missing"),
    "a source vocabulary of another size": (of_another_size("source"), CheckpointError, "of 60 tokens .* with 90"),
    "a target vocabulary of another size": (of_another_size("target"), CheckpointError, "of 60 tokens .* with 80"),
    "a file that is no tokenizer": (no_tokenizer, CheckpointError, "tokenizer.json is not a tokenizer's file"),
    "no source tokenizer": (without("source_tokenizer.json"), FileNotFoundError, "holds no source_tokenizer.json, nor"),
    "no target tokenizer": (without("target_tokenizer.json"), FileNotFoundError, "holds no target_tokenizer.json, nor"),
    "no weights": (without("model.safetensors"), FileNotFoundError, "holds no model.safetensors"),
    "no config": (without("config.json"), FileNotFoundError, "holds no config.json"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_is_not_as_it_should_be(backend, copy, fault):
    change, error, message = FAULTS[fault]
    change(copy)
    with pytest.raises(error, match=message) as found:
        backend.lib.load_translator(copy)
    assert type(found.value) is error
    assert str(copy) in str(found.value) or "fit the model" in message
    if "tokeniz" in fault or "vocabulary" in fault:  # the model alone has none
        assert backend.lib.Transformer.from_pretrained(copy).config.d_model == 16
    else:
        with pytest.raises(error) as alone:
            backend.lib.Transformer.from_pretrained(copy)
        assert (type(alone.value), str(alone.value)) == (error, str(found.value))


def test_the_config_says_every_size(folder, tokenizers):
    settings = json.loads((folder / "config.json").read_text())
    assert settings == asdict(config_of(tokenizers["source"], tokenizers["target"]))


@pytest.mark.parametrize("score", [None, "additive"])
def test_a_recurrent_model_translates_too(backend, tokenizers, score):
    """It has no longest sentence; what it says is what a search by hand finds."""
    source, target = tokenizers["source"], tokenizers["target"]
    state = states.random_state(states.seq2seq(source.vocab_size, target.vocab_size, 6, 8, how=score), seed=5)
    model = backend.make("Seq2Seq", Seq2SeqConfig(source.vocab_size, target.vocab_size, 6, 8, score=score), state=state)
    translator = Translator(model, source, target)
    long = "Hace frío. " * 30
    found = translator([*TEXTS, long])
    for text, translation in zip((TEXTS[0], long), (found[0], found[-1]), strict=True):
        (ids,) = source.encode(text)
        best = beam_search(
            model.next_logits(ids[None]), [[target.start_id]], target.end_id, len(ids) + translate.LONGER, 4, 0.6,
            min_len=1,
        )  # fmt: skip
        assert translation == target.decode(best.ids[0, 0]) != ""
    assert found == [translator(text) for text in [*TEXTS, long]]
    with pytest.raises(TypeError, match="holds a Transformer, not a Seq2Seq"):
        save_translator("nowhere", translator, state)


def test_paddings_that_are_two_different_tokens(backend, tokenizers, copy):
    source, target = tokenizers["source"], tokenizers["target"]
    message = "the model's padding is the token 5, but the tokenizer's is 0"
    for model in (
        backend.make("Transformer", config_of(source, target, pad_id=5)),
        backend.make("Seq2Seq", Seq2SeqConfig(source.vocab_size, target.vocab_size, 6, 8, pad_id=5)),
    ):
        with pytest.raises(ValueError, match=message):
            Translator(model, source, target)
    changed_config(pad_id=5)(copy)
    with pytest.raises(CheckpointError, match=message):
        backend.lib.load_translator(copy)


@pytest.mark.parametrize("wrong", ["another size", "one too few", "of another vocabulary", "objects", "whole numbers"])
def test_weights_of_another_model_are_not_saved(backend, folder, copy, tokenizers, wrong):
    translator = backend.lib.load_translator(folder)
    weights, message = backend.lib.get_state(translator.model), "do not fit the model"
    if wrong == "another size":
        weights = states.random_state(states.transformer(config_of(tokenizers["source"], tokenizers["target"], d_ff=9)))
    elif wrong == "one too few":
        weights.popitem()
    elif wrong in ("objects", "whole numbers"):
        kind, message = (object, "object") if wrong == "objects" else (np.int8, "int8")
        name = next(iter(weights))
        weights[name] = weights[name].astype(kind)
        message = rf"not of floating point: {name} \(is {message}\)"
    else:
        translator.source_tokenizer, message = tokenizers["shared"], "source vocabulary of .* for a model with 90"
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    with pytest.raises(CheckpointError, match=message):
        save_translator(copy, translator, weights)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


def test_an_unknown_name_is_one_kind_of_error_everywhere(backend):
    """Some expect a ValueError, others a FileNotFoundError: it is both, whoever is asked."""
    for ask in (
        backend.lib.load_translator, backend.lib.BertModel.from_pretrained, WordPiece.from_pretrained, data.fetch,
        data.resolve,
    ):  # fmt: skip
        with pytest.raises(UnknownNameError, match="'no-such-thing'") as found:
            ask("no-such-thing")
        assert isinstance(found.value, ValueError) and isinstance(found.value, FileNotFoundError)
