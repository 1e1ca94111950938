"""What is timed in PyTorch: our modules, `torch.nn.MultiheadAttention` and the models of `transformers`.

A subject is a function of a job (see figures.py). It builds the module, sets the weights, and returns two
functions: `call`, one timed call; and `outputs`, a dict of arrays that must equal the peer's.
"""

import math
import warnings

import numpy as np
import torch
from problems import HEADS, NEW, attention_problem, bert_problem, rnn_problem, translator_problem
from torch import nn
from torch.nn import functional as F

import course_lib.torch as ours
from course_lib import data
from course_lib.batches.texts import IGNORED
from course_lib.torch.training import optimizers, translation

ATTENTION = {"fused": ours.fused_attention, "plain": ours.attention}
RUN = {"fused": ours.run_fused, "unrolled": ours.run_unrolled}
MASKED_HEAD = ("transform.weight", "transform.bias", "norm.weight", "norm.bias", "bias")
OUR_NAMES = {name: f"head.{name}" for name in MASKED_HEAD}
PEER_NAMES = {name: f"cls.predictions.{name}" for name in ("bias",)} | {
    f"{ours_}.{kind}": f"cls.predictions.transform.{theirs}.{kind}"
    for ours_, theirs in (("transform", "dense"), ("norm", "LayerNorm"))
    for kind in ("weight", "bias")
}
LEARNING_RATE, WEIGHT_DECAY = 2e-5, 0.01


def set_threads(n: int) -> None:
    """Let PyTorch compute with n threads."""
    torch.set_num_threads(n)


