"""What a classifier of texts reads: the mean of the real tokens; and a BERT that normalises before its sub-layers."""

import importlib
import json

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.numpy import load_file

from course_lib.checkpoints.weights import CheckpointError
from course_lib.errors import UnsupportedConfigError
from course_lib.masks import causal_mask, padding_mask
from course_lib.models.bert import BertConfig
from tests.support import specification, states
from tests.support.backends import NUMPY

PAD = 5
CONFIG = BertConfig(
    vocab_size=13, d_model=6, n_layers=2, n_heads=3, d_ff=10, max_len=7, pad_id=PAD, n_classes=4, pooling="mean"
)
SIZES = (CONFIG.n_layers, CONFIG.n_heads)
IDS = np.array([[2, 0, 12, 1, 7], [9, 4, 4, PAD, PAD]])
REAL, ALL = IDS != PAD, np.ones(IDS.shape, dtype=bool)
KEYS = np.array([True, True, False, True, False])  # for all sequences alike
MASKS = {
    "none": (None, ALL),
    "padding": (padding_mask(IDS, PAD), REAL),
    "padding and the future": (padding_mask(IDS, PAD) & causal_mask(5), REAL),
    "of keys": (KEYS, ALL & KEYS),
    "of queries and keys": (np.broadcast_to(KEYS, (5, 5)).copy(), ALL & KEYS),
    "of all sequences": (KEYS[None, None, None], ALL & KEYS),
    "of each head": (np.stack([padding_mask(IDS, PAD)[:, 0]] * 2 + [np.zeros((2, 1, 5), dtype=bool)], axis=1), REAL),
}


def build(backend, config=CONFIG, name="BertForSequenceClassification", seed=0):
    shapes = states.classifier if name == "BertForSequenceClassification" else states.bert
    return backend.make(name, config, state=states.random_state(shapes(config), seed))


@pytest.mark.parametrize("mask", MASKS)
def test_a_classifier_reads_the_mean_of_the_real_tokens(backend, mask):
    mask, real = MASKS[mask]
    state = states.random_state(states.classifier(CONFIG))
    logits = backend.call(build(backend), IDS, mask=mask).logits
    full = None if mask is None else np.broadcast_to(mask, (2, 3, 5, 5))
    expected = specification.classifier(state, IDS, full, None, *SIZES, real=real)
    assert_allclose(logits, expected, **backend.tolerance)


def test_padding_changes_nothing(backend):
    model = build(backend)
    whole = backend.call(model, IDS, mask=padding_mask(IDS, PAD)).logits
    alone = backend.call(model, IDS[1:, :3]).logits
    assert_allclose(whole[1:], alone, **backend.tolerance)


def test_a_text_of_padding_alone_gets_the_bias(backend):
    model, ids = build(backend), np.full((1, 4), PAD)
    bias = backend.lib.get_state(model)["classifier.bias"]
    assert_allclose(backend.call(model, ids, mask=padding_mask(ids, PAD)).logits, bias[None], rtol=1e-6)


