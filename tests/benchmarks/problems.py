"""The inputs and weights of every comparison, drawn with NumPy so that each subject gets the same ones."""

import numpy as np

import course_lib.numpy
from course_lib.batches.texts import IGNORED
from course_lib.models.decision import DecisionConfig
from course_lib.models.gpt import GPTConfig
from course_lib.models.t5 import T5Config
from course_lib.models.transformer import TransformerConfig
from course_lib.models.vit import ViTConfig
from course_lib.models.whisper import WhisperConfig

SEED = 2017
HEADS = {  # the library's classes have the names of transformers
    "classifier": "BertForSequenceClassification",
    "tags": "BertForTokenClassification",
    "spans": "BertForQuestionAnswering",
    "masked": "BertForMaskedLM",
}
NEW = {"classifier": ["classifier"], "tags": ["classifier"], "spans": ["qa_outputs"], "masked": ["head"]}
MASKED = 0.15
GATES = {"gru": 3, "lstm": 4}


def attention_problem(job: dict) -> dict:
    """Self-attention: weights under our names, the input x (B, T, d_model), its cotangent, and who is padding.

    Parameters
    ----------
    job : sizes B, T, d_model, n_heads; `masked`, whether the last tokens of a sequence are padding

    Returns
    -------
    dict : state (our names, (d_out, d_in)), x and gradient (B, T, d_model), real (B, T) or None.
    """
    rng = np.random.default_rng(SEED)
    batch, length, d_model = job["B"], job["T"], job["d_model"]
    state = {}
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        state[f"{name}.weight"] = normal(rng, d_model, d_model) / np.float32(np.sqrt(d_model))
        state[f"{name}.bias"] = normal(rng, d_model)
    lengths = np.linspace(length // 2, length, batch).astype(int)
    return {
        "state": state,
        "x": normal(rng, batch, length, d_model),
        "gradient": normal(rng, batch, length, d_model),
        "real": np.arange(length) < lengths[:, None] if job["masked"] else None,
    }


def bert_problem(job: dict, vocab_size: int, d_model: int, n_classes: int = 2) -> dict:
    """A padded batch of ids, its labels, and the weights of a head to put on top of the checkpoint.

    Parameters
    ----------
    job : sizes B and T, and the head; lengths run evenly from T / 2 to T

    Returns
    -------
    dict : ids (B, T), real (B, T), labels, head (name -> array (d_out, d_in) or (d_out,)). Labels are (B,) for the
        `classifier`, (B, T) for `tags` and for `masked`, a seventh of whose tokens have one, and (B, 2) for `spans`.
    """
    rng = np.random.default_rng(SEED)
    batch, length = job["B"], job["T"]
    ids = rng.integers(1, vocab_size, (batch, length))
    lengths = np.linspace(length // 2, length, batch).astype(int)
    real = np.arange(length) < lengths[:, None]
    name = {"classifier": "classifier", "tags": "classifier", "spans": "qa_outputs", "masked": "transform"}[job["head"]]
    n_outputs = d_model if job["head"] == "masked" else n_classes
    head = {f"{name}.weight": 0.02 * normal(rng, n_outputs, d_model), f"{name}.bias": np.zeros(n_outputs, np.float32)}
    if job["head"] == "classifier":
        labels = rng.integers(0, n_classes, batch)
    elif job["head"] == "tags":
        labels = np.where(real, rng.integers(0, n_classes, (batch, length)), IGNORED)
    elif job["head"] == "spans":
        labels = rng.integers(0, lengths[:, None], (batch, 2))
    else:
        labels = np.where(real & (rng.random((batch, length)) < MASKED), ids, IGNORED)
        ids = np.where(labels != IGNORED, 1, ids)
        head |= {"norm.weight": np.ones(d_model, np.float32), "norm.bias": np.zeros(d_model, np.float32)}
        head["bias"] = np.zeros(vocab_size, np.float32)
    return {"ids": np.where(real, ids, 0), "real": real, "labels": labels, "head": head}


def rnn_problem(job: dict) -> dict:
    """One direction of an LSTM or a GRU: weights under our names, the input x (B, T, d) and its cotangent.

    Parameters
    ----------
    job : sizes B, T, d (inputs and states alike), cell "lstm" or "gru"

    Returns
    -------
    dict : state (our names and layout), x and gradient (B, T, d).
    """
    rng = np.random.default_rng(SEED)
    d, rows = job["d"], GATES[job["cell"]] * job["d"]
    shapes = {"weight_ih": (rows, d), "weight_hh": (rows, d), "bias_ih": (rows,), "bias_hh": (rows,)}
    return {
        "state": {f"forward_cell.{name}": normal(rng, *s) / np.float32(np.sqrt(d)) for name, s in shapes.items()},
        "x": normal(rng, job["B"], job["T"], d),
        "gradient": normal(rng, job["B"], job["T"], d),
    }


def rnn_flops(job: dict) -> float:
    """Two products a step, with the input and with the state; backward two for each one of the forward pass."""
    forward = 2 * 2 * job["B"] * job["T"] * GATES[job["cell"]] * job["d"] ** 2
    return forward * (3 if job["task"] == "train" else 1)


def attention_flops(job: dict) -> float:
    """Floating-point operations in the matrix products of one call: four projections, q k^T and weights v.

    The backward pass needs two products for each one of the forward pass.
    """
    tokens, d_model = job["B"] * job["T"], job["d_model"]
    forward = 4 * 2 * tokens * d_model**2 + 2 * 2 * tokens * job["T"] * d_model
    return forward * (3 if job["task"] == "train" else 1)


def bert_flops(job: dict, n_layers: int, d_model: int, d_ff: int, vocab_size: int) -> float:
    """The same for the encoder's layers, and the logits of the masked tokens; other heads are below a thousandth."""
    tokens = job["B"] * job["T"]
    layer = 4 * 2 * tokens * d_model**2 + 2 * 2 * tokens * job["T"] * d_model + 2 * 2 * tokens * d_model * d_ff
    masked = MASKED * 0.75 * tokens if job["head"] == "masked" else 0  # a quarter of the batch is padding
    return (n_layers * layer + 2 * masked * d_model * vocab_size) * (3 if job["task"] == "train" else 1)


def translator_problem(job: dict) -> dict:
    """A translator's fresh weights, and padded pairs of ids, of lengths that run evenly from T / 2 to T.

    Parameters
    ----------
    job : sizes B, T (of source and target), vocab_size, d_model, n_layers, n_heads, d_ff

    Returns
    -------
    dict : config, state (our names), source (B, T), inputs (B, T), labels (B, T).
    """
    sizes = {name: job[name] for name in ("d_model", "n_layers", "n_heads", "d_ff")}
    config = TransformerConfig(job["vocab_size"], job["vocab_size"], **sizes)
    np.random.seed(SEED)
    state = course_lib.numpy.get_state(course_lib.numpy.Transformer(config))
    rng = np.random.default_rng(SEED)
    real = np.arange(job["T"]) < np.linspace(job["T"] // 2, job["T"], job["B"]).astype(int)[:, None]
    ids = [np.where(real, rng.integers(1, job["vocab_size"], real.shape), 0) for _ in range(3)]
    return {"config": config, "state": state, **dict(zip(("source", "inputs", "labels"), ids, strict=True))}


def translator_flops(job: dict) -> float:
    """Matrix products of encoder, decoder and output: one training step, or T tokens decoded with a cache."""
    tokens, d_model = job["B"] * job["T"], job["d_model"]
    pairs = 2 * 2 * tokens * job["T"] * d_model
    encoder = 4 * 2 * tokens * d_model**2 + pairs + 2 * 2 * tokens * d_model * job["d_ff"]
    decoder = encoder + 4 * 2 * tokens * d_model**2 + pairs
    forward = job["n_layers"] * (encoder + decoder) + 2 * tokens * d_model * job["vocab_size"]
    return forward * (3 if job["task"] == "train" else 1)


def model_problem(job: dict) -> dict:
    """A GPT, a T5, a ViT, a Whisper or a Decision Transformer, what it reads, and what it shall say; no padding.

    Parameters
    ----------
    job : model "gpt", "t5", "vit", "whisper" or "decision"; task; B; d_model, n_layers, n_heads, d_ff; T tokens (of a
        source and of a target alike) and vocab_size, or image_size and patch_size, or T steps; F frames of a sound. To
        "generate" is to read 16 tokens, or the sound, and to say T.

    Returns
    -------
    dict : config, inputs (ids (B, T), after those of a source (B, T) for T5 and a sound (B, 80, F) for Whisper, or
        images (B, 3, H, W)), labels (B, T) or (B,).
    """
    rng = np.random.default_rng(SEED)
    sizes = {name: job[name] for name in ("d_model", "n_layers", "n_heads", "d_ff")}
    if job["model"] == "vit":
        config = ViTConfig(job["image_size"], job["patch_size"], n_classes=10, **sizes)
        images = normal(rng, job["B"], 3, job["image_size"], job["image_size"])
        return {"config": config, "inputs": [images], "labels": rng.integers(0, 10, job["B"])}
    if job["model"] == "decision":
        config = DecisionConfig(d_state=17, d_action=6, max_len=1000, **sizes)
        states, actions, returns, labels = (normal(rng, job["B"], job["T"], n) for n in (17, 6, 1, 6))
        times = rng.integers(0, config.max_len - job["T"], (job["B"], 1)) + np.arange(job["T"])
        return {"config": config, "inputs": [states, actions, returns, times], "labels": np.tanh(labels)}
    if job["model"] == "whisper":
        more = {"n_decoder_layers": job["n_layers"], "n_decoder_heads": job["n_heads"], "d_decoder_ff": job["d_ff"]}
        more |= {"max_source_len": job["F"] // 2, "max_len": 1 + job["T"], "pad_id": 0, "start_id": 1, "end_id": None}
        config = WhisperConfig(job["vocab_size"], init_std=0.1, **sizes, **more)
        ids = [rng.integers(2, job["vocab_size"], (job["B"], job["T"])) for _ in range(2)]
        return {"config": config, "inputs": [normal(rng, job["B"], 80, job["F"]), ids[0]], "labels": ids[1]}
    n_read = 16 if job["task"] == "generate" else job["T"]
    if job["model"] == "gpt":
        config = GPTConfig(job["vocab_size"], max_len=16 + job["T"], init_std=0.1, **sizes)
    else:
        d_head = job["d_model"] // job["n_heads"]
        config = T5Config(job["vocab_size"], n_decoder_layers=job["n_layers"], d_head=d_head, end_id=None, **sizes)
    ids = [rng.integers(2, job["vocab_size"], (job["B"], n_read)) for _ in range(3)]
    return {"config": config, "inputs": ids[: 1 if job["model"] == "gpt" else 2], "labels": ids[2]}


def model_flops(job: dict) -> float:
    """Matrix products of layers and output, as in `translator_flops`; of a source of 16 tokens where it generates."""
    d_model, batch = job["d_model"], job["B"]
    n_tokens = (job["image_size"] // job["patch_size"]) ** 2 + 1 if job["model"] == "vit" else job["T"]
    n_tokens *= 3 if job["model"] == "decision" else 1

    def layers(n_queries, n_keys):
        tokens = batch * n_queries
        products = 4 * 2 * tokens * d_model**2 + 2 * 2 * tokens * n_keys * d_model
        return job["n_layers"] * (products + 2 * 2 * tokens * d_model * job["d_ff"])

    forward = layers(n_tokens, n_tokens) + 2 * batch * n_tokens * d_model * job.get("vocab_size", 0)
    if job["model"] == "t5":
        forward += layers(16 if job["task"] == "generate" else n_tokens, n_tokens)
        forward += job["n_layers"] * (4 * 2 * batch * n_tokens * d_model**2)  # cross-attention
    if job["model"] == "whisper":
        n_heard = job["F"] // 2
        forward += layers(n_heard, n_heard) + 2 * batch * n_heard * 3 * d_model * (2 * 80 + d_model)
        tokens = batch * (n_tokens + n_heard)
        forward += job["n_layers"] * (2 * 2 * tokens * d_model**2 + 2 * 2 * batch * n_tokens * n_heard * d_model)
    return forward * (3 if job["task"] == "train" else 1)


def normal(rng, *shape):
    """float32 standard normal numbers."""
    return rng.standard_normal(shape).astype(np.float32)
