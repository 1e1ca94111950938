"""RoBERTa, DistilBERT and ALBERT: what each changes of BERT and what it refuses; gradients of both frameworks."""

import dataclasses
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.checkpoints.weights import CheckpointError
from course_lib.errors import UnsupportedConfigError
from course_lib.masks import padding_mask
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from course_lib.models.distilbert import DistilBertConfig
from course_lib.models.position_tables import sinusoidal_table
from course_lib.models.roberta import RobertaConfig
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

SIZES = {"vocab_size": 13, "d_model": 6, "n_layers": 3, "n_heads": 3, "d_ff": 10, "max_len": 9, "n_classes": 4}
CONFIGS = {
    "Bert": BertConfig(**SIZES, pad_id=2),
    "Roberta": RobertaConfig(**SIZES | {"max_len": 11}, pad_id=2),
    "DistilBert": DistilBertConfig(**SIZES, pad_id=2),
    "Albert": AlbertConfig(**SIZES, pad_id=2, d_embedding=4, n_groups=2),
}
FAMILY = ["Roberta", "DistilBert", "Albert"]
TASKS = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]
IDS = np.array([[3, 5, 12, 1, 7], [9, 4, 2, 2, 2], [2, 2, 2, 4, 8]])
MASK = padding_mask(IDS, 2)


def filled(backend, name, config, seed=0):
    """A model with weights of a size at which all of them count, the same in every framework."""
    model = backend.make(name, config)
    shapes = {key: value.shape for key, value in sorted(backend.lib.get_state(model).items())}
    backend.lib.set_state(model, states.random_state(shapes, seed))
    return model


def test_padding_on_the_left_moves_no_token_of_a_roberta(backend):
    """Positions count real tokens; a BERT's count all."""
    left, alone = np.array([[2, 2, 2, 4, 8]]), np.array([[4, 8]])
    for kind, equal in (("Roberta", True), ("Bert", False)):
        model = filled(backend, f"{kind}Model", CONFIGS[kind])
        padded = backend.call(model, left, mask=padding_mask(left, 2)).last_hidden[:, 3:]
        expected = backend.call(model, alone).last_hidden
        assert np.allclose(padded, expected, rtol=1e-4, atol=1e-5) is equal


def test_a_roberta_has_positions_from_behind_pad_id_on(backend):
    """Eleven rows and pad_id 2: of padding row 2, of tokens rows 3 to 10, so eight tokens at most."""
    config = CONFIGS["Roberta"]
    model = filled(backend, "RobertaModel", config)
    assert backend.call(model, np.full((1, 8), 5)).last_hidden.shape == (1, 8, 6)
    with pytest.raises(ValueError, match="a sequence of 9 tokens is over the maximum of 8"):
        backend.call(model, np.full((1, 9), 5))
    positions = np.array([[3, 4, 5, 6, 7], [3, 4, 2, 2, 2], [2, 2, 2, 3, 4]])
    plain, name = backend.call(model.embeddings, IDS), "embeddings.position.weight"
    table = backend.lib.get_state(model)[name]
    for row in range(11):
        doubled = table * np.where(np.arange(11) == row, 2, 1)[:, None]
        backend.lib.set_state(model, {name: doubled}, partial=True)
        changed = np.abs(backend.call(model.embeddings, IDS) - plain).max(-1) > 1e-4  # (B, T)
        assert (changed == (positions == row)).all(), row


def test_ids_of_other_kinds(backend):
    model = filled(backend, "RobertaModel", CONFIGS["Roberta"])
    expected = backend.call(model, IDS).last_hidden
    for ids in (IDS.astype(np.int32), IDS.astype(np.uint8), IDS.tolist()):
        assert_allclose(backend.call(model, ids).last_hidden, expected, rtol=1e-6)


def test_a_distilbert_has_neither_segments_nor_a_pooler(backend):
    config = CONFIGS["DistilBert"]
    model = filled(backend, "DistilBertModel", config)
    assert not [name for name in backend.lib.get_state(model) if "segment" in name or "pooler" in name]
    output = backend.call(model, IDS, mask=MASK)
    assert output.pooled is None
    assert_allclose(backend.call(model, IDS, mask=MASK, segments=0 * IDS).last_hidden, output.last_hidden)
    with pytest.raises(ValueError, match="segments must lie in 0 ... 0"):
        backend.call(model, IDS, segments=IDS % 2)
    with pytest.raises(ValueError, match="a DistilBERT has no pooler"):
        backend.make("DistilBertModel", config, pooler=True)


