"""Every layer and model as one of Keras's own: name, dtype, config, symbolic calls, fit, export, half precision."""

import copy
import functools
import json
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

import course_lib.tensorflow as lib
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from course_lib.models.cnn import CNNConfig
from course_lib.models.decision import DecisionConfig
from course_lib.models.distilbert import DistilBertConfig
from course_lib.models.gpt import GPTConfig
from course_lib.models.roberta import RobertaConfig
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.t5 import T5Config
from course_lib.models.transformer import TransformerConfig
from course_lib.models.vit import ViTConfig
from course_lib.models.whisper import WhisperConfig
from course_lib.tensorflow.models.albert import AlbertEmbeddings
from course_lib.tensorflow.models.bert import BertEmbeddings
from course_lib.tensorflow.models.bert_heads import MaskedLMHead
from course_lib.tensorflow.models.cnn import Convolution
from course_lib.tensorflow.models.roberta import RobertaEmbeddings, RobertaHead
from course_lib.tensorflow.models.vit import PatchEmbedding
from course_lib.tensorflow.models.whisper import SoundConvolution
from course_lib.tensorflow.training.classifier import embed
from tests.support.backends import TENSORFLOW
from tests.support.keras_models import ROUNDING, error

# Keras's own, of NumPy 2, while it writes weights
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

BERT = BertConfig(
    vocab_size=13, d_model=6, n_layers=1, n_heads=3, d_ff=8, max_len=7, pad_id=5, n_classes=2, labels=("no", "yes")
)
SIZES = {"d_model": 6, "n_layers": 1, "n_heads": 3, "d_ff": 8, "max_len": 9}
TRANSFORMER = TransformerConfig(13, 11, **SIZES, positions="rotary", pad_id=5)
IDS = np.array([[2, 4, 12, 1], [9, 4, 5, 5]])
TARGETS = np.array([[1, 3, 5], [1, 9, 10]])
X, WIDE = np.random.default_rng(0).normal(size=(2, 2, 4, 6)).astype("float32")
MASK = np.array([[1, 1, 0, 1], [1, 0, 0, 0]], dtype=bool)[:, None, None]
BLOCK = BlockConfig(6, 3, 8, 0.1, 0.2, "gelu", True, "rms", 1e-3, 1, 4, 0.7, False, True, 9.0)

IMAGES = np.random.default_rng(1).normal(size=(2, 2, 6, 9)).astype("float32")
VIT = ViTConfig((6, 9), 3, 2, 6, 1, 3, 8, 3, 0.1, attention_dropout=0.25, qkv_bias=False, labels=("a", "b", "c"))
WHISPER = WhisperConfig(13, 5, 6, 1, 1, 3, 2, 8, 9, 4, 7, 0.1, 0.25, pad_id=5, start_id=1, end_id=2)
SOUNDS = np.random.default_rng(2).normal(size=(2, 5, 7)).astype("float32")
PLAIN = {"vocab_size": 13, "d_model": 6, "n_layers": 1, "n_heads": 3, "d_ff": 8, "max_len": 13, "pad_id": 5}
ALBERT = AlbertConfig(**PLAIN | {"n_layers": 2}, d_embedding=4, n_groups=2)
DISTILBERT, ROBERTA = DistilBertConfig(**PLAIN, sinusoidal=True), RobertaConfig(**PLAIN)

