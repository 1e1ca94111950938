"""Swap one word of an import: the public names, signatures and outputs are the same in the three frameworks."""

import importlib
import inspect
import re

import pytest

from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from tests.support import states
from tests.support.backends import BACKENDS, NUMPY

KERAS = {"training", "name", "dtype", "trainable"}  # Keras's own arguments, which its layers take beside ours
CALLS = {"numpy": "__call__", "torch": "forward", "tensorflow": "call"}
MODULES = [
    "alignment", "attention", "positions", "losses", "encoder", "decoder", "rnn", "state",
    "models.transformer", "models.bert", "models.bert_heads", "models.seq2seq",
    "models.roberta", "models.distilbert", "models.albert", "models.gpt", "models.t5", "models.vit", "models.cnn",
    "models.decision", "models.whisper",
    "efficient.blockwise", "efficient.windowed", "efficient.linear",
]  # fmt: skip
METHODS = [
    "from_pretrained", "save_pretrained", "split", "merge", "project", "recur", "combine", "initial_state", "prepare",
    "compare", "encode", "step", "attend", "predict_from", "next_logits", "reorder",
    "positions", "start", "embed_source", "embed_target", "advance", "embed", "real_tokens",
]  # fmt: skip
SIGNATURE = "(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False)"
NAMES = sorted(NUMPY.lib.__all__)


def described(function):
    """(name, kind, default, annotation) of every parameter; a default that is a function counts by its name."""
    return [
        (p.name, p.kind, getattr(p.default, "__name__", p.default), p.annotation)
        for p in inspect.signature(function).parameters.values()
        if p.name not in KERAS
    ]


def call_of(backend, thing):
    """What an instance does when it is called: a layer's own method, or that of a class that is no layer."""
    return getattr(thing, CALLS[backend.name], None) or thing.__call__


def signatures(backend, thing):
    """What a user writes: the function's own signature, or those of the constructor, the call and the methods."""
    if not inspect.isclass(thing):
        return {"call": described(thing)}
    found = {"constructor": described(thing.__init__), "call": described(call_of(backend, thing))}
    for method in METHODS:
        if hasattr(thing, method):
            found[method] = described(getattr(thing, method))
    return found


def test_the_public_names_are_the_same():
    for backend in BACKENDS:
        assert sorted(backend.lib.__all__) == NAMES, backend
        assert list(backend.lib.__all__) == NAMES, f"{backend}: __all__ is kept in alphabetical order"
        for name in NAMES:
            assert hasattr(backend.lib, name), f"{backend} lacks {name}"
    expected = {
        "attention", "fused_attention", "softmax", "MultiHeadAttention", "FeedForward", "EncoderLayer", "Encoder",
        "SinusoidalPositions", "LearnedPositions", "BertModel", "BertForMaskedLM", "BertForSequenceClassification",
        "get_state", "set_state", "Decoder", "DecoderLayer", "Transformer", "rotary", "rotate", "TimeModulation",
        "cross_entropy", "load_translator",
    }  # fmt: skip
    assert expected <= set(NAMES)


def test_signatures_are_the_same(backend):
    for name in NAMES:
        ours, reference = (signatures(b, getattr(b.lib, name)) for b in (backend, NUMPY))
        assert ours == reference, f"{backend}: {name}"


def test_signatures_of_the_contract(backend):
    def of(function):
        return str(inspect.signature(function)).replace(", training=False", "")

    lib = backend.lib
    assert of(lib.attention) == of(lib.fused_attention) == SIGNATURE
    call = getattr(lib.MultiHeadAttention, CALLS[backend.name])
    assert of(call) == "(self, q, k, v, mask=None, bias=None, causal=False)"
    names = [row[0] for row in described(lib.MultiHeadAttention.__init__)]
    settings = ["n_kv_heads", "d_head", "linear_bias", "scale", "rotary_base", "qkv_bias", "key_bias"]
    assert names == ["self", "d_model", "n_heads", "dropout", "attention", *settings]
    assert [row[0] for row in described(lib.BertModel.from_pretrained)][:1] == ["name_or_folder"]