def test_fresh_positions_of_a_distilbert(backend):
    for sinusoidal in (True, False):
        config = dataclasses.replace(CONFIGS["DistilBert"], sinusoidal=sinusoidal)
        for name, prefix in (("DistilBertModel", ""), ("DistilBertForMaskedLM", "bert.")):
            fresh = backend.lib.get_state(backend.make(name, config))[f"{prefix}embeddings.position.weight"]
            assert np.allclose(fresh, sinusoidal_table(9, 6), atol=1e-6) is sinusoidal


@pytest.mark.parametrize("n_groups, order", [(1, [0, 0, 0]), (2, [0, 0, 1]), (3, [0, 1, 2])])
def test_an_albert_is_a_bert_whose_layers_and_embeddings_are_written_out(backend, n_groups, order):
    """The same numbers from a BERT with a copy of the group in each layer, and embeddings times a matrix."""
    config = dataclasses.replace(CONFIGS["Albert"], n_groups=n_groups)
    model = filled(backend, "AlbertModel", config)
    state = backend.lib.get_state(model)
    layers = [name for name in state if name.startswith("encoder.layers.")]
    assert {int(name.split(".")[2]) for name in layers} == set(range(n_groups))
    whole = {name: state[name] for name in state if name.startswith(("encoder.norm", "pooler"))}
    for layer, group in enumerate(order):
        prefix = f"encoder.layers.{group}."
        whole |= {f"encoder.layers.{layer}." + n.removeprefix(prefix): state[n] for n in layers if n.startswith(prefix)}
    plain = BertConfig(**SIZES, dropout=0.0, activation="gelu_new")
    bert = filled(backend, "BertModel", plain)
    backend.lib.set_state(bert, whole, partial=True)
    output = backend.call(model, IDS, mask=MASK, return_layers=True)
    small = BertConfig(**SIZES | {"d_model": 4, "n_heads": 2}, dropout=0.0)
    bare = filled(backend, "BertModel", small)
    tables = {name: value for name, value in state.items() if name.startswith("embeddings.") and "project" not in name}
    backend.lib.set_state(bare, tables, partial=True)
    projected = backend.call(bare.embeddings, IDS) @ state["embeddings.project.weight"].T
    assert_allclose(output.hidden[0], projected + state["embeddings.project.bias"], rtol=1e-4, atol=1e-5)
    expected = backend.call(bert.encoder, output.hidden[0], mask=MASK)
    assert_allclose(output.last_hidden, expected.last_hidden, rtol=1e-4, atol=1e-5)


def test_the_parameters_of_an_albert_do_not_grow_with_its_layers(backend):
    sizes = []
    for n_layers in (3, 9):
        model = backend.make("AlbertModel", dataclasses.replace(CONFIGS["Albert"], n_layers=n_layers))
        sizes.append({name: value.shape for name, value in backend.lib.get_state(model).items()})
        assert len(backend.call(model, IDS, return_layers=True).weights) == n_layers
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", FAMILY)
def test_gradients_of_torch_and_tensorflow(kind, task):
    found = []
    for backend in (TORCH, TENSORFLOW):
        model = filled(backend, kind + task, CONFIGS[kind])
        found.append(backend.gradients(model, IDS, mask=backend.tensor(MASK))[1])
    assert found[0].keys() == found[1].keys()
    for name in found[0]:
        assert_allclose(found[1][name], found[0][name], rtol=1e-3, atol=2e-5, err_msg=name)
    assert sum(np.abs(value).max() > 1e-4 for value in found[0].values()) > len(found[0]) / 2


@pytest.mark.parametrize("kind, layer", [("Roberta", "classifier.dense"), ("DistilBert", "pre_classifier")])
def test_dropout_between_the_layers_of_a_classifier(training_backend, kind, layer):
    """With the first layer's matrix at zero, none before it is seen."""
    config = dataclasses.replace(CONFIGS[kind], dropout=0.0, attention_dropout=0.0, classifier_dropout=0.5)
    model = filled(training_backend, f"{kind}ForSequenceClassification", config)
    zero = {f"{layer}.weight": np.zeros((6, 6)), f"{layer}.bias": np.ones(6)}
    training_backend.lib.set_state(model, zero, partial=True)
    seen = {training_backend.call(model, IDS, training=True).logits.tobytes() for _ in range(4)}
    assert len(seen) > 1
    still = {training_backend.call(model, IDS, training=False).logits.tobytes() for _ in range(2)}
    assert len(still) == 1


