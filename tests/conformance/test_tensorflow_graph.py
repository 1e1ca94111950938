"""TensorFlow only: compiled functions with lengths that are not known yet, and Keras's own masks."""

import importlib
import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from course_lib.masks import padding_mask
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from tests.support import states
from tests.support.backends import TENSORFLOW

CONFIG = BertConfig(vocab_size=13, d_model=6, n_layers=2, n_heads=3, d_ff=10, max_len=7)
IDS = np.array([[2, 5, 12, 1, 7], [9, 4, 4, 0, 0]])


@pytest.mark.parametrize("attention", ["attention", "fused_attention"])
def test_a_compiled_model_of_any_batch_and_length_equals_the_eager_one(attention):
    model = TENSORFLOW.make(
        "BertForSequenceClassification",
        CONFIG,
        attention=TENSORFLOW.function(attention),
        state=states.random_state(states.classifier(CONFIG)),
    )
    traces = []

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int64)], autograph=False)
    def compiled(ids):
        traces.append(ids.shape)
        with tf.GradientTape() as tape:
            logits = model(ids, mask=padding_mask(ids)).logits
            loss = tf.reduce_sum(logits**2)
        return logits, tape.gradient(loss, model.classifier.kernel.value)

    for ids in (IDS, IDS[:1, :3]):
        logits, gradient = compiled(tf.constant(ids))
        expected = TENSORFLOW.call(model, ids, mask=padding_mask(ids)).logits
        assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
        assert np.abs(gradient).max() > 1e-3
    assert len(traces) == 1  # one graph serves every shape


MODULES = ["checks", "masks", *(f"tensorflow.{name}" for name in (
    "alignment", "attention", "decoder", "fitting", "layers", "losses", "masks", "positions", "rnn",
    "decoding", "efficient.blockwise", "efficient.linear", "efficient.windowed", "encoder",
    "models.bert", "models.bert_heads", "models.cnn", "models.decision", "models.seq2seq", "models.transformer",
    "models.vit", "models.whisper",
))]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_autograph_can_read_what_a_compiled_call_runs(module):
    """It warns, once in a process and on stderr, of what it cannot: an assignment within an expression, for one."""
    module = importlib.import_module(f"course_lib.{module}")
    mine = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    parts = [part for value in mine for part in (vars(value).values() if inspect.isclass(value) else [value])]
    functions = [inspect.unwrap(part) for part in parts if inspect.isfunction(part)]
    assert functions
    for function in functions:
        tf.autograph.to_graph(function)


def test_lengths_that_a_compiled_function_does_not_know_have_no_causal_mask():
    lib, x = TENSORFLOW.lib, tf.zeros((2, 3))
    with pytest.raises(TypeError, match="takes lengths that are known"):
        tf.function(lambda x: lib.causal_mask(tf.shape(x)[1]), autograph=False)(x)
    assert_allclose(lib.causal_mask(tf.shape(x)[1]), lib.causal_mask(3))
    t = tf.range(tf.shape(x)[1])
    assert_allclose([[t <= t[:, None]]], lib.causal_mask(3))  # as the error says


def test_our_mask_does_not_travel_on_as_keras_padding_mask():
    """Keras would hand it to the loss, where another shape and another meaning belong."""
    x = tf.random.normal((2, 4, 6))
    mask = tf.ones((2, 1, 1, 4), tf.bool)
    layers = [
        TENSORFLOW.make("MultiHeadAttention", 6, 3)(x, x, x, mask=mask).output,
        TENSORFLOW.make("EncoderLayer", BlockConfig(6, 3, 8))(x, mask=mask)[0],
        TENSORFLOW.make("Encoder", 1, BlockConfig(6, 3, 8))(x, mask=mask).last_hidden,
        TENSORFLOW.make("BertModel", CONFIG)(tf.constant(IDS[:, :4]), mask=mask).last_hidden,
    ]
    for output in layers:
        assert getattr(output, "_keras_mask", None) is None


def test_a_model_compiles_and_fits():
    """What `model.fit` needs: trainable weights of every part, and dropout switched on by Keras itself."""
    config = BertConfig(vocab_size=13, d_model=6, n_layers=1, n_heads=3, d_ff=10, max_len=7, dropout=0.0)
    bert = TENSORFLOW.make("BertForSequenceClassification", config)
    assert len(bert.trainable_variables) == len(TENSORFLOW.lib.get_state(bert))

    class Classifier(keras.Model):
        def __init__(self):
            super().__init__()
            self.bert = bert

        def call(self, ids):
            return self.bert(ids, mask=padding_mask(ids)).logits

    model = Classifier()
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = TENSORFLOW.lib.get_state(bert)
    losses = model.fit(IDS, np.array([0, 1]), epochs=30, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    after = TENSORFLOW.lib.get_state(bert)
    still = [name for name in after if np.abs(after[name] - before[name]).max() == 0.0]
    # a key's bias shifts all scores of a query alike, which softmax does not see
    assert set(still) <= {"bert.encoder.layers.0.attention.k_proj.bias"}, still
