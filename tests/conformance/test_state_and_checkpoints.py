"""Weights out and in: get_state and set_state, from_pretrained and save_pretrained, across the frameworks."""

import dataclasses
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from course_lib.checkpoints.weights import CheckpointError
from course_lib.data import cache
from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.transformer import TransformerConfig
from tests.support import states
from tests.support.backends import BACKENDS, NUMPY, TENSORFLOW, TORCH

CONFIG = BertConfig(vocab_size=13, d_model=6, n_layers=2, n_heads=3, d_ff=10, max_len=7, n_classes=3)
IDS = np.array([[2, 5, 12, 1, 7], [9, 4, 4, 0, 0]])
SHAPES = {name: shapes(CONFIG) for name, shapes in states.BERTS.items()}
# every layer with weights, its arguments, and the names and shapes of its weights
MODULES = {
    "MultiHeadAttention": ((6, 3), states.multi_head_attention(6)),
    "FeedForward": ((6, 10), states.feed_forward(6, 10)),
    "LearnedPositions": ((6, 9), {"weight": (9, 6)}),
    "SinusoidalPositions": ((6, 9), {}),
    "EncoderLayer": ((BlockConfig(6, 3, 10),), states.encoder_layer(6, 10)),
    "Encoder": ((2, BlockConfig(6, 3, 10, pre_norm=True)), states.encoder(2, 6, 10, pre_norm=True)),
    **{name: ((CONFIG,), shapes) for name, shapes in SHAPES.items()},
}


def assert_states_equal(one, two, **tolerance):
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert_allclose(two[name], value, **(tolerance or {"rtol": 1e-7}), err_msg=name)


@pytest.mark.parametrize("name", MODULES)
def test_state_to_load_to_state(backend, name):
    arguments, shapes = MODULES[name]
    module = backend.make(name, *arguments)
    fresh = backend.lib.get_state(module)
    assert {key: value.shape for key, value in fresh.items()} == shapes
    assert all(value.dtype == backend.float_type and value.flags.c_contiguous for value in fresh.values())
    state = {key: value.astype(np.float32) for key, value in states.random_state(shapes, seed=3).items()}
    backend.lib.set_state(module, state)
    assert_states_equal(state, backend.lib.get_state(module))
    other = backend.make(name, *arguments)
    backend.lib.set_state(other, backend.lib.get_state(module))
    assert_states_equal(state, backend.lib.get_state(other))


def test_a_state_is_a_copy_both_ways(backend):
    state = states.random_state(states.feed_forward(6, 10))
    layer = backend.make("FeedForward", 6, 10, state=state)
    expected = {name: value.copy() for name, value in state.items()}
    for value in state.values():
        value += 1.0  # the dict that was loaded
    for value in backend.lib.get_state(layer).values():
        value += 1.0  # a dict that was handed out
    assert_states_equal(expected, backend.lib.get_state(layer), rtol=1e-6)


def test_read_only_and_half_precision_arrays_load(backend):
    state = {name: value.astype(np.float16) for name, value in states.random_state(states.feed_forward(6, 10)).items()}
    for value in state.values():
        value.flags.writeable = False
    layer = backend.make("FeedForward", 6, 10, state=state)
    assert_states_equal(state, backend.lib.get_state(layer))


def broken(state, how):
    state = dict(state)
    last = list(state)[-1]
    if how == "missing":
        del state[last]
    elif how == "unknown":
        state["encoder.extra.weight"] = np.zeros(3)
    else:
        state[last] = np.zeros((*state[last].shape, 2))
    return state, (last if how != "unknown" else "encoder.extra.weight")


@pytest.mark.parametrize("how", ["missing", "unknown", "wrong shape"])
@pytest.mark.parametrize("name", ["FeedForward", "EncoderLayer", "BertForSequenceClassification"])
def test_a_state_that_does_not_fit_changes_nothing(backend, name, how):
    arguments, shapes = MODULES[name]
    module = backend.make(name, *arguments)
    before = backend.lib.get_state(module)
    state, culprit = broken(states.random_state(shapes), how)
    with pytest.raises(CheckpointError, match=f"{how.replace('unknown', 'not used by the model')}.*{culprit}"):
        backend.lib.set_state(module, state)
    assert_states_equal(before, backend.lib.get_state(module))