def test_the_dropouts_of_a_distilbert(training_backend):
    """Before the layer that finds answers one of its own, before the labels of tokens that of the layers."""
    for task, name in (("ForQuestionAnswering", "answer_dropout"), ("ForTokenClassification", "dropout")):
        for dropout in (0.5, 0.0):
            none = {"dropout": 0.0, "attention_dropout": 0.0, "answer_dropout": 0.0, "classifier_dropout": 0.9}
            config = dataclasses.replace(CONFIGS["DistilBert"], **none | {name: dropout})
            model = filled(training_backend, f"DistilBert{task}", config)
            seen = {training_backend.call(model, IDS, training=True)[0].tobytes() for _ in range(4)}
            assert len(seen) == (4 if dropout else 1), (task, dropout)


@pytest.mark.parametrize("kind", FAMILY)
def test_a_classifier_may_read_the_mean_of_the_real_tokens(backend, kind):
    config = dataclasses.replace(CONFIGS[kind], pooling="mean")
    model = filled(backend, f"{kind}ForSequenceClassification", config)
    assert not [name for name in backend.lib.get_state(model) if "pooler" in name]
    whole = backend.call(model, IDS, mask=MASK).logits
    first = filled(backend, f"{kind}ForSequenceClassification", dataclasses.replace(config, pooling="first"))
    assert abs(whole - backend.call(first, IDS, mask=MASK).logits).max() > 1e-3
    hidden = backend.call(model.bert, IDS, mask=MASK).last_hidden
    means = np.stack([row[real].mean(0) for row, real in zip(hidden, IDS != 2, strict=True)])
    expected = backend.call(model.classify, means)
    assert_allclose(whole, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_configuration_of_another_member_is_refused(backend, kind, task):
    for other in CONFIGS:
        if other != kind:
            with pytest.raises(TypeError, match=f"is built of a {kind}Config, got {other}Config.*{other}Model takes"):
                backend.make(kind + task, CONFIGS[other])
    with pytest.raises(TypeError, match=f"is built of a {kind}Config, got 'base'"):
        backend.make(kind + task, "base")


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_folder_of_another_member_is_refused(backend, kind, tmp_path):
    NUMPY.make(f"{kind}Model", CONFIGS[kind]).save_pretrained(tmp_path)
    for other in CONFIGS:
        if other != kind:
            with pytest.raises(UnsupportedConfigError, match=f"computes '{other.lower()}' only; {kind}Model and"):
                getattr(backend.lib, f"{other}ForMaskedLM").from_pretrained(tmp_path)


def test_a_classifier_of_tokens_alone_is_none_of_texts(backend, tmp_path):
    """Also where config.json does not say what the checkpoint is of."""
    folder = filled(NUMPY, "DistilBertForTokenClassification", CONFIGS["DistilBert"]).save_pretrained(tmp_path)
    settings = json.loads((folder / "config.json").read_text())
    for changed in (settings, settings | {"architectures": None}):
        (folder / "config.json").write_text(json.dumps(changed))
        with pytest.raises(CheckpointError, match=r"new=\['(pre_)?classifier', '(pre_)?classifier'\]"):
            backend.lib.DistilBertForSequenceClassification.from_pretrained(folder)


def test_what_is_missing_says_how_to_start_it_afresh(backend, tmp_path):
    parts = {"Roberta": ["classifier"], "DistilBert": ["classifier", "pre_classifier"], "Albert": ["classifier"]}
    for kind, new in parts.items():
        folder = filled(NUMPY, f"{kind}Model", CONFIGS[kind]).save_pretrained(tmp_path / kind)
        cls = getattr(backend.lib, f"{kind}ForSequenceClassification")
        with pytest.raises(CheckpointError, match=r"pass new=\['" + "', '".join(new)):
            cls.from_pretrained(folder)
        opened = cls.from_pretrained(folder, new=new, n_classes=7)
        assert opened.config.n_classes == 7
        expected = backend.call(filled(backend, f"{kind}Model", CONFIGS[kind]), IDS, mask=MASK).last_hidden
        assert_allclose(backend.call(opened.bert, IDS, mask=MASK).last_hidden, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", FAMILY)
def test_a_model_that_normalises_first_is_saved_and_opened(backend, kind, tmp_path):
    """`transformers` has none of these, and is told so."""
    config = dataclasses.replace(CONFIGS[kind], pre_norm=True)
    model = filled(backend, f"{kind}ForMaskedLM", config)
    folder = model.save_pretrained(tmp_path)
    assert json.loads((folder / "config.json").read_text())["model_type"] == f"{kind.lower()}-pre-norm"
    opened = type(model).from_pretrained(folder)
    assert opened.config == config
    assert_allclose(backend.call(opened, IDS).logits, backend.call(model, IDS).logits, rtol=1e-5, atol=1e-6)