def gemm(size: int):
    """A square matrix product in float32: the function that runs it."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty(size, size)
    return lambda: torch.mm(a, b, out=out)


def our_attention(job):
    """MultiHeadAttention of course_lib, with the attention function that the job names."""
    problem = attention_problem(job)
    module = ours.MultiHeadAttention(job["d_model"], job["n_heads"], attention=ATTENTION[job["attention"]])
    ours.set_state(module, problem["state"])
    mask = None if problem["real"] is None else torch.from_numpy(problem["real"])[:, None, None, :]
    return _attention(job, problem, module, lambda x: module(x, x, x, mask=mask)[0])


def peer_attention(job):
    """torch.nn.MultiheadAttention as fast as it goes: no weights returned, its fast path when it infers."""
    problem = attention_problem(job)
    module = nn.MultiheadAttention(job["d_model"], job["n_heads"], batch_first=True)
    state = {name: torch.from_numpy(value) for name, value in problem["state"].items()}
    packed = {
        f"in_proj_{part}": torch.cat([state[f"{name}_proj.{part}"] for name in "qkv"]) for part in ("weight", "bias")
    }
    module.load_state_dict({**packed, **{name: state[name] for name in ("out_proj.weight", "out_proj.bias")}})
    # the opposite sign of ours: True = hidden
    hidden = None if problem["real"] is None else ~torch.from_numpy(problem["real"])
    return _attention(job, problem, module, lambda x: module(x, x, x, key_padding_mask=hidden, need_weights=False)[0])


def _attention(job, problem, module, forward):
    x, gradient = torch.from_numpy(problem["x"]), torch.from_numpy(problem["gradient"])
    if job["task"] == "train":
        x.requires_grad_()
    module.train(job["task"] == "train")

    def call():
        if job["task"] == "forward":
            with torch.inference_mode():
                return forward(x)
        module.zero_grad()
        x.grad = None
        output = forward(x)
        output.backward(gradient)
        return output

    def outputs():
        found = {"output": call().detach().numpy()}
        if job["task"] == "train":
            found["d x"] = x.grad.numpy()
            found["d out_proj.weight"] = module.out_proj.weight.grad.numpy()
        return found

    return call, outputs


def our_rnn(job):
    """RNN of course_lib, with what runs the cell as the job says."""
    problem = rnn_problem(job)
    module = ours.RNN(job["d"], job["d"], job["cell"], run=RUN[job["run"]])
    ours.set_state(module, problem["state"])
    return _rnn(job, problem, module, module.forward_cell.weight_hh)


def peer_rnn(job):
    """torch.nn.LSTM or torch.nn.GRU."""
    problem = rnn_problem(job)
    module = {"lstm": nn.LSTM, "gru": nn.GRU}[job["cell"]](job["d"], job["d"], batch_first=True)
    renamed = {name.split(".")[1] + "_l0": torch.from_numpy(value) for name, value in problem["state"].items()}
    module.load_state_dict(renamed)
    return _rnn(job, problem, module, module.weight_hh_l0)


def _rnn(job, problem, module, weight):
    x, gradient = torch.from_numpy(problem["x"]), torch.from_numpy(problem["gradient"])
    if job["task"] == "train":
        x.requires_grad_()

    def call():
        if job["task"] == "forward":
            with torch.inference_mode():
                return module(x)[0]
        module.zero_grad()
        x.grad = None
        output = module(x)[0]
        output.backward(gradient)
        return output

    def outputs():
        found = {"output": call().detach().numpy()}
        if job["task"] == "train":
            found["d x"] = x.grad.numpy()
            found["d weight_hh"] = weight.grad.numpy()
        return found

    return call, outputs


def our_bert(job):
    """BERT of course_lib with the head that the job names; of masked tokens, it computes the logits of these alone."""
    model = getattr(ours, HEADS[job["head"]]).from_pretrained(
        "minilm-l6", new=NEW[job["head"]], attention=ATTENTION[job["attention"]]
    )
    problem = bert_problem(job, model.config.vocab_size, model.config.d_model)
    mask = torch.from_numpy(problem["real"])[:, None, None, :]
    at = {"at": torch.from_numpy(problem["labels"] != IGNORED)} if job["head"] == "masked" else {}
    return _bert(job, problem, model, lambda ids: model(ids, mask=mask, **at), OUR_NAMES)


def peer_bert(job):
    """The same head of transformers with its default attention, sdpa."""
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model = getattr(transformers, HEADS[job["head"]]).from_pretrained(data.fetch("minilm-l6"))
    assert model.config._attn_implementation == "sdpa"
    problem = bert_problem(job, model.config.vocab_size, model.config.hidden_size)
    attention_mask = torch.from_numpy(problem["real"].astype(np.int64))
    return _bert(job, problem, model, lambda ids: model(input_ids=ids, attention_mask=attention_mask), PEER_NAMES)


def _bert(job, problem, model, forward, names):
    ids, labels, real = (torch.from_numpy(problem[name]) for name in ("ids", "labels", "real"))
    parameters = dict(model.named_parameters())
    head = {name: parameters[names.get(name, name)] for name in problem["head"]}
    with torch.no_grad():
        for name, parameter in head.items():
            parameter.copy_(torch.from_numpy(problem["head"][name]))
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)

    def logits():
        """(..., classes): of the texts, the tokens, both ends of an answer, or the masked tokens."""
        output = forward(ids)
        if job["head"] == "spans":  # padding is no candidate; in transformers' own loss it is one
            both = torch.stack([output.start_logits, output.end_logits], 1)
            return both.masked_fill(~real[:, None], -1e9)
        return output.logits

    def loss():
        found = logits()
        wanted = labels[labels != IGNORED] if found.ndim == 2 else labels  # the library gives those of the masked alone
        return F.cross_entropy(found.flatten(0, -2), wanted.flatten())

    def call():
        if job["task"] == "forward":
            with torch.inference_mode():
                return logits()
        model.train()
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    def outputs():
        model.eval()  # without dropout, which draws other numbers in every subject
        if job["task"] == "forward":
            found = call()
            if job["head"] == "masked":
                found = found if found.ndim == 2 else found[labels != IGNORED]
            elif job["head"] != "classifier":
                found = found[real] if job["head"] == "tags" else found.transpose(1, 2)[real]
            return {"logits": found.numpy()}
        optimizer.zero_grad()
        value = loss()
        value.backward()
        found = {"loss": value.detach().numpy()}
        found |= {f"d {name}": parameter.grad.numpy().copy() for name, parameter in head.items()}
        norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        found["norm of the gradient"] = torch.stack(norms).norm().numpy()
        optimizer.zero_grad()
        return found

    return call, outputs


def our_translator(job):
    """Transformer of course_lib and the training step of its `training.translation`."""
    problem = translator_problem(job)
    model = ours.Transformer(problem["config"], attention=ATTENTION[job["attention"]])
    ours.set_state(model, problem["state"])
    return _translator(problem, model)


class PeerTranslator(nn.Module):
    """torch.nn.Transformer with embeddings, sinusoids and a tied output, as its users write it."""

    def __init__(self, config):
        super().__init__()
        self.config, self.scale = config, math.sqrt(config.d_model)
        self.source_embedding = nn.Embedding(config.source_vocab, config.d_model)
        self.target_embedding = nn.Embedding(config.target_vocab, config.d_model)
        self.position = ours.SinusoidalPositions(config.d_model, config.max_len)
        self.dropout = nn.Dropout(config.dropout)
        sizes = (config.d_model, config.n_heads, config.n_layers, config.n_layers, config.d_ff, config.dropout)
        self.core = nn.Transformer(*sizes, batch_first=True)
        self.core.encoder.norm = self.core.decoder.norm = None  # the paper ends without one more normalisation
        for layer in [*self.core.encoder.layers, *self.core.decoder.layers]:
            layer.self_attn.dropout = 0.0  # the paper drops no attention weights, nor inside of the feed-forward
            layer.dropout = nn.Identity()
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = 0.0

    def forward(self, source, target):
        """ids (B, S) and (B, T) -> logits (B, T, V)."""
        no_source, no_target = source == 0, target == 0  # True = hidden
        hidden = self.core(
            self.dropout(self.position(self.source_embedding(source) * self.scale)),
            self.dropout(self.position(self.target_embedding(target) * self.scale)),
            tgt_mask=torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1),
            src_key_padding_mask=no_source,
            tgt_key_padding_mask=no_target,
            memory_key_padding_mask=no_source,
        )
        return F.linear(hidden, self.target_embedding.weight)


def peer_translator(job):
    """torch.nn.Transformer and the loss of torch.nn.functional, with the same optimizer."""
    problem = translator_problem(job)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nested tensors, which training does not use
        model = PeerTranslator(problem["config"])
    model.load_state_dict(_names_of_torch(problem["state"]), strict=True)
    return _translator(problem, model, logits=lambda source, inputs: model(source, inputs))


def _names_of_torch(state):
    named, stacked = {}, {}
    for name, value in state.items():
        value = torch.from_numpy(value).float()
        if "embedding" in name:
            named[name] = value
            continue
        name = "core." + name.replace("feed_forward.", "").replace("cross_attention", "multihead_attn")
        name = name.replace("self_attention", "self_attn").replace(".attention.", ".self_attn.")
        head, _, kind = name.rpartition(".")
        if head.endswith(("q_proj", "k_proj", "v_proj")):
            stacked.setdefault(f"{head[:-7]}.in_proj_{kind}", []).append(value)
        else:
            named[name] = value
    return {**named, **{name: torch.cat(values) for name, values in stacked.items()}}


def _translator(problem, model, logits=None):
    batch = [torch.from_numpy(problem[name]) for name in ("source", "inputs", "labels")]
    optimizer = optimizers.adam(model)
    for group in optimizer.param_groups:
        group["lr"] = LEARNING_RATE

    def peer_loss():
        found = logits(*batch[:2])
        return F.cross_entropy(found.flatten(0, 1), batch[2].flatten(), ignore_index=0, label_smoothing=0.1)

    def call():
        model.train()
        if logits is None:
            return translation.train_step(model, optimizer, batch, 0.1)
        loss = peer_loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def outputs():
        model.eval()
        model.zero_grad()
        loss = peer_loss() if logits else ours.cross_entropy(model(*batch[:2]).logits, batch[2], 0, 0.1).loss
        loss.backward()
        norms = [p.grad.norm() for p in model.parameters()]
        found = {"loss": loss.detach().numpy(), "norm of the gradient": torch.stack(norms).norm().numpy()}
        model.zero_grad()
        return found

    return call, outputs


def our_decoding(job):
    """T tokens read one after the other by `next_logits`, with keys and values kept or not."""
    problem = translator_problem(job)
    model = ours.Transformer(problem["config"], attention=ATTENTION[job["attention"]]).eval()
    ours.set_state(model, problem["state"])
    return _decoding(job, problem, model)


def _decoding(job, problem, model):
    ids = np.random.default_rng(0).integers(1, job["vocab_size"], (job["B"], job["T"]))

    def call():
        step = model.next_logits(problem["source"][:, :16], job["cached"])
        for t in range(1, job["T"] + 1):
            logits = step(ids[:, :t])
        return logits

    return call, lambda: {"logits": call()}