def test_a_partial_state_leaves_the_rest(backend):
    layer = backend.make("FeedForward", 6, 10, state=states.random_state(states.feed_forward(6, 10)))
    before = backend.lib.get_state(layer)
    backend.lib.set_state(layer, {"linear2.bias": np.arange(6.0)}, partial=True)
    after = backend.lib.get_state(layer)
    assert_allclose(after.pop("linear2.bias"), np.arange(6.0))
    assert_states_equal({name: before[name] for name in after}, after)
    with pytest.raises(CheckpointError, match="linear3.bias"):
        backend.lib.set_state(layer, {"linear3.bias": np.arange(6.0)}, partial=True)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("reader", BACKENDS, ids=lambda b: f"to {b}")
def test_saved_in_one_framework_and_opened_in_another(backend, reader, name, tmp_path):
    state = {key: value.astype(np.float32) for key, value in states.random_state(SHAPES[name], seed=7).items()}
    writer_model = backend.make(name, CONFIG, state=state)
    folder = writer_model.save_pretrained(tmp_path / "a" / "model")
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    reader_model = getattr(reader.lib, name).from_pretrained(folder)
    assert_states_equal(state, reader.lib.get_state(reader_model))
    n_classes = 2 if name == "BertForQuestionAnswering" else CONFIG.n_classes  # a start and an end
    assert reader_model.config == dataclasses.replace(CONFIG, n_classes=n_classes)
    expected = backend.call(writer_model, IDS)[0]
    assert_allclose(reader.call(reader_model, IDS)[0], expected, rtol=1e-4, atol=1e-5)


def test_saving_again_replaces(backend, tmp_path):
    model = backend.make("BertModel", CONFIG)
    model.save_pretrained(tmp_path)
    state = states.random_state(SHAPES["BertModel"], seed=8)
    backend.lib.set_state(model, state)
    model.save_pretrained(tmp_path)
    opened = backend.lib.BertModel.from_pretrained(tmp_path)
    assert_states_equal(state, backend.lib.get_state(opened), rtol=1e-6)


def test_a_loaded_model_starts_in_evaluation_mode(backend, tmp_path):
    config = BertConfig(vocab_size=13, d_model=6, n_layers=1, n_heads=3, d_ff=10, max_len=7, dropout=0.9)
    backend.make("BertForSequenceClassification", config).save_pretrained(tmp_path)
    model = backend.lib.BertForSequenceClassification.from_pretrained(tmp_path)
    ids = backend.tensor(IDS)
    one, two = (backend.array(model(ids).logits) for _ in range(2))  # straight after loading, nothing said
    assert_allclose(one, two, rtol=1e-7)


def test_a_classifier_from_an_encoder_needs_to_be_asked_for(backend, tmp_path):
    encoder = backend.make("BertModel", CONFIG, state=states.random_state(SHAPES["BertModel"]))
    encoder.save_pretrained(tmp_path)
    cls = backend.lib.BertForSequenceClassification
    with pytest.raises(CheckpointError, match="missing: classifier.weight, classifier.bias"):
        cls.from_pretrained(tmp_path)
    for new in (["classifier"], "classifier"):
        model = cls.from_pretrained(tmp_path, new=new, n_classes=5, dropout=0.0)
        assert model.config.n_classes == 5 and model.config.dropout == 0.0
        state = backend.lib.get_state(model)
        assert state["classifier.weight"].shape == (5, 6)
        assert_allclose(
            state["bert.pooler.weight"], states.random_state(SHAPES["BertModel"])["pooler.weight"], rtol=1e-6
        )


def test_an_encoder_without_a_pooler_needs_a_new_one(backend, tmp_path):
    backend.make("BertModel", CONFIG, pooler=False).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="missing: pooler.weight, pooler.bias"):
        backend.lib.BertModel.from_pretrained(tmp_path)
    backend.lib.BertModel.from_pretrained(tmp_path, new=["pooler"])
    with pytest.raises(CheckpointError, match=r"missing: pooler.weight, pooler.bias; .*new=\['classifier', 'pooler'\]"):
        backend.lib.BertForSequenceClassification.from_pretrained(tmp_path, new=["classifier"])
    backend.lib.BertForSequenceClassification.from_pretrained(tmp_path, new=["pooler", "classifier"])


def edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_fresh_classifier_of_another_number_of_classes(backend, tmp_path):
    """A file of three classes becomes a model of five, and `new` wins over what the file has."""
    cls, shapes = backend.lib.BertForSequenceClassification, SHAPES["BertForSequenceClassification"]
    state = states.random_state(shapes)
    backend.make("BertForSequenceClassification", CONFIG, state=state).save_pretrained(tmp_path)
    edit_config(tmp_path, id2label={"0": "bad", "1": "so so", "2": "good"})
    with pytest.raises(CheckpointError, match=r"wrong shape: classifier.weight .*pass new=\['classifier'\]$"):
        cls.from_pretrained(tmp_path, n_classes=5)
    model = cls.from_pretrained(tmp_path, new="classifier", n_classes=5)
    assert (model.config.n_classes, model.config.labels) == (5, None)
    assert backend.lib.get_state(model)["classifier.weight"].shape == (5, 6)
    same = cls.from_pretrained(tmp_path, new=["classifier"])
    loaded = backend.lib.get_state(same)
    assert same.config.labels == ("bad", "so so", "good")
    assert abs(loaded["classifier.weight"] - state["classifier.weight"]).min() > 0, "fresh, although the file has one"
    assert_allclose(loaded["bert.pooler.weight"], state["bert.pooler.weight"], rtol=1e-6)
    named = cls.from_pretrained(tmp_path, new=["classifier"], labels=("no", "yes"))
    assert (named.config.n_classes, named.config.labels) == (2, ("no", "yes"))


@pytest.mark.parametrize("new", ["e", "classifier.w", "clasifier", ["classifier", "poler"], "", ["bert.pooler"]])
def test_a_new_part_that_there_is_not(backend, tmp_path, new):
    backend.make("BertModel", CONFIG).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="names no part of this model; its parts are .*embeddings.*pooler"):
        backend.lib.BertForSequenceClassification.from_pretrained(tmp_path, new=new)


def test_what_is_missing_says_how_to_start_it_afresh(backend, tmp_path):
    backend.make("BertModel", CONFIG, pooler=False).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"pass new=\['pooler'\]$"):
        backend.lib.BertModel.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"new=\['pooler', 'classifier'\]; .* saved from a BertModel$"):
        backend.lib.BertForSequenceClassification.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"missing: head.*pass new=\['head'\]"):
        backend.lib.BertForMaskedLM.from_pretrained(tmp_path)


def test_label_names_and_settings_of_training_survive(backend, tmp_path):
    backend.make("BertForSequenceClassification", CONFIG).save_pretrained(tmp_path)
    labels = {"0": "bad", "1": "so so", "2": "good"}
    edit_config(tmp_path, id2label=labels, problem_type="multi_label_classification", classifier_dropout=0.4)
    model = backend.lib.BertForSequenceClassification.from_pretrained(tmp_path)
    settings = json.loads((model.save_pretrained(tmp_path / "again") / "config.json").read_text())
    assert settings["id2label"] == labels and settings["label2id"] == {"bad": 0, "so so": 1, "good": 2}
    assert settings["problem_type"] == "multi_label_classification" and settings["classifier_dropout"] == 0.4


def test_the_dropout_before_the_classifier(training_backend):
    """Of `classifier_dropout` alone, when it is set; the encoder has none."""
    seen = {}
    for dropout in (0.9, 0.0):
        config = dataclasses.replace(CONFIG, dropout=0.0, attention_dropout=0.0, classifier_dropout=dropout)
        model = training_backend.make("BertForSequenceClassification", config)
        seen[dropout] = [training_backend.call(model, IDS, training=True).logits for _ in range(3)]
    assert len({logits.tobytes() for logits in seen[0.9]}) > 1
    assert_allclose(seen[0.0][0], seen[0.0][1], rtol=1e-6)