EXAMPLES = {  # the class: its arguments, then the inputs of a call
    **{name: ((ALBERT, lib.fused_attention), (IDS, MASK)) for name in lib.__all__ if name.startswith("Albert")},
    **{name: ((DISTILBERT, lib.fused_attention), (IDS, MASK)) for name in lib.__all__ if name.startswith("Distil")},
    **{name: ((ROBERTA, lib.fused_attention), (IDS, MASK)) for name in lib.__all__ if name.startswith("Roberta")},
    "AdditiveScore": ((6, 6), (X, WIDE)),
    "BertForMaskedLM": ((BERT, lib.fused_attention), (IDS, MASK)),
    "BertForPreTraining": ((BERT, lib.fused_attention), (IDS, MASK)),
    "BertForQuestionAnswering": ((BERT, lib.fused_attention), (IDS, MASK)),
    "BertForSequenceClassification": ((BERT, lib.fused_attention), (IDS, MASK)),
    "BertForTokenClassification": ((BERT, lib.fused_attention), (IDS, MASK)),
    "BertModel": ((BERT, lib.fused_attention, False), (IDS, MASK)),
    "CNN": ((CNNConfig((6, 9), 2, (4, 5), 1, 3),), (IMAGES,)),
    "DecisionTransformer": ((DecisionConfig(6, 6, 6, 1, 3, 8, 13), lib.fused_attention), (X, WIDE, X[..., :1], IDS)),
    "Decoder": ((1, BLOCK, lib.rotary(lib.attention, 7.0), False), (X,)),
    "DecoderLayer": ((BLOCK, lib.fused_attention), (X, WIDE)),
    "DotScore": ((6, 6), (X, WIDE)),
    "Encoder": ((1, BLOCK, lib.rotary(lib.fused_attention, 9.0)), (X, MASK)),
    "EncoderLayer": ((BLOCK, lib.fused_attention), (X, MASK)),
    "FeedForward": ((6, 8, "gelu", True, False), (X,)),
    "GPT": ((GPTConfig(13, **SIZES, pad_id=5), lib.fused_attention), (IDS,)),
    "GRUCell": ((6, 4), (X[:, 0], (WIDE[:, 0, :4],))),
    "GeneralScore": ((6, 6), (X, WIDE)),
    "LSTMCell": ((6, 4), (X[:, 0], (WIDE[:, 0, :4], WIDE[:, 1, :4]))),
    "LearnedPositions": ((6, 9, 0.5), (X,)),
    "MultiHeadAttention": ((6, 3, 0.1, lib.rotary(lib.fused_attention), 1, 4, False, 0.5, 7.0), (X, WIDE, WIDE)),
    "RNN": ((6, 4, "lstm", True, lib.run_fused), (X, MASK[:, 0, 0])),
    "RNNCell": ((6, 4), (X[:, 0], (WIDE[:, 0, :4],))),
    "Seq2Seq": ((Seq2SeqConfig(13, 11, 4, 6, "lstm", "additive", 0.1, 5, "luong"), lib.run_unrolled), (IDS, TARGETS)),
    "RelativePositions": ((3, 8, 5, False), (X,)),
    "SinusoidalPositions": ((6, 9), (X,)),
    "T5": ((T5Config(13, 6, 1, 1, 3, 4, 8, pad_id=5), lib.fused_attention), (IDS, TARGETS)),
    "TimeModulation": ((6, 3, 2.0), (X, WIDE[..., 0])),
    "Transformer": ((TRANSFORMER, lib.fused_attention), (IDS, TARGETS)),
    "ViT": ((VIT, lib.fused_attention), (IMAGES,)),
    "Whisper": ((WHISPER, lib.fused_attention), (SOUNDS, TARGETS)),
    SoundConvolution: ((6, 5, 2, 0.5), (X,)),
    PatchEmbedding: ((2, 5, 3, 0.5), (IMAGES,)),
    Convolution: ((2, 5), (IMAGES,)),
    BertEmbeddings: ((BERT,), (IDS, IDS % 2)),
    AlbertEmbeddings: ((ALBERT,), (IDS, IDS % 2)),
    RobertaEmbeddings: ((ROBERTA,), (IDS,)),
    RobertaHead: ((ROBERTA,), (X[:, 0],)),
    MaskedLMHead: ((BERT,), (X, np.ones((13, 6), dtype="float32"))),
}  # fmt: skip
ASKED = ("NextLogits", "NextAction")  # what asks a model, and has no weights
LAYERS = [name for name in lib.__all__ if isinstance(getattr(lib, name), type) and name not in ASKED]
OWN = [BertEmbeddings, MaskedLMHead, AlbertEmbeddings, RobertaEmbeddings, RobertaHead, PatchEmbedding, Convolution]
OWN += [SoundConvolution]
WALK = pytest.mark.parametrize("name", [*LAYERS, *OWN], ids=str)


