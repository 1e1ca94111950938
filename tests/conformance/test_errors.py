"""The same mistake gives the same exception type and a telling message in every framework."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from course_lib.checkpoints.weights import CheckpointError
from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from course_lib.models.transformer import TransformerConfig
from tests.support import states
from tests.support.backends import NUMPY

CONFIG = BertConfig(vocab_size=13, d_model=6, n_layers=1, n_heads=3, d_ff=10, max_len=7)


def zeros(*shape):
    return np.zeros(shape)


def ones(*shape, dtype=bool):
    return np.ones(shape, dtype=dtype)


# case -> arguments of attention (q, k, v, mask, dropout), exception, message
ATTENTION = {
    "features of q and k differ": ((zeros(2, 3, 4), zeros(2, 5, 6), zeros(2, 5, 6)), ValueError, "number of features"),
    "not one value per key": ((zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 6, 4)), ValueError, "one value for each key"),
    "batches differ": ((zeros(2, 3, 4), zeros(3, 5, 4), zeros(3, 5, 4)), ValueError, "leading axes"),
    "batches that would broadcast": ((zeros(2, 3, 4), zeros(1, 5, 4), zeros(1, 5, 4)), ValueError, "leading axes"),
    "batch of v differs": ((zeros(2, 3, 4), zeros(2, 5, 4), zeros(1, 5, 4)), ValueError, "leading axes"),
    "heads that do not divide": (
        (zeros(2, 3, 3, 4), *2 * [zeros(2, 2, 5, 4)]),
        ValueError,
        "as many heads .* or a multiple",
    ),
    "more heads of keys": ((zeros(2, 2, 3, 4), *2 * [zeros(2, 4, 5, 4)]), ValueError, "as many heads .* or a multiple"),
    "heads of k and v differ": ((zeros(2, 4, 3, 4), zeros(2, 2, 5, 4), zeros(2, 4, 5, 4)), ValueError, "leading axes"),
    "a batch is no head": ((zeros(4, 3, 4), *2 * [zeros(2, 5, 4)]), ValueError, "leading axes"),
    "one axis only": ((zeros(4), zeros(4), zeros(4)), ValueError, "at least the two axes"),
    "numbers of axes differ": ((zeros(2, 3, 4), zeros(5, 4), zeros(5, 4)), ValueError, "same number of axes"),
    "mask of another length": (
        (zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 4), ones(3, 4)),
        ValueError,
        r"\(3, 4\) does not broadcast to the scores \(2, 3, 5\)",
    ),
    "mask transposed": (
        (zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 4), ones(5, 3)),
        ValueError,
        "does not broadcast",
    ),
    "mask of another batch": (
        (zeros(1, 3, 4), zeros(1, 5, 4), zeros(1, 5, 4), ones(2, 3, 5)),
        ValueError,
        "does not broadcast",
    ),
    "mask with an axis too many": (
        (zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 4), ones(1, 2, 3, 5)),
        ValueError,
        "does not broadcast",
    ),
    "additive mask": (
        (zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 4), np.where(np.eye(3, 5) > 0, 0.0, -np.inf)),
        TypeError,
        "boolean with True = may attend, got .*float.*mask == 0",
    ),
    "float mask of zeros and ones": (
        (zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 4), np.ones((3, 5))),
        TypeError,
        "boolean.*float",
    ),
    "integer mask": (
        (zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 4), ones(3, 5, dtype=np.int64)),
        TypeError,
        "boolean.*int64.*mask != 0",
    ),
    "a bias for other keys": (
        (zeros(2, 3, 4), *2 * [zeros(2, 5, 4)], None, np.ones((3, 4))),
        ValueError,
        "a bias of shape",
    ),
    "a boolean bias": (
        (zeros(2, 3, 4), *2 * [zeros(2, 5, 4)], None, ones(3, 5)),
        TypeError,
        "numbers, got bool; .*`mask=`",
    ),
    "a scale of 0": (
        (zeros(2, 3, 4), *2 * [zeros(2, 5, 4)], None, None, 0.0, 0.0),
        ValueError,
        "scale must be positive",
    ),
    "causal with fewer keys": (
        (zeros(2, 5, 4), *2 * [zeros(2, 3, 4)], None, None, 0.0, None, True),
        ValueError,
        "at least as many keys",
    ),
    "dropout of 1": ((zeros(2, 3, 4), *2 * [zeros(2, 5, 4)], None, None, 1.0), ValueError, r"in \[0, 1\), got 1.0"),
    "dropout below 0": ((zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 4), None, None, -0.1), ValueError, "got -0.1"),
    "dropout in percent": ((zeros(2, 3, 4), zeros(2, 5, 4), zeros(2, 5, 4), None, None, 10), ValueError, "got 10"),
}


@pytest.mark.parametrize("backend", [NUMPY], ids=repr)
@pytest.mark.parametrize("case", ATTENTION)
def test_attention(backend, case):
    """Every mistake, once: what finds them is the same in the three frameworks, `check_attention`."""
    arguments, exception, message = ATTENTION[case]
    with pytest.raises(exception, match=f"(?s){message}"):
        backend.call(backend.lib.attention, *arguments)


@pytest.mark.parametrize("name", ["attention", "fused_attention"])
@pytest.mark.parametrize("case", [
    "features of q and k differ", "not one value per key", "batch of v differs", "mask of another length",
    "additive mask", "integer mask", "a bias for other keys", "a boolean bias", "a scale of 0",
    "causal with fewer keys", "dropout of 1",
])  # fmt: skip
def test_attention_checks_every_argument(backend, name, case):
    arguments, exception, message = ATTENTION[case]
    with pytest.raises(exception, match=f"(?s){message}"):
        backend.call(backend.function(name), *arguments)


# case -> arguments of the layer's call, exception, message; d_model is 6
LAYER = {
    "q of another width": (
        (zeros(2, 3, 5), zeros(2, 4, 6), zeros(2, 4, 6)),
        ValueError,
        r"q must have shape \(B, T, 6\)",
    ),
    "k of another width": (
        (zeros(2, 3, 6), zeros(2, 4, 5), zeros(2, 4, 6)),
        ValueError,
        r"k must have shape \(B, T, 6\)",
    ),
    "v of another width": (
        (zeros(2, 3, 6), zeros(2, 4, 6), zeros(2, 4, 5)),
        ValueError,
        r"v must have shape \(B, T, 6\)",
    ),
    "no batch axis": ((zeros(3, 6), zeros(4, 6), zeros(4, 6)), ValueError, r"q must have shape .* got \(3, 6\)"),
    "batches differ": ((zeros(2, 3, 6), zeros(3, 4, 6), zeros(3, 4, 6)), ValueError, "leading axes"),
    "not one value per key": ((zeros(2, 3, 6), zeros(2, 4, 6), zeros(2, 5, 6)), ValueError, "one value for each key"),
    "mask of the padding alone": (
        (zeros(2, 3, 6), zeros(2, 4, 6), zeros(2, 4, 6), ones(2, 4)),
        ValueError,
        r"\(2, 4\) does not broadcast to the scores \(2, 3, 3, 4\)",
    ),
    "mask without the axis of heads": (
        (zeros(2, 3, 6), zeros(2, 4, 6), zeros(2, 4, 6), ones(2, 3, 4)),
        ValueError,
        r"\(2, 3, 4\) does not broadcast to the scores \(2, 3, 3, 4\)",
    ),
    "additive mask": (
        (zeros(2, 3, 6), zeros(2, 4, 6), zeros(2, 4, 6), zeros(2, 1, 3, 4)),
        TypeError,
        "boolean with True = may attend",
    ),
    "integer mask": (
        (zeros(2, 3, 6), zeros(2, 4, 6), zeros(2, 4, 6), ones(2, 1, 1, 4, dtype=np.int32)),
        TypeError,
        "boolean with True = may attend",
    ),
}


@pytest.mark.parametrize("case", LAYER)
def test_multi_head_attention(backend, case):
    arguments, exception, message = LAYER[case]
    layer = backend.make("MultiHeadAttention", 6, 3)
    *inputs, mask = arguments if len(arguments) == 4 else (*arguments, None)
    with pytest.raises(exception, match=f"(?s){message}"):
        backend.call(layer, *inputs, mask=mask)


@pytest.mark.parametrize("name, arguments, message", [
    ("MultiHeadAttention", (10, 3), "multiple of n_heads, got d_model=10, n_heads=3"),
    ("MultiHeadAttention", (10, 0), "n_heads=0"),
    ("MultiHeadAttention", (0, 2), "d_model=0"),
    ("MultiHeadAttention", (6, 3, 1.5), "dropout.*got 1.5"),
    ("MultiHeadAttention", (12, 4, 0.0, None, 3), "multiple of n_kv_heads, got n_heads=4, n_kv_heads=3"),
    ("FeedForward", (6, 8, "tanh"), "activation must be one of 'gelu', 'relu', 'gelu_new', 'silu'; got 'tanh'"),
    ("SinusoidalPositions", (7,), "d_model of sinusoidal positions must be an even number.*got 7"),
    ("SinusoidalPositions", (0,), "d_model of sinusoidal positions must be an even number.*got 0"),
])  # fmt: skip
def test_constructors(backend, name, arguments, message):
    with pytest.raises(ValueError, match=message):
        backend.make(name, *arguments)


@pytest.mark.parametrize("name, arguments", [
    ("EncoderLayer", (10,)), ("Encoder", (2, 10)), ("DecoderLayer", (10,)), ("Decoder", (2, 10)),
])  # fmt: skip
def test_a_layer_wants_its_block(backend, name, arguments):
    with pytest.raises(TypeError, match="config must be a BlockConfig, got 10; write BlockConfig"):
        backend.make(name, *arguments)


def test_a_memory_is_for_cross_attention_and_nothing_else(backend, rng):
    x, block = rng.normal(size=(2, 4, 6)), BlockConfig(6, 3, 8)
    with pytest.raises(ValueError, match="attends to an encoder: give its output as `memory`"):
        backend.call(backend.make("Decoder", 1, block), x)
    alone = backend.make("Decoder", 1, block, cross_attention=False)
    with pytest.raises(ValueError, match="cross_attention=False and takes no memory"):
        backend.call(alone, x, x)
    with pytest.raises(ValueError, match="cross_attention=False and takes no memory"):
        alone.start(backend.tensor(x))


def test_an_odd_head_cannot_turn(backend, rng):
    x = rng.normal(size=(2, 4, 5))
    message = "d_head of rotary positions must be an even number.*got 5"
    with pytest.raises(ValueError, match=message):
        backend.call(backend.function("rotate"), x)
    with pytest.raises(ValueError, match=message):
        backend.call(backend.function("rotary")(backend.function("attention")), x, x, x)
    with pytest.raises(ValueError, match="n_heads of rotary positions must be an even number.*got 3"):
        TransformerConfig(9, 9, d_model=9, n_heads=3, positions="rotary")


@pytest.mark.parametrize("name, arguments", [
    ("SinusoidalPositions", (6, 9)),
    ("LearnedPositions", (6, 9)),
    ("FeedForward", (6, 8)),
    ("EncoderLayer", (BlockConfig(6, 3, 8),)),
    ("EncoderLayer", (BlockConfig(6, 3, 8, pre_norm=True),)),
    ("Encoder", (2, BlockConfig(6, 3, 8))),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 6), (2, 1, 3, 6)], ids=str)
def test_inputs_of_another_shape(backend, name, arguments, shape):
    with pytest.raises(ValueError, match=r"(?s)x must have shape \(B, T, 6\), got"):
        backend.call(backend.make(name, *arguments), zeros(*shape))


@pytest.mark.parametrize("name", ["SinusoidalPositions", "LearnedPositions"])
def test_positions_end(backend, name):
    with pytest.raises(ValueError, match="(?s)10 tokens is over the maximum of 9"):
        backend.call(backend.make(name, 6, 9), zeros(2, 10, 6))


# case -> ids, keyword arguments, exception, message; 13 ids, 2 segments, 7 positions
BERT = {
    "id just over the vocabulary": ([[1, 13]], {}, ValueError, r"ids must lie in 0 \.\.\. 12, got ids from 1 to 13"),
    "negative id": ([[1, -1]], {}, ValueError, r"ids must lie in 0 \.\.\. 12, got ids from -1 to 1"),
    "float ids": ([[1.0, 2.0]], {}, TypeError, "ids must be integers"),
    "boolean ids": ([[True, False]], {}, TypeError, "ids must be integers"),
    "no batch axis": ([1, 2], {}, ValueError, r"ids must have shape \(B, T\), got \(2\)"),
    "no token": (np.zeros((2, 0), int), {}, ValueError, r"at least one token in each sequence, got \(2, 0\)"),
    "one sequence too long": ([[1] * 8], {}, ValueError, "8 tokens is over the maximum of 7"),
    "segment over the number": (
        [[1, 2]],
        {"segments": np.array([[0, 2]])},
        ValueError,
        r"segments must lie in 0 \.\.\. 1",
    ),
    "negative segment": ([[1, 2]], {"segments": np.array([[0, -1]])}, ValueError, r"segments must lie in 0 \.\.\. 1"),
    "float segments": ([[1, 2]], {"segments": np.zeros((1, 2))}, TypeError, "segments must be integers"),
    "segments too long": (
        [[1, 2]],
        {"segments": np.zeros((1, 3), int)},
        ValueError,
        "segments must have the shape of ids",
    ),
    "segments that would broadcast": (
        [[1, 2], [3, 4]],
        {"segments": np.zeros((1, 2), int)},
        ValueError,
        r"the shape of ids \(2, 2\), got \(1, 2\)",
    ),
    "padding mask without the axes of heads and queries": (
        [[1, 2], [3, 4]],
        {"mask": ones(2, 3)},
        ValueError,
        r"\(2, 3\) does not broadcast to the scores \(2, 3, 2, 2\)",
    ),
    "attention_mask of transformers": ([[1, 2]], {"mask": ones(1, 2, dtype=np.int64)}, TypeError, "boolean.*int64"),
}


@pytest.mark.parametrize("case", BERT)
@pytest.mark.parametrize("name", states.BERTS)
def test_bert(backend, name, case):
    ids, keywords, exception, message = BERT[case]
    with pytest.raises(exception, match=f"(?s){message}"):
        backend.call(backend.make(name, CONFIG), np.array(ids), **keywords)


@pytest.mark.parametrize("label", [-1, -100, 6, 1000])
@pytest.mark.parametrize("pad_id", [0, 3])
def test_labels_outside_the_vocabulary(backend, label, pad_id):
    """-1 would read the last class in NumPy; -100 is what other libraries leave out."""
    labels = np.array([[1, label, pad_id]])
    message = rf"(?s)labels must lie in 0 \.\.\. 5, got ids from .*{label}.*not counting pad_id={pad_id}"
    with pytest.raises(ValueError, match=message):
        backend.call(backend.function("cross_entropy"), zeros(1, 3, 6), labels, pad_id=pad_id)
    kept = backend.call(backend.function("cross_entropy"), zeros(1, 3, 6), labels, pad_id=label)
    assert kept.n_tokens == 2
    assert_allclose(kept.loss, np.log(6), rtol=1e-6)


def test_labels_that_are_no_integers(backend):
    with pytest.raises(TypeError, match="labels must be integers"):
        backend.call(backend.function("cross_entropy"), zeros(1, 3, 6), np.ones((1, 3)))


@pytest.fixture
def folder(tmp_path):
    """A good checkpoint, to be damaged."""
    model = NUMPY.make("BertModel", CONFIG, state=states.random_state(states.bert(CONFIG)))
    model.save_pretrained(tmp_path)
    return tmp_path


def change_config(folder, **changes):
    path = folder / "config.json"
    settings = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in settings.items() if value != "gone"}))


def change_weights(folder, change):
    state = dict(load_file(folder / "model.safetensors"))
    change(state)
    save_file(state, folder / "model.safetensors")


def truncate(folder, keep):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: keep(path.stat().st_size)])


KEY = "encoder.layer.0.attention.self.query.weight"

# case -> what happens to the folder, exception, message
CHECKPOINT = {
    "a weight missing": (
        lambda folder: change_weights(folder, lambda state: state.pop(KEY)),
        CheckpointError,
        "missing: encoder.layers.0.attention.q_proj.weight",
    ),
    "an unknown weight": (
        lambda folder: change_weights(folder, lambda state: state.update({"encoder.layer.0.lora.weight": zeros(2)})),
        CheckpointError,
        "not a BERT's: encoder.layer.0.lora.weight",
    ),
    "a layer too many": (
        lambda folder: change_weights(folder, lambda state: state.update({KEY.replace("0", "1"): state[KEY]})),
        CheckpointError,
        "not used by the model: encoder.layers.1.attention.q_proj.weight",
    ),
    "a wrong shape": (
        lambda folder: change_weights(folder, lambda state: state.update({KEY: zeros(6, 5)})),
        CheckpointError,
        r"of the wrong shape: encoder.layers.0.attention.q_proj.weight \(is \(6, 5\), must be \(6, 6\)\)",
    ),
    "a vocabulary of another size": (
        lambda folder: change_config(folder, vocab_size=14),
        CheckpointError,
        r"embeddings.token.weight \(is \(13, 6\), must be \(14, 6\)\)",
    ),
    "weights cut short": (lambda folder: truncate(folder, lambda n: n - 100), CheckpointError, "truncated.*fetch it"),
    "weights cut in the header": (lambda folder: truncate(folder, lambda n: 20), CheckpointError, "truncated"),
    "weights empty": (lambda folder: truncate(folder, lambda n: 0), CheckpointError, "truncated"),
    "weights that are a web page": (
        lambda folder: (folder / "model.safetensors").write_text("<html>not found</html>" * 9),
        CheckpointError,
        "not a safetensors file",
    ),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), FileNotFoundError, "no model.safetensors"),
    "no config": (lambda folder: (folder / "config.json").unlink(), FileNotFoundError, "no config.json"),
    "config of garbage": (
        lambda folder: (folder / "config.json").write_text('{"model_type": "bert",'),
        CheckpointError,
        "config.json is not a valid JSON",
    ),
    "config of bytes": (
        lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe\x00\x81"),
        CheckpointError,
        "config.json is not a valid JSON",
    ),
    "config of a list": (
        lambda folder: (folder / "config.json").write_text("[1, 2]"),
        CheckpointError,
        "top level is not an object",
    ),
    "not a bert": (
        lambda f: change_config(f, model_type="roberta"),
        UnsupportedConfigError,
        "model_type='roberta'.*'bert'",
    ),
    "no model type": (lambda f: change_config(f, model_type="gone"), UnsupportedConfigError, 'names no "model_type"'),
    "a translator": (
        lambda f: change_config(f, model_type="gone", source_vocab=9),
        UnsupportedConfigError,
        "a translator's: load_translator opens it",
    ),
    "relative positions": (
        lambda f: change_config(f, position_embedding_type="relative_key"),
        UnsupportedConfigError,
        "position_embedding_type='relative_key'",
    ),
    "a decoder": (lambda f: change_config(f, is_decoder=True), UnsupportedConfigError, "is_decoder=True"),
    "cross-attention": (
        lambda f: change_config(f, add_cross_attention=True),
        UnsupportedConfigError,
        "add_cross_attention=True",
    ),
    "another activation": (
        lambda f: change_config(f, hidden_act="gelu_fast"),
        UnsupportedConfigError,
        "activation must be one of 'gelu', 'relu', 'gelu_new', 'silu'; got 'gelu_fast'",
    ),
    "heads that do not divide": (
        lambda f: change_config(f, num_attention_heads=4),
        UnsupportedConfigError,
        "d_model=6, n_heads=4",
    ),
    "a size in words": (lambda f: change_config(f, hidden_size="six"), UnsupportedConfigError, "d_model.*'six'"),
    "a dropout in words": (
        lambda f: change_config(f, hidden_dropout_prob="0.1"),
        UnsupportedConfigError,
        "config.json cannot be used",
    ),
}


@pytest.mark.parametrize("case", CHECKPOINT)
def test_from_pretrained(backend, folder, case):
    damage, exception, message = CHECKPOINT[case]
    damage(folder)
    with pytest.raises(exception, match=f"(?s){message}"):
        backend.lib.BertModel.from_pretrained(folder)


def test_names_that_nobody_knows(backend, tmp_path):
    for name in ("no-such-checkpoint", tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="(no-such-checkpoint|nowhere).* neither a folder nor .*minilm-l6"):
            backend.lib.BertModel.from_pretrained(name)


def test_changes_that_the_config_does_not_know(backend, folder):
    with pytest.raises(TypeError, match="colour"):
        backend.lib.BertModel.from_pretrained(folder, colour="red")
    with pytest.raises(ValueError, match="dropout.*got 2"):
        backend.lib.BertModel.from_pretrained(folder, dropout=2)


def test_a_bfloat16_checkpoint_opens(backend, folder):
    import torch
    from safetensors.torch import load_file as load_tensors
    from safetensors.torch import save_file as save_tensors

    state = {name: value.to(torch.bfloat16) for name, value in load_tensors(folder / "model.safetensors").items()}
    save_tensors(state, folder / "model.safetensors")
    opened = backend.lib.get_state(backend.lib.BertModel.from_pretrained(folder))
    assert_allclose(opened["pooler.weight"], state["pooler.dense.weight"].float().numpy(), rtol=1e-7)


def test_a_failed_save_leaves_the_old_checkpoint(backend, folder, monkeypatch):

    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def disk_full(*arguments, **keywords):
        raise OSError("no space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", disk_full)
    with pytest.raises(OSError, match="no space"):
        backend.make("BertModel", replace(CONFIG, vocab_size=9)).save_pretrained(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
