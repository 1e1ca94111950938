"""Random encoders, Transformers, GPTs, T5s, BERTs and others, with inputs that a user would give them.

Padding ids are not zero, lengths differ within a batch, sizes are odd where they may be: what a test written beside
its code forgets. The same seed gives the same cases in every framework. `--configurations N` of pytest says how many
of each kind are tried; the ordinary suite tries few, since compiling one takes seconds.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.decision import DecisionConfig
from course_lib.models.distilbert import DistilBertConfig
from course_lib.models.gpt import GPTConfig
from course_lib.models.roberta import RobertaConfig
from course_lib.models.t5 import T5Config
from course_lib.models.transformer import TransformerConfig
from course_lib.models.whisper import WhisperConfig

FAMILY = ("roberta", "distilbert", "albert")
RELATED = (*FAMILY, "gpt", "t5", "decision", "whisper")  # that share nearly all with another
KINDS = ("encoder", "transformer", "bert", *RELATED)
PUBLIC = ("bert", *RELATED)  # those that open folders of `transformers` and save such


class Case(NamedTuple):
    """One model to build: its kind, what its class takes, and the arrays of one call."""

    kind: str
    number: int
    arguments: dict  # {"config": ...}, and "n_layers" of `Encoder`
    inputs: dict[str, np.ndarray]  # by the parameter names of the call

    def __repr__(self):
        return f"{self.kind}-{self.number}"


def cases(n: int, kinds=KINDS) -> list[Case]:
    """The first n cases of each kind; half as many of those that share nearly all with another."""
    found = []
    for kind in kinds:
        for number in range((n + 1) // 2 if kind in RELATED else n):
            found.append(MAKERS[kind](number, np.random.default_rng([20170612, number])))
    return found


def _sizes(rng) -> dict:
    n_heads = int(rng.choice([1, 2, 3, 4]))
    return {
        "d_model": n_heads * int(rng.choice([4, 6, 8])),  # even in every head, for rotary positions
        "n_layers": int(rng.integers(1, 3)),
        "n_heads": n_heads,
        "d_ff": int(rng.integers(5, 40)),
        "activation": str(rng.choice(["relu", "gelu"])),
    }


def _ids(rng, n_rows, length, vocab, pad_id):
    """Real tokens first, then padding; row 0 has none of it."""
    ids = rng.integers(0, vocab - 1, size=(n_rows, length))
    ids += ids >= pad_id  # any id but that of padding
    for row, real in zip(ids, [length, *rng.integers(1, length + 1, size=n_rows - 1)], strict=True):
        row[real:] = pad_id
    return ids


def _encoder(number, rng):
    sizes = _sizes(rng) | {"pre_norm": bool(rng.integers(2))}
    n_layers, block = sizes.pop("n_layers"), BlockConfig(**sizes)
    n_rows, length = int(rng.integers(1, 5)), int(rng.integers(2, 12))
    mask = rng.random((n_rows, 1, 1, length)) < 0.8
    mask[..., 0] = True
    x = rng.normal(size=(n_rows, length, block.d_model))
    return Case("encoder", number, {"n_layers": n_layers, "config": block}, {"x": x, "mask": mask})


def _transformer(number, rng):
    vocab, pad_id = int(rng.integers(12, 40)), int(rng.integers(1, 10))
    config = TransformerConfig(
        vocab,
        vocab,
        **_sizes(rng),
        max_len=24,
        pre_norm=bool(rng.integers(2)),
        positions=["sinusoidal", "rotary", "learned", None][number % 4],
        share_embeddings=bool(rng.integers(2)),
        tie_output=bool(rng.integers(2)),
        pad_id=pad_id,
    )
    n_rows = int(rng.integers(1, 5))
    ids = {name: _ids(rng, n_rows, int(rng.integers(2, 12)), vocab, pad_id) for name in ("source_ids", "target_ids")}
    return Case("transformer", number, {"config": config}, ids)


def _bert(number, rng):
    vocab, pad_id = int(rng.integers(12, 40)), int(rng.integers(1, 10))
    kinds = {"pooling": ["first", "mean"][number % 2], "pre_norm": number % 4 in (1, 2)}
    config = BertConfig(vocab_size=vocab, **_sizes(rng), **kinds, max_len=24, pad_id=pad_id, n_classes=3, init_std=0.3)
    ids = _ids(rng, int(rng.integers(1, 5)), int(rng.integers(2, 12)), vocab, pad_id)
    inputs = {"ids": ids, "mask": (ids != pad_id)[:, None, None, :], "segments": rng.integers(0, 2, size=ids.shape)}
    return Case("bert", number, {"config": config}, inputs)


def _of_family(kind, number, rng):
    vocab, pad_id = int(rng.integers(12, 40)), int(rng.integers(1, 10))
    sizes = _sizes(rng) | {"activation": ACTIVATIONS[number % len(ACTIVATIONS)]}
    plain = {"max_len": 24, "pad_id": pad_id, "n_classes": 3, "init_std": 0.3}
    if kind == "roberta":
        plain |= {"max_len": 25 + pad_id, "n_segments": 1 + number % 2, "norm_eps": [1e-5, 1e-3][number % 2]}
        config = RobertaConfig(vocab, **sizes, **plain)
    elif kind == "distilbert":
        config = DistilBertConfig(vocab, **sizes, **plain)
    else:
        groups = int(rng.integers(1, sizes["n_layers"] + 1))
        config = AlbertConfig(vocab, **sizes, **plain, d_embedding=int(rng.integers(3, 9)), n_groups=groups)
    ids = _ids(rng, int(rng.integers(1, 5)), int(rng.integers(2, 12)), vocab, pad_id)
    inputs = {"ids": ids, "mask": (ids != pad_id)[:, None, None, :]}
    if config.n_segments > 1:
        inputs["segments"] = rng.integers(0, config.n_segments, size=ids.shape)
    return Case(kind, number, {"config": config}, inputs)


def _gpt(number, rng):
    vocab, pad_id = int(rng.integers(12, 40)), int(rng.integers(1, 10))
    sizes = _sizes(rng) | {"activation": ACTIVATIONS[(number + 2) % len(ACTIVATIONS)]}
    config = GPTConfig(vocab, **sizes, max_len=24, pad_id=pad_id, init_std=0.3)
    return Case("gpt", number, {"config": config}, {"ids": _ids(rng, int(rng.integers(1, 5)), 9, vocab, pad_id)})


def _t5(number, rng):
    vocab, pad_id = int(rng.integers(12, 40)), int(rng.integers(1, 10))
    sizes = _sizes(rng) | {"activation": ["gelu_new", "relu"][number % 2]}
    config = T5Config(
        vocab,
        **sizes,
        n_decoder_layers=int(rng.integers(1, 3)),
        d_head=int(rng.integers(3, 7)),
        n_buckets=8,
        max_distance=9,
        gated=number % 2 == 0,
        tie_output=number % 2 == 1,
        init_factor=0.7,
        pad_id=pad_id,
        start_id=pad_id,
        end_id=None,
    )
    n_rows = int(rng.integers(1, 5))
    ids = {name: _ids(rng, n_rows, int(rng.integers(2, 12)), vocab, pad_id) for name in ("source_ids", "target_ids")}
    return Case("t5", number, {"config": config}, ids)


def _decision(number, rng):
    sizes = _sizes(rng) | {"activation": ACTIVATIONS[(number + 1) % len(ACTIVATIONS)]}
    d_state, d_action = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    config = DecisionConfig(d_state, d_action, **sizes, max_len=24, action_tanh=number % 2 == 1, init_std=0.3)
    n_rows, length = int(rng.integers(1, 5)), int(rng.integers(2, 12))
    inputs = {name: rng.normal(size=(n_rows, length, n)) for name, n in zip(STEPS, (d_state, d_action, 1), strict=True)}
    inputs["times"] = rng.integers(0, 24 - length, size=(n_rows, 1)) + np.arange(length)
    inputs["real"] = np.arange(length) < np.array([length, *rng.integers(1, length + 1, size=n_rows - 1)])[:, None]
    return Case("decision", number, {"config": config}, inputs)


def _whisper(number, rng):
    vocab, pad_id, sizes = int(rng.integers(12, 40)), int(rng.integers(1, 10)), _sizes(rng)
    config = WhisperConfig(
        vocab,
        n_mels=int(rng.integers(2, 9)),
        **sizes,
        n_decoder_layers=int(rng.integers(1, 3)),
        n_decoder_heads=2,
        d_decoder_ff=int(rng.integers(5, 40)),
        max_source_len=12,
        max_len=24,
        init_std=0.3,
        pad_id=pad_id,
        start_id=0,
        end_id=None,
    )
    n_rows = int(rng.integers(1, 5))
    inputs = {"features": rng.normal(size=(n_rows, config.n_mels, int(rng.integers(2, 24))))}
    inputs["target_ids"] = _ids(rng, n_rows, int(rng.integers(2, 12)), vocab, pad_id)
    return Case("whisper", number, {"config": config}, inputs)


STEPS = ("states", "actions", "returns")
MAKERS = {"encoder": _encoder, "transformer": _transformer, "bert": _bert, "gpt": _gpt, "t5": _t5}
MAKERS |= {"decision": _decision, "whisper": _whisper}
MAKERS |= {kind: partial(_of_family, kind) for kind in FAMILY}