def test_mean_pool(backend, rng):
    hidden, real = rng.normal(size=(3, 4, 2)), np.array([[1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=bool)
    mean_pool = backend.lib.mean_pool
    expected = specification.mean_of_real(hidden, real)
    assert_allclose(backend.call(mean_pool, hidden), hidden.mean(1), **backend.tolerance)
    for padding in (0.5, np.nan):  # what it is does not matter
        hidden[0, 1] = padding
        assert_allclose(backend.call(mean_pool, hidden, real), expected, **backend.tolerance)
    for wrong, error, message in (
        (real.astype(np.int64), TypeError, "real must be boolean, True at the tokens that count, got .*int64"),
        (real[:, :3], ValueError, r"real must say True or False of each token, \(3, 4\); got \(3, 3\)"),
        (real[:, None], ValueError, r"of each token, \(3, 4\); got \(3, 1, 4\)"),
    ):
        with pytest.raises(error, match=message):
            backend.call(mean_pool, hidden, wrong)


def test_a_long_sum_in_half_precision(training_backend):
    """500 times 200 is more than float16 reaches; the result is in float16 again."""
    hidden, real = np.full((1, 500, 2), 200.0), np.ones((1, 500), dtype=bool)
    backend = training_backend
    hidden = backend.tensor(hidden)
    hidden = hidden.half() if backend.name == "torch" else hidden.numpy().astype(np.float16)
    if backend.name == "tensorflow":
        import tensorflow

        hidden = tensorflow.constant(hidden)
    for given in (None, backend.tensor(real)):
        pooled = backend.lib.mean_pool(hidden, given)
        assert "float16" in str(pooled.dtype)
        assert_allclose(np.asarray(pooled, dtype=np.float32), 200.0)


@pytest.mark.parametrize("changes", [{"pooling": "mean"}, {"pre_norm": True}, {"pooling": "mean", "pre_norm": True}])
def test_saved_and_opened(backend, changes, tmp_path):
    config = BertConfig(13, 6, 2, 3, 10, 7, pad_id=PAD, n_classes=4, **changes)
    model = build(backend, config)
    opened = backend.lib.BertForSequenceClassification.from_pretrained(model.save_pretrained(tmp_path))
    assert opened.config == config
    assert_allclose(backend.call(opened, IDS).logits, backend.call(model, IDS).logits, **backend.tolerance)
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings.get("classifier_pooling") == changes.get("pooling")
    assert settings["model_type"] == ("bert-pre-norm" if config.pre_norm else "bert")
    names = set(load_file(tmp_path / "model.safetensors"))
    assert ("bert.pooler.dense.weight" in names) == (config.pooling == "first")
    assert ("bert.encoder.LayerNorm.weight" in names) == config.pre_norm


def test_hugging_faces_name_of_the_first_token():
    settings = BertConfig().to_hugging_face("BertForSequenceClassification")
    assert BertConfig.from_hugging_face(settings | {"classifier_pooling": "cls"}).pooling == "first"
    with pytest.raises(UnsupportedConfigError, match="pooling must be one of 'first', 'mean'; got 'max'"):
        BertConfig.from_hugging_face(settings | {"classifier_pooling": "max"})


def test_an_encoder_with_a_pooler_opens_without(backend, tmp_path):
    """The pooler of the checkpoint is left out, and the head asked for; the other way round a pooler is missing."""
    encoder = build(backend, BertConfig(13, 6, 2, 3, 10, 7), "BertModel")
    encoder.save_pretrained(tmp_path)
    cls = backend.lib.BertForSequenceClassification
    with pytest.raises(CheckpointError, match=r"missing: classifier.weight, classifier.bias; .*new=\['classifier'\]"):
        cls.from_pretrained(tmp_path, pooling="mean")
    model = cls.from_pretrained(tmp_path, pooling="mean", new=["classifier"], n_classes=4)
    hidden = backend.call(encoder, IDS).last_hidden
    head = backend.lib.get_state(model)
    expected = hidden.mean(1) @ head["classifier.weight"].T + head["classifier.bias"]
    assert_allclose(backend.call(model, IDS).logits, expected, rtol=1e-4, atol=1e-5)
    model.save_pretrained(tmp_path / "mean")
    with pytest.raises(CheckpointError, match=r"missing: pooler.weight.*pass new=\['pooler', 'classifier'\]"):
        cls.from_pretrained(tmp_path / "mean", pooling="first")


def test_the_real_checkpoint(backend):
    model = backend.lib.BertForSequenceClassification.from_pretrained("minilm-l6", pooling="mean", new=["classifier"])
    assert model.config.pooling == "mean" and not any("pooler" in name for name in backend.lib.get_state(model))


def test_transformers_opens_the_encoder_and_says_that_it_lacks_a_pooler(backend, tmp_path):
    """None of its BERTs reads the mean: it must not pass for one that does."""
    model = build(backend)
    model.save_pretrained(tmp_path)
    _, report = transformers.BertForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert set(report["missing_keys"]) == {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
    theirs = transformers.BertModel.from_pretrained(tmp_path, add_pooling_layer=False).eval()
    with torch.no_grad():
        hidden = theirs(torch.from_numpy(IDS)).last_hidden_state
    assert_allclose(backend.call(model.bert, IDS).last_hidden, hidden, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["Roberta", "DistilBert", "Albert"])
def test_transformers_takes_no_other_classifier_for_the_mean_of_tokens(kind, tmp_path):
    """Without a pooler it would open the folder without a word and read the first token; else it says what lacks."""
    config = importlib.import_module(f"course_lib.models.{kind.lower()}")
    config = getattr(config, f"{kind}Config")(13, 6, 2, 3, 10, 7, pad_id=2, pooling="mean")
    classes = importlib.import_module(f"course_lib.torch.models.{kind.lower()}")
    model = getattr(classes, f"{kind}ForSequenceClassification")(config)
    model.save_pretrained(tmp_path)
    auto = transformers.AutoModelForSequenceClassification
    if config.pooler:
        _, report = auto.from_pretrained(tmp_path, output_loading_info=True)
        assert {name.split(".")[-2] for name in report["missing_keys"]} == {"pooler"}
    else:
        with pytest.raises(ValueError, match=f"{kind.lower()}-mean-pooling.*does not recognize this architecture"):
            auto.from_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    for model_type in (settings["model_type"], kind.lower()):  # and what earlier versions wrote
        (tmp_path / "config.json").write_text(json.dumps(settings | {"model_type": model_type}))
        assert type(model).from_pretrained(tmp_path).config == config
    getattr(classes, f"{kind}Model")(config).save_pretrained(tmp_path / "encoder")
    transformers.AutoModel.from_pretrained(tmp_path / "encoder")


def test_a_pre_norm_encoder(backend):
    config = BertConfig(13, 6, 2, 3, 10, 7, pre_norm=True)
    state = states.random_state(states.bert(config))
    output = backend.call(build(backend, config, "BertModel"), IDS, mask=padding_mask(IDS, PAD), return_layers=True)
    expected = specification.bert(state, "", IDS, padding_mask(IDS, PAD), None, 2, 3, pre_norm=True)
    assert_allclose(output.last_hidden, expected[0], **backend.tolerance)
    assert_allclose(output.pooled, expected[1], **backend.tolerance)
    assert_allclose(output.hidden[-1], expected[2][-1], **backend.tolerance)  # before the last normalisation


def test_transformers_refuses_a_pre_norm_bert(tmp_path):
    """It has none: opened as its BERT, it would compute something else. `model_type` tells it."""
    build(NUMPY, BertConfig(13, 6, 2, 3, 10, 7, pre_norm=True), "BertModel").save_pretrained(tmp_path)
    for cls in (transformers.AutoModel, transformers.AutoConfig):
        with pytest.raises(ValueError, match="does not recognize this architecture"):
            cls.from_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    for changes in ({"pre_norm": False}, {"model_type": "bert"}):
        with pytest.raises(UnsupportedConfigError, match="model_type="):
            BertConfig.from_hugging_face(settings | changes)