def made(name, /, **options):
    """An example: the class, the instance, and the inputs as tensors."""
    arguments, inputs = EXAMPLES[name]
    cls = getattr(lib, name) if isinstance(name, str) else name
    keras.utils.set_random_seed(1)
    return cls, cls(*arguments, **options), tf.nest.map_structure(TENSORFLOW.tensor, inputs)


@functools.cache
def example(name):
    """An example made once: the instance, the inputs, and what the call returns."""
    _, layer, inputs = made(name)
    return layer, inputs, called(layer, inputs)


def called(layer, inputs):
    """A call with what has the name `mask` given by name, as Keras wants a mask."""
    names = [p for p in layer._call_signature.parameters][: len(inputs)]
    given = dict(zip(names, inputs, strict=True))
    return layer(given.pop(names[0]), **given)


@WALK
def test_a_config_rebuilds_the_layer(name):
    """Through JSON, as in a file; with Keras's own three arguments, and whatever has weights or functions inside."""
    cls, layer, inputs = made(name, name="mine", dtype="float64", trainable=False)
    assert layer.name == "mine" and layer.dtype == "float64" and not layer.trainable_variables
    assert {part.dtype_policy.name for part in layer._flatten_layers()} == {"float64"}
    assert keras.config.dtype_policy().name == "float32"
    config = json.loads(json.dumps(layer.get_config()))
    other = cls.from_config(config)
    assert json.loads(json.dumps(other.get_config())) == config
    assert other.name == "mine" and other.dtype == "float64" and other.trainable is False
    other.set_weights(layer.get_weights())
    assert error(called(other, inputs), called(layer, inputs)) < 1e-12


@WALK
def test_a_pickle_has_the_weights(name):
    layer, inputs, expected = example(name)
    assert error(called(pickle.loads(pickle.dumps(layer)), inputs), expected) < 1e-6


@WALK
def test_a_symbolic_call_returns_what_the_eager_one_does(name):
    """None where that has None, and in a functional model the same numbers."""
    layer, inputs, expected = example(name)
    symbols = tf.nest.map_structure(lambda x: keras.Input(batch_shape=(None, *x.shape[1:]), dtype=x.dtype), inputs)
    outputs = called(layer, symbols)
    tf.nest.assert_same_structure(outputs, expected)
    for symbol, value in zip(tf.nest.flatten(outputs), tf.nest.flatten(expected), strict=True):
        assert (symbol is None) == (value is None)
        if value is not None:
            assert isinstance(symbol, keras.KerasTensor) and symbol.dtype == value.dtype
            assert all(n in (None, m) for n, m in zip(symbol.shape, value.shape, strict=True))
    present = [x for x in tf.nest.flatten(outputs) if x is not None]
    functional = keras.Model(tf.nest.flatten(symbols), present)
    values = [x for x in tf.nest.flatten(expected) if x is not None]
    assert error(tf.nest.flatten(functional(tf.nest.flatten(inputs))), values) < 2e-5


@WALK
def test_half_precision_is_finite_and_close(name):
    """One block each: at most 40 roundings of one sign."""
    layer, inputs, expected = example(name)
    _, other, _ = made(name, dtype="mixed_float16")
    other.set_weights(layer.get_weights())
    assert error(called(other, inputs), expected) < 40 * ROUNDING["mixed_float16"]


@pytest.mark.parametrize("name", ["Encoder", "FeedForward", "RNN", "SinusoidalPositions"])
def test_symbols_that_keras_takes_for_sparse_are_dense(name):
    """Keras takes every symbol times a number for sparse."""
    _, layer, _ = made(name)
    symbol = keras.Input((None, 6))
    functional = keras.Model(symbol, tf.nest.flatten(layer(symbol * 2.0))[0])
    assert error(functional(X), tf.nest.flatten(layer(tf.constant(X * 2.0)))[0]) < 2e-5