@pytest.mark.parametrize("module", MODULES)
def test_mirrored_modules_define_the_same_things(module):
    """Also what is not in __all__, such as BertEmbeddings, and in the same reading order."""
    listings = {}
    for backend in BACKENDS:
        source = importlib.import_module(f"course_lib.{backend.name}.{module}")
        own = [
            (inspect.getsourcelines(thing)[1], name, thing)
            for name, thing in vars(source).items()
            if getattr(thing, "__module__", None) == source.__name__
            and not name.startswith("_")
            and name not in ("gelu", "Checkpoint")  # Keras lacks the exact GELU by name; Checkpoint is plumbing
        ]
        listings[backend] = [(name, signatures(backend, thing)) for _, name, thing in sorted(own)]
    for backend in BACKENDS:
        assert listings[backend] == listings[NUMPY], backend


def test_docstrings_give_shapes(backend):
    def text_of(name):
        thing = getattr(backend.lib, name)
        text = inspect.getdoc(thing) or ""
        if inspect.isclass(thing):
            text += inspect.getdoc(call_of(backend, thing)) or ""
        if "as for `attention`" in text and name != "attention":
            text += inspect.getdoc(backend.lib.attention)
        return text

    shape = re.compile(r"\((B|1|\.\.\.|d_out), ?\w+")
    assert [name for name in NAMES if not shape.search(text_of(name))] == ["load_translator"]  # it takes texts


def test_docstrings_are_the_same_but_for_the_framework(backend):
    """The arguments, outputs and errors that a docstring lists do not depend on the framework."""

    def entries(thing):
        text = inspect.getdoc(thing) or ""
        return re.findall(r"(?m)^(?!training)([\w, ]+) : ", text)

    for name in NAMES:
        ours, reference = getattr(backend.lib, name), getattr(NUMPY.lib, name)
        assert entries(ours) == entries(reference), name
        if inspect.isclass(ours):
            assert entries(call_of(backend, ours)) == entries(call_of(NUMPY, reference)), name


def test_outputs_are_the_same_named_tuples(backend, rng):
    config = BertConfig(vocab_size=9, d_model=6, n_layers=1, n_heads=3, d_ff=8, max_len=5)
    x, ids = rng.normal(size=(2, 4, 6)), rng.integers(0, 9, size=(2, 4))
    fields = {
        "MultiHeadAttention": ((6, 3), (x, x, x), ("output", "weights")),
        "Encoder": ((1, BlockConfig(6, 3, 8)), (x,), ("last_hidden", "hidden", "weights")),
        "BertModel": ((config,), (ids,), ("last_hidden", "pooled", "hidden", "weights")),
        "BertForMaskedLM": ((config,), (ids,), ("logits", "hidden", "weights")),
        "BertForPreTraining": ((config,), (ids,), ("masked_logits", "next_logits", "hidden", "weights")),
        "BertForSequenceClassification": ((config,), (ids,), ("logits", "hidden", "weights")),
        "BertForTokenClassification": ((config,), (ids,), ("logits", "hidden", "weights")),
        "BertForQuestionAnswering": ((config,), (ids,), ("start_logits", "end_logits", "hidden", "weights")),
    }
    for name, (arguments, inputs, expected) in fields.items():
        assert backend.call(backend.make(name, *arguments), *inputs)._fields == expected
    for name in ("attention", "fused_attention"):
        assert backend.call(backend.function(name), x, x, x)._fields == ("output", "weights")


def test_the_mask_may_stand_in_fourth_place(backend, rng):
    x, mask = rng.normal(size=(2, 4, 6)), rng.random((2, 1, 4, 4)) < 0.5
    layer = backend.make("MultiHeadAttention", 6, 3, state=states.random_state(states.multi_head_attention(6)))
    by_name = backend.call(layer, x, x, x, mask=mask).output
    assert abs(backend.call(layer, x, x, x, mask).output - by_name).max() < 1e-6
    function = backend.function("attention")
    assert abs(backend.call(function, x, x, x, mask[:, 0]).output - backend.call(function, x, x, x).output).max() > 1e-3