def test_a_checkpoint_with_a_head_for_answers(backend, tmp_path):
    state = states.random_state(SHAPES["BertModel"])
    backend.make("BertModel", CONFIG, state=state).save_pretrained(tmp_path)
    theirs = {f"bert.{name}": value for name, value in load_file(tmp_path / "model.safetensors").items()}
    theirs |= {"qa_outputs.weight": np.zeros((2, 6), np.float32), "qa_outputs.bias": np.zeros(2, np.float32)}
    save_file(theirs, tmp_path / "model.safetensors", metadata={"format": "pt"})
    edit_config(tmp_path, architectures=["BertForMultipleChoice"])
    opened = backend.lib.BertModel.from_pretrained(tmp_path)
    assert_states_equal(state, backend.lib.get_state(opened), rtol=1e-6)
    message = r"new=\['classifier'\]; .* from a BertForMultipleChoice, whose encoder BertModel opens$"
    with pytest.raises(CheckpointError, match=message):
        backend.lib.BertForSequenceClassification.from_pretrained(tmp_path)


def test_a_source_is_passed_to_the_registry(backend, monkeypatch, tmp_path):
    backend.make("BertModel", CONFIG).save_pretrained(tmp_path)
    asked = []
    monkeypatch.setattr(cache, "fetch", lambda *arguments: asked.append(arguments) or tmp_path)
    assert backend.lib.BertModel.from_pretrained("bert-base-uncased", source="canonical").config == CONFIG
    backend.lib.BertModel.from_pretrained("minilm-l6")
    assert asked == [("bert-base-uncased", "canonical"), ("minilm-l6", None)]


def test_the_encoder_of_a_model_with_a_head_opens_alone(backend, tmp_path):
    state = states.random_state(SHAPES["BertForSequenceClassification"])
    backend.make("BertForSequenceClassification", CONFIG, state=state).save_pretrained(tmp_path)
    opened = backend.lib.get_state(backend.lib.BertModel.from_pretrained(tmp_path))
    expected = {name.removeprefix("bert."): value for name, value in state.items() if name.startswith("bert.")}
    assert_states_equal(expected, opened, rtol=1e-6)


def test_old_names_of_the_normalisations(backend, tmp_path):
    """Google's first conversion says gamma and beta; the tied output matrix may stand there twice."""
    state = states.random_state(SHAPES["BertForMaskedLM"])
    backend.make("BertForMaskedLM", CONFIG, state=state).save_pretrained(tmp_path)
    theirs = load_file(tmp_path / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in theirs.items()
    }
    assert sum("gamma" in name for name in old) == 6
    old["cls.predictions.decoder.weight"] = theirs["bert.embeddings.word_embeddings.weight"]
    old["bert.embeddings.position_ids"] = np.arange(7)[None]
    old["cls.seq_relationship.weight"] = np.zeros((2, 6), np.float32)
    save_file(old, tmp_path / "model.safetensors", metadata={"format": "pt"})
    opened = backend.lib.BertForMaskedLM.from_pretrained(tmp_path)
    assert_states_equal(state, backend.lib.get_state(opened), rtol=1e-6)


def test_the_saved_config_names_the_architecture(backend, tmp_path):
    for name in SHAPES:
        backend.make(name, CONFIG).save_pretrained(tmp_path)
        settings = json.loads((tmp_path / "config.json").read_text())
        assert settings["architectures"] == [name] and settings["model_type"] == "bert"


DECODER, TABLE = "cls.predictions.decoder.", "bert.embeddings.word_embeddings.weight"


def rewritten(folder, add=(), remove=()):
    """The folder's weights under Hugging Face's names, with others."""
    state = load_file(folder / "model.safetensors") | dict(add)
    save_file({name: value for name, value in state.items() if name not in remove}, folder / "model.safetensors")


def test_the_second_copy_of_a_tied_weight(backend, tmp_path):
    """It stands in for the first, may repeat it, and is an output matrix of its own where it differs."""
    state = states.random_state(SHAPES["BertForMaskedLM"])
    backend.make("BertForMaskedLM", CONFIG, state=state).save_pretrained(tmp_path)
    theirs = load_file(tmp_path / "model.safetensors")
    table, bias = theirs[TABLE], theirs["cls.predictions.bias"]
    copies = {f"{DECODER}weight": table, f"{DECODER}bias": bias}
    for remove in ((), (TABLE,), ("cls.predictions.bias",), (TABLE, "cls.predictions.bias")):
        rewritten(tmp_path, {**theirs, **copies}, remove)
        opened = backend.lib.BertForMaskedLM.from_pretrained(tmp_path)
        assert_states_equal(state, backend.lib.get_state(opened), rtol=1e-6)
    for name, other in ((f"{DECODER}weight", -table), (f"{DECODER}bias", bias + 1), (f"{DECODER}weight", table[:5])):
        rewritten(tmp_path, {**theirs, **copies, name: other})
        with pytest.raises(CheckpointError, match="the output matrix is not the token table; ours is tied"):
            backend.lib.BertForMaskedLM.from_pretrained(tmp_path)
        backend.lib.BertForMaskedLM.from_pretrained(tmp_path, new=["head"])
        backend.lib.BertModel.from_pretrained(tmp_path, new=["pooler"])  # it has no output matrix
        backend.lib.BertForSequenceClassification.from_pretrained(tmp_path, new=["pooler", "classifier"])