def test_a_global_policy_is_the_default_and_an_argument_wins():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        assert lib.MultiHeadAttention(6, 3).q_proj.compute_dtype == "bfloat16"
        assert lib.MultiHeadAttention(6, 3, dtype="float32").q_proj.compute_dtype == "float32"
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
        with pytest.raises(ValueError, match="multiple of n_heads"):
            lib.MultiHeadAttention(6, 4, dtype="float32")
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy("float32")


def test_subclasses_in_the_style_of_keras_work():
    @keras.saving.register_keras_serializable("test")
    class Named(lib.FeedForward):
        def __init__(self, width, **kwargs):
            super().__init__(6, 2 * width, **kwargs)

    layer = Named(4, name="mine", dtype="float64", trainable=False)
    assert layer.linear1.units == 8 and layer.name == "mine" and layer.linear1.dtype == "float64"
    assert layer.get_config() == {"name": "mine", "trainable": False, "dtype": layer.get_config()["dtype"], "width": 4}
    other = copy.deepcopy(layer)
    assert type(other) is Named and not other.trainable_variables
    assert error(other(X), layer(X)) < 1e-12


def test_a_functional_model_with_masks_made_inside_is_saved(tmp_path):
    """Masks of symbolic ids, combined; reopened, Keras gives lists for named outputs, so one of them is asked for."""
    bert = lib.BertModel(BERT)
    ids = keras.Input((4,), dtype="int64")
    mask = lib.padding_mask(ids, BERT.pad_id) & lib.causal_mask(4)
    functional = keras.Model(ids, bert(ids, mask=mask).pooled)
    functional.save(tmp_path / "functional.keras")
    expected = bert(IDS, mask=lib.padding_mask(IDS, BERT.pad_id) & lib.causal_mask(4)).pooled
    for model in (functional, keras.models.load_model(tmp_path / "functional.keras")):
        assert error(model(IDS), expected) < 1e-6


def seen_dropouts(q, k, v, mask=None, dropout=0.0, **options):
    """An attention function that notes the dropout it is given."""
    seen_dropouts.seen.add(dropout)
    return lib.attention(q, k, v, mask, dropout=dropout, **options)


