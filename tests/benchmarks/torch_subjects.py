"""What is timed in PyTorch: our modules, `torch.nn.MultiheadAttention` and the models of `transformers`.

A subject is a function of a job (see figures.py). It builds the module, sets the weights, and returns two
functions: `call`, one timed call; and `outputs`, a dict of arrays that must equal the peer's.
"""

import numpy as np
import torch
from problems import attention_problem, bert_problem
from torch import nn
from torch.nn import functional as F

import course_lib.torch as ours
from course_lib import data

ATTENTION = {"fused": ours.fused_attention, "plain": ours.attention}
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


def our_bert(job):
    """BertForSequenceClassification of course_lib."""
    model = ours.BertForSequenceClassification.from_pretrained(
        "minilm-l6", new=["classifier"], attention=ATTENTION[job["attention"]]
    )
    problem = bert_problem(job, model.config.vocab_size, model.config.d_model)
    mask = torch.from_numpy(problem["real"])[:, None, None, :]
    return _bert(job, problem, model, lambda ids: model(ids, mask=mask).logits)


def peer_bert(job):
    """BertForSequenceClassification of transformers with its default attention, sdpa."""
    from transformers import BertForSequenceClassification
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model = BertForSequenceClassification.from_pretrained(data.fetch("minilm-l6"))
    assert model.config._attn_implementation == "sdpa"
    problem = bert_problem(job, model.config.vocab_size, model.config.hidden_size)
    attention_mask = torch.from_numpy(problem["real"].astype(np.int64))
    return _bert(job, problem, model, lambda ids: model(input_ids=ids, attention_mask=attention_mask).logits)


def _bert(job, problem, model, forward):
    with torch.no_grad():
        model.classifier.weight.copy_(torch.from_numpy(problem["classifier.weight"]))
        model.classifier.bias.copy_(torch.from_numpy(problem["classifier.bias"]))
    ids, labels = torch.from_numpy(problem["ids"]), torch.from_numpy(problem["labels"])
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)

    def call():
        if job["task"] == "forward":
            with torch.inference_mode():
                return forward(ids)
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(ids), labels)
        loss.backward()
        optimizer.step()
        return loss

    def outputs():
        model.eval()  # without dropout, which draws other numbers in every subject
        if job["task"] == "forward":
            return {"logits": call().numpy()}
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(ids), labels)
        loss.backward()
        found = {"loss": loss.detach().numpy(), "d classifier": model.classifier.weight.grad.numpy().copy()}
        norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        found["norm of the gradient"] = torch.stack(norms).norm().numpy()
        optimizer.zero_grad()
        return found

    return call, outputs