def test_untied_by_its_settings(backend, tmp_path):
    """Only the model with an output matrix minds."""
    backend.make("BertForMaskedLM", CONFIG).save_pretrained(tmp_path)
    edit_config(tmp_path, tie_word_embeddings=False)
    backend.lib.BertModel.from_pretrained(tmp_path, new=["pooler"])
    with pytest.raises(ValueError, match="tie_word_embeddings"):
        backend.lib.BertForMaskedLM.from_pretrained(tmp_path)


def test_a_fresh_layer_is_that_layer_alone(backend, tmp_path):
    config = dataclasses.replace(CONFIG, n_layers=11)
    state = states.random_state(states.bert(config))
    backend.make("BertModel", config, state=state).save_pretrained(tmp_path)
    opened = backend.lib.get_state(backend.lib.BertModel.from_pretrained(tmp_path, new=["encoder.layers.1"]))
    kept = {name for name in state if np.allclose(opened[name], state[name], rtol=1e-6)}
    assert set(state) - kept == {name for name in state if name.startswith("encoder.layers.1.")}


@pytest.mark.parametrize("name", SHAPES)
def test_what_answers_questions_opens_as_every_model(backend, name, tmp_path):
    """Its head is left out; so is that of a model for masked tokens where a classifier is wanted, and so on."""
    backend.make("BertModel", CONFIG, pooler=False).save_pretrained(tmp_path)
    heads = {"qa_outputs.weight": np.zeros((2, 6), np.float32), "qa_outputs.bias": np.zeros(2, np.float32)}
    rewritten(tmp_path, heads)
    new = {
        "BertModel": ["pooler"], "BertForMaskedLM": ["head"], "BertForPreTraining": ["pooler", "head", "next_sentence"],
        "BertForTokenClassification": ["classifier"], "BertForQuestionAnswering": [],
    }.get(name, ["pooler", "classifier"])  # fmt: skip
    getattr(backend.lib, name).from_pretrained(tmp_path, new=new)


def test_a_classifier_of_tokens_lacks_a_pooler(backend, tmp_path):
    backend.make("BertModel", CONFIG, pooler=False).save_pretrained(tmp_path)
    rewritten(tmp_path, {"classifier.weight": np.zeros((3, 6), np.float32), "classifier.bias": np.zeros(3, np.float32)})
    edit_config(tmp_path, architectures=["BertForTokenClassification"])
    with pytest.raises(CheckpointError, match=r"pass new=\['pooler', 'classifier'\]; .* BertForTokenClassification"):
        backend.lib.BertForSequenceClassification.from_pretrained(tmp_path)
    assert backend.lib.BertForSequenceClassification.from_pretrained(tmp_path, new=["pooler", "classifier"])


def test_settings_that_there_are_not(backend, tmp_path):
    backend.make("BertModel", CONFIG).save_pretrained(tmp_path)
    with pytest.raises(TypeError, match="'droput' is no setting of BertConfig; its settings are vocab_size, .*ropout"):
        backend.lib.BertModel.from_pretrained(tmp_path, droput=0.0)
    with pytest.raises(ValueError, match="labels must be the names of the classes, texts; got 5"):
        backend.lib.BertModel.from_pretrained(tmp_path, labels=5)