seen_dropouts.seen = set()
SMALL = BertConfig(13, 6, 1, 3, 8, 7, dropout=0.0, attention_dropout=0.25, pad_id=5, n_classes=3)
READER = GPTConfig(13, **SIZES, dropout=0.0, embedding_dropout=0.0, attention_dropout=0.25, pad_id=5)
READS = T5Config(13, 6, 1, 1, 3, 4, 8, dropout=0.25, pad_id=5)
PAIRS = TransformerConfig(13, 11, **SIZES, dropout=0.0, attention_dropout=0.25, pad_id=5)
MODELS = {
    "classifier": (lambda: lib.BertForSequenceClassification(SMALL, seen_dropouts), IDS, np.array([0, 2])),
    "masked": (lambda: lib.BertForMaskedLM(SMALL, seen_dropouts), IDS, IDS),
    "tokens": (lambda: lib.BertForTokenClassification(SMALL, seen_dropouts), IDS, IDS % 3),
    "gpt": (lambda: lib.GPT(READER, seen_dropouts), IDS, IDS),
    "t5": (lambda: lib.T5(READS, seen_dropouts), (IDS, TARGETS), TARGETS),
    "vit": (lambda: lib.ViT(VIT, seen_dropouts), IMAGES, np.array([0, 2])),
    "whisper": (lambda: lib.Whisper(WHISPER, seen_dropouts), (SOUNDS, TARGETS), TARGETS),
    "transformer": (lambda: lib.Transformer(PAIRS, seen_dropouts), {"source_ids": IDS, "target_ids": TARGETS}, TARGETS),
    "seq2seq": (lambda: lib.Seq2Seq(Seq2SeqConfig(13, 11, 4, 6, score="dot", pad_id=5)), (IDS, TARGETS), TARGETS),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_fits_evaluates_and_predicts_by_keras(kind):
    """With the inputs in order or by name; dropout in `fit` alone; `predict` gives the logits of the call."""
    keras.utils.set_random_seed(3)
    make, inputs, labels = MODELS[kind]
    model = make()
    seen_dropouts.seen.clear()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    eager = kind != "classifier"  # compiling takes as long as all else
    model.compile(keras.optimizers.Adam(0.1), loss, metrics=["accuracy"], run_eagerly=eager, jit_compile=False)
    history = model.fit(inputs, labels, epochs=4, verbose=0).history
    assert history["loss"][-1] < 0.9 * history["loss"][0] and history["accuracy"][-1] >= history["accuracy"][0]
    if kind != "seq2seq":
        assert 0.25 in seen_dropouts.seen
    seen_dropouts.seen.clear()
    loss, accuracy = model.evaluate(inputs, labels, verbose=0)
    logits = model.predict(inputs, verbose=0)
    assert seen_dropouts.seen <= {0.0}
    losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    assert_allclose(loss, np.mean(losses), rtol=1e-5)
    assert_allclose(accuracy, (logits.argmax(-1) == labels).mean(), rtol=1e-6)
    hidden = {"mask": lib.padding_mask(IDS, 5)} if kind in ("classifier", "masked", "tokens") else {}
    expected = model(inputs, **hidden).logits if isinstance(inputs, (dict, tuple)) else model(inputs, **hidden).logits
    assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


SEVERAL = {
    "pretraining": (lambda: lib.BertForPreTraining(SMALL), {"masked_logits": IDS, "next_logits": np.array([0, 1])}),
    "answers": (
        lambda: lib.BertForQuestionAnswering(SMALL),
        {"start_logits": np.array([1, 0]), "end_logits": np.array([3, 1])},
    ),
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_a_model_with_several_logits_fits_evaluates_and_predicts_by_keras(kind, tmp_path):
    """Losses, metrics and labels by the names of the logits; the loss is their sum."""
    keras.utils.set_random_seed(3)
    make, labels = SEVERAL[kind]
    model = make()
    losses = {name: keras.losses.SparseCategoricalCrossentropy(from_logits=True) for name in labels}
    metrics = {name: ["accuracy"] for name in labels}
    model.compile(keras.optimizers.Adam(0.1), losses, metrics=metrics, run_eagerly=True)
    history = model.fit(IDS, labels, epochs=4, verbose=0).history
    assert history["loss"][-1] < 0.9 * history["loss"][0]
    found = model.evaluate(IDS, labels, verbose=0, return_dict=True)
    logits = model.predict(IDS, verbose=0)
    expected = model(IDS, mask=lib.padding_mask(IDS, 5))
    assert set(logits) == set(labels)
    total = 0.0
    for name, of_name in labels.items():
        assert_allclose(logits[name], getattr(expected, name), rtol=1e-4, atol=1e-5)
        total += float(losses[name](of_name, logits[name]))
        assert_allclose(found[f"{name}_accuracy"], (logits[name].argmax(-1) == of_name).mean(), rtol=1e-6)
    assert_allclose(found["loss"], total, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    opened = keras.models.load_model(tmp_path / "model.keras")
    assert error(opened.predict(IDS, verbose=0), logits) < 1e-5
    model.export(tmp_path / "export", verbose=False)
    assert error(tf.saved_model.load(str(tmp_path / "export")).serve(tf.constant(IDS)), logits) < 2e-5


def test_keras_loop_hides_padding_and_takes_masks_and_segments():
    config = BertConfig(13, 6, 1, 3, 8, 7, dropout=0.0, attention_dropout=0.0, pad_id=5, n_classes=3, init_std=0.5)
    model = lib.BertForSequenceClassification(config)
    segments, alone = IDS % 2, np.array([[9, 4]])
    assert_allclose(model.predict(IDS, verbose=0)[1:], model.predict(alone, verbose=0), rtol=1e-4, atol=1e-5)
    real = IDS != 5
    expected = model(IDS, mask=lib.padding_mask(IDS, 5), segments=tf.constant(segments)).logits
    for inputs in (
        {"ids": IDS, "segments": segments},
        {"ids": IDS, "mask": real, "segments": segments},
        {"ids": IDS, "mask": real[:, None, None], "segments": segments},
        {"ids": IDS, "mask": real[:, None], "segments": segments},
        (IDS, real, segments),
    ):
        assert_allclose(model.predict(inputs, verbose=0), expected, rtol=1e-4, atol=1e-5)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    expected_loss = loss(np.array([0, 2]), model.predict(IDS, verbose=0))
    model.compile("sgd", loss, run_eagerly=True)
    assert_allclose(model.evaluate(IDS, np.array([0, 2]), verbose=0), expected_loss, rtol=1e-5)
    history = model.fit(IDS, np.array([0, 2]), verbose=0).history
    assert_allclose(history["loss"], [expected_loss], rtol=1e-5)  # that before the update
    expected = model.predict({"ids": IDS, "segments": segments}, verbose=0)
    all_of_them = {"ids": IDS, "mask": np.ones_like(real), "segments": segments}
    assert np.abs(model.predict(all_of_them, verbose=0) - expected).max() > 1e-4
    assert error(model(IDS.tolist()).logits, model(IDS).logits) < 1e-6
    outputs = lib.BertModel(SMALL).predict(IDS, verbose=0)
    assert {name: x.shape for name, x in outputs.items()} == {"last_hidden": (2, 4, 6), "pooled": (2, 6)}


def test_a_model_without_logits_has_nothing_for_a_loss():
    """But may have losses of its own."""
    model = lib.BertModel(SMALL)
    model.compile("sgd", "mse", run_eagerly=True)
    for use in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=r"BertModel has no logits for a loss.*BertForSeq.*model\(ids\).pooled"):
            use(IDS, np.zeros((2, 6)), verbose=0)

    class Own(lib.BertModel):
        def call(self, ids, mask=None, segments=None, training=False):
            outputs = super().call(ids, mask, segments, training=training)
            self.add_loss(tf.reduce_mean(outputs.pooled**2))
            return outputs

    own = Own(SMALL)
    own.compile("sgd", run_eagerly=True)
    assert own.fit(IDS, verbose=0).history["loss"][0] > 0


def test_export_serves_ids_alone_and_saved_models_have_a_signature(tmp_path):
    """Both hide the padding, in batches and lengths of any size."""
    model = lib.BertForSequenceClassification(SMALL)
    model.export(tmp_path / "export", verbose=False)
    tf.saved_model.save(model, str(tmp_path / "saved"))
    served, saved = (tf.saved_model.load(str(tmp_path / name)) for name in ("export", "saved"))
    for ids in (IDS, IDS[:1, :3]):
        expected = model.predict(ids, verbose=0)
        assert error(served.serve(tf.constant(ids)), expected) < 2e-5
        assert error(list(saved.signatures["serving_default"](tf.constant(ids)).values()), [expected]) < 2e-5


DECODERS = {}
for positions, tied in (("rotary", True), ("learned", False)):
    config = TransformerConfig(13, 11, **SIZES, positions=positions, tie_output=tied, pad_id=5, pre_norm=tied)
    policy = "mixed_float16" if tied else "mixed_bfloat16"
    DECODERS[f"transformer, {positions}, tied {tied}, {policy}"] = (policy, lib.Transformer, (config,))
for choices, policy in (
    ("gru general bahdanau", "mixed_float16"),
    ("lstm additive luong", "mixed_bfloat16"),
    ("rnn dot bahdanau", "mixed_bfloat16"),
):
    cell, score, order = choices.split()
    config = Seq2SeqConfig(13, 11, 4, 6, cell, score, 0.0, 5, order)
    DECODERS[f"seq2seq, {choices}, {policy}"] = (policy, lib.Seq2Seq, (config,))
DECODERS["seq2seq, no attention, mixed_float16"] = ("mixed_float16", lib.Seq2Seq, (Seq2SeqConfig(13, 11, 4, 6),))


@pytest.mark.parametrize("decoder", DECODERS)
def test_decoding_in_half_precision(decoder):
    """Token by token, outside of any `call`: the logits of the call, in float32; within 40 roundings."""
    keras.utils.set_random_seed(0)
    policy, cls, arguments = DECODERS[decoder]
    model, other = cls(*arguments), cls(*arguments, dtype=policy)
    lib.set_state(other, lib.get_state(model))
    expected = model(IDS, TARGETS).logits
    for options in ({}, {"cached": False}) if decoder.startswith("transformer") else ({},):
        next_logits = other.next_logits(IDS, **options)
        for t in range(TARGETS.shape[1]):
            logits = next_logits(TARGETS[:, : t + 1])
            assert logits.dtype == np.float32
            assert error(logits, expected[:, t]) < 40 * ROUNDING[policy]
    if decoder.startswith("transformer"):  # the layers by themselves, given float32 as their call may be
        caches = other.decoder.start(tf.constant(X))
        hidden, _ = other.decoder.step(tf.constant(WIDE[:, :1]), caches)
        assert hidden.dtype == other.compute_dtype
        assert other.predict_from(tf.constant(X)).shape == (2, 4, 11)


@pytest.mark.parametrize("policy", ["mixed_float16", "float16"])
def test_parts_outside_of_a_call_in_half_precision(policy):
    """Cells run by the functions themselves, and scores in two steps."""
    for run in (lib.run_fused, lib.run_unrolled):
        outputs, state = run(lib.LSTMCell(6, 4, dtype=policy), X)
        assert outputs.dtype == state[0].dtype == tf.float16
    for kind in (lib.GeneralScore, lib.AdditiveScore, lib.DotScore):
        score = kind(6, 6, dtype=policy)
        x, wide = tf.cast(X, tf.float16), tf.cast(WIDE, tf.float16)
        assert error(score.compare(x, score.prepare(wide)), score(x, wide)) < 2.0**-9


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_over_many_tokens_keep_their_size_in_half_precision(dtype):
    """The loss of 30,000 tokens, and the mean vector of a long text: each sum is over 65,504, float16's largest."""
    logits, labels = tf.zeros((2, 15_000, 64), dtype), np.ones((2, 15_000), dtype=np.int64)
    loss, nll, n_tokens = lib.cross_entropy(logits, labels, smoothing=0.1)
    assert loss.dtype == nll.dtype == tf.float32
    assert_allclose([loss, nll, n_tokens], [np.log(64), np.log(64), 30_000], rtol=1e-5)
    bert = lib.BertModel(BertConfig(13, 6, 1, 3, 8, 600), dtype=f"mixed_{dtype}")
    state = lib.get_state(bert)
    lib.set_state(bert, state | {"encoder.layers.0.norm2.bias": state["encoder.layers.0.norm2.bias"] + 200.0})
    vector = embed(bert, [np.ones(500, dtype=np.int64)])
    assert vector.dtype == np.float32
    assert_allclose(vector, 200.0, atol=5.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_empty_rows_and_masks_in_half_precision(dtype, rng):
    """A query with nothing to attend to: zeros, and finite gradients; the others as in float32."""
    q, k, v = (tf.constant(rng.normal(size=(2, 4, 6)), dtype) for _ in range(3))
    mask = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    scores = tf.matmul(q, k, transpose_b=True)
    for function, inputs in (
        (lambda q, k, v: lib.attention(q, k, v, mask).output, (q, k, v)),
        (lambda q, k, v: lib.fused_attention(q, k, v, mask).output, (q, k, v)),
        (lambda scores, v: lib.weighted_mean(scores, v, mask).output, (scores, v)),
    ):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            output = function(*inputs)
        for gradient in tape.gradient(output, inputs):
            assert np.isfinite(tf.cast(gradient, tf.float32)).all()
        assert np.abs(tf.cast(output[:, 1], tf.float32)).max() == 0.0
        wide = function(*(tf.cast(x, tf.float32) for x in inputs))
        assert error(output, wide) < 10 * ROUNDING[f"mixed_{dtype}"]


def test_ids_are_checked_and_may_be_lists_or_arrays():
    model = lib.BertForSequenceClassification(SMALL)
    for ids in (IDS.tolist(), IDS.astype(np.int32), tf.constant(IDS)):
        assert error(model(ids).logits, model(IDS).logits) < 1e-6
    hidden = lib.padding_mask(IDS, 5)
    assert error(model(IDS.tolist(), hidden).logits, model(IDS, mask=hidden).logits) < 1e-6
    for make in (MODELS["transformer"][0], MODELS["seq2seq"][0]):
        pairs, x, y = make(), IDS.tolist(), TARGETS.tolist()
        expected = pairs(IDS, TARGETS).logits
        named = {"source_ids": x, "target_ids": y}
        for inputs in ((x, y), (x, TARGETS), (IDS, y), ((x, y),), ([IDS, TARGETS],), (named,)):
            assert error(pairs(*inputs).logits, expected) < 1e-6
    with pytest.raises(ValueError, match=r"ids must have shape \(B, T\)"):
        model([1, 2, 3])
    with pytest.raises((TypeError, ValueError), match=r"(?s)ids must have one length.*to_tensor\(pad_id\)"):
        model(tf.ragged.constant([[1, 2], [3]]))
    for use in (model.predict, lib.padding_mask):
        with pytest.raises(TypeError, match=r"ids must have one length.*to_tensor\(pad_id\)"):
            use(tf.ragged.constant([[1, 2], [3]]))
    with pytest.raises(ValueError, match="(?s)'input_ids' is no input of BertForSeq.*are ids, mask, segments"):
        model.predict({"input_ids": IDS}, verbose=0)
    with pytest.raises(ValueError, match="ids must lie in 0 ... 12, got ids from 2 to 13"):
        model(IDS + 1)
    with pytest.raises(ValueError, match="at least one token"):
        model(IDS[:, :0])
    with pytest.raises(TypeError, match="ids must be integers"):
        model(IDS.astype("float32"))
    logits = np.zeros((2, 4, 13), dtype="float32")
    for bad in (-100, -1, 13):
        with pytest.raises(ValueError, match=r"labels must lie in 0 ... 12, .* not counting pad_id=0"):
            lib.cross_entropy(logits, np.where(IDS == 4, bad, IDS))
    assert lib.cross_entropy(logits, np.where(IDS == 4, -100, IDS), pad_id=-100).n_tokens == 6


def test_a_state_in_bfloat16_comes_as_float32_and_goes_back():
    layer = lib.FeedForward(6, 8, dtype="bfloat16")
    state = lib.get_state(layer)
    assert {value.dtype.name for value in state.values()} == {"float32"}
    other = lib.FeedForward(6, 8, dtype="bfloat16")
    lib.set_state(other, state)
    assert error(other(X), layer(X)) < 1e-12


@pytest.mark.parametrize("kind", ["model", "functional"])
def test_a_training_that_failed_while_it_was_traced_harms_no_later_one(kind):
    """Keras's generator of dropout is one for all models: it must not be left without its seed."""

    def compiled(loss):
        if kind == "model":
            model = lib.BertForSequenceClassification(BertConfig(13, **SIZES, attention_dropout=0.2))
        else:
            x = keras.Input((4, 6))
            block = BlockConfig(6, 3, 8, attention_dropout=0.2)
            model = keras.Model(x, keras.layers.Dense(2)(lib.EncoderLayer(block)(x)[0][:, 0]))
        model.compile("adam", loss, jit_compile=False)  # XLA compiles what was traced, for seconds
        return model

    keras.utils.set_random_seed(0)
    inputs, labels = (IDS if kind == "model" else X), np.array([0, 1])
    with pytest.raises(ValueError):  # labels of another kind: a beginner's slip
        compiled(keras.losses.CategoricalCrossentropy(from_logits=True)).fit(inputs, labels, verbose=0)
    model = compiled(keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert np.isfinite(model.fit(inputs, labels, verbose=0).history["loss"]).all()