@pytest.mark.parametrize("share", [True, False])
def test_a_transformer_is_saved_and_loaded_as_any_model(backend, tmp_path, share):
    config = TransformerConfig(13, 13, 6, 1, 3, 8, max_len=9, share_embeddings=share, positions="learned", pad_id=5)
    model = backend.make("Transformer", config)
    assert model.save_pretrained(tmp_path) == tmp_path
    loaded = backend.lib.Transformer.from_pretrained(tmp_path, attention=backend.function("fused_attention"))
    assert loaded.config == config
    ids, targets = np.array([[2, 4, 12, 5]]), np.array([[1, 3]])
    expected = backend.call(model, ids, targets).logits
    assert_allclose(backend.call(loaded, ids, targets).logits, expected, **backend.tolerance)
    fresh = backend.lib.Transformer.from_pretrained(tmp_path, new=["decoder"], dropout=0.3)
    assert fresh.config.dropout == 0.3
    ours, theirs = backend.lib.get_state(fresh), backend.lib.get_state(model)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours if not name.startswith("decoder."))
    assert not np.array_equal(ours["decoder.layers.0.feed_forward.linear1.weight"],
                              theirs["decoder.layers.0.feed_forward.linear1.weight"])  # fmt: skip


def test_the_transformer_that_ships_is_found_by_its_name(backend):
    translator = backend.lib.load_translator()
    model = backend.lib.Transformer.from_pretrained("translator-es-en")
    assert model.config == translator.model.config
    ours, theirs = backend.lib.get_state(model), backend.lib.get_state(translator.model)
    assert all(np.array_equal(ours[name], value) for name, value in theirs.items()) and len(ours) == len(theirs)


def test_folders_of_another_family_are_refused(backend, tmp_path):
    config = BertConfig(13, 6, 1, 3, 8, 9)
    backend.make("BertModel", config).save_pretrained(tmp_path / "bert")
    with pytest.raises(CheckpointError, match="is of a 'bert', no translator; BertModel.from_pretrained opens"):
        backend.lib.Transformer.from_pretrained(tmp_path / "bert")
    config = TransformerConfig(13, 13, 6, 1, 3, 8)
    backend.make("Transformer", config).save_pretrained(tmp_path / "translator")
    with pytest.raises(UnsupportedConfigError, match="is no BERT's but a translator's"):
        backend.lib.BertModel.from_pretrained(tmp_path / "translator")


@pytest.mark.parametrize(
    "kind", [("gru", None, "bahdanau"), ("lstm", "general", "luong"), ("rnn", "additive", "bahdanau")]
)
def test_a_recurrent_translator_is_saved_and_loaded_by_every_framework(backend, tmp_path, kind):
    cell, score, order = kind
    config = Seq2SeqConfig(13, 11, 6, 8, cell, score, 0.1, 5, order)
    model = backend.make("Seq2Seq", config)
    assert model.save_pretrained(tmp_path) == tmp_path
    ids, targets = np.array([[2, 4, 12, 5], [3, 6, 7, 1]]), np.array([[1, 3], [1, 4]])
    expected = backend.call(model, ids, targets).logits
    for reader in (NUMPY, TORCH, TENSORFLOW):
        loaded = reader.lib.Seq2Seq.from_pretrained(tmp_path)
        assert loaded.config == config
        assert_allclose(reader.call(loaded, ids, targets).logits, expected, rtol=1e-4, atol=1e-5)
    assert backend.lib.Seq2Seq.from_pretrained(tmp_path, dropout=0.0).config == dataclasses.replace(config, dropout=0.0)


def test_what_is_no_recurrent_translator(backend, tmp_path):
    backend.make("Seq2Seq", Seq2SeqConfig(13, 11, 6, 8, score="dot")).save_pretrained(tmp_path)
    load = backend.lib.Seq2Seq.from_pretrained
    with pytest.raises(CheckpointError, match="the checkpoint has d_hidden=8, score=dot, and only"):
        load(tmp_path, d_hidden=10, score="general")
    with pytest.raises(
        TypeError, match="'heads' is no setting of Seq2SeqConfig; its settings are source_vocab, .*order"
    ):
        load(tmp_path, heads=2)
    with pytest.raises(TypeError, match="attention"):
        load(tmp_path, attention=backend.function("attention"))
    with pytest.raises(CheckpointError, match="no Transformer: .*Seq2Seq.from_pretrained opens a recurrent one"):
        backend.lib.Transformer.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="no Seq2Seq: .*Transformer.from_pretrained opens a model with heads"):
        load("translator-es-en")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="model.safetensors"):
        load(tmp_path)
