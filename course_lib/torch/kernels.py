"""What runs faster than the formulas of the other modules, and gives the same numbers."""

import warnings
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from course_lib.torch.layers import ACTIVATIONS, tensor_of, values_of

# on a GPU the kernels copy our four weights together at every call, and say so
warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")

FEW, LARGE = 4, 2**20  # at most so many rows, at least so many numbers: `to_vocabulary` the other way round

IN_PLACE = {  # the same numbers, written over the argument
    ACTIVATIONS["gelu"]: torch.ops.aten.gelu_,
    ACTIVATIONS["relu"]: torch.relu_,
    ACTIVATIONS["gelu_new"]: partial(torch.ops.aten.gelu_, approximate="tanh"),
    ACTIVATIONS["silu"]: partial(F.silu, inplace=True),
}


def overwriting(activation, linear):
    """An activation of what a linear layer returns, written over it where nobody keeps it; else as it is."""
    return IN_PLACE.get(activation, activation) if nobody_keeps_output(linear) else activation


def nobody_keeps_output(linear) -> bool:
    """Whether the next operation may overwrite what a linear layer returns.

    Fresh memory costs time: the system clears each page when it is first written to, and C's `free` hands pages back
    above twice the largest block. Activations with memory of their own reach this in every layer of a BERT. A gradient,
    a hook, another `forward` or a module in the layer's place, which may return its input, forbid it; a compiler plans
    memory by itself.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.is_grad_enabled():
        return False
    hooks = linear._forward_hooks or nn.modules.module._global_forward_hooks
    return type(linear) is nn.Linear and "forward" not in vars(linear) and not hooks


def hides_nothing(mask) -> bool:
    """Whether a mask is True everywhere, so that a kernel can do without it; False too where looking is not free."""
    mask = tensor_of(mask)
    return values_of(mask, lambda: bool(mask.all()), False)


def hiding(mask):
    """A mask, or None in the place of one that hides nothing: for one token, to apply it takes longer than to look."""
    return None if hides_nothing(mask) else mask


def to_vocabulary(hidden, table):
    """A logit for each token: hidden (..., d_model), the tokens' table (V, d_model) -> (..., V).

    When a sentence is generated, PyTorch reads a table that no cache holds at half of the memory's speed for one row,
    and more slowly for a few; with the table on the left and two columns or more, at nearly all of it. So one row is
    multiplied twice. Where the table is small or rows are many, this would take longer.
    """
    if not _are_few(hidden, table):
        return F.linear(hidden, table)
    rows = hidden.repeat(2, 1) if len(hidden) == 1 else hidden
    return (table @ rows.t()).t()[: len(hidden)].contiguous()


def _are_few(hidden, table) -> bool:
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.is_grad_enabled():
        return False
    on_processor = table.device.type == hidden.device.type == "cpu" and table.dtype == hidden.dtype == torch.float32
    return on_processor and hidden.dim() == 2 and 1 <= len(hidden) <= FEW and table.numel() >= LARGE


def recurrence(cell, x, state, batch_sizes=None):
    """A cell along sequences of one length: x (B, T, d_in) -> outputs (B, T, d_hidden), state; or packed ones."""
    hidden = [part.contiguous()[None] for part in state]  # one layer
    hidden = hidden[0] if cell.n_states == 1 else hidden
    weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    # biases, 1 layer, no dropout, whether a gradient will be asked for, one direction
    options = (weights, True, 1, 0.0, torch.is_grad_enabled(), False)
    if batch_sizes is None:
        outputs, *last = cell.kernel(x, hidden, *options, True)  # the batch is the first axis
    else:
        outputs, *last = cell.kernel(x, batch_sizes, hidden, *options)
    return outputs, tuple(part[0] for part in last)


def packed_recurrence(cell, x, mask, state):
    """The same for sequences with padding, wherever it stands: mask (B, T), True = a real token."""
    # the real tokens move to the front, each sequence is read to its own end, and its outputs move back;
    # a step at padding repeats the output before it
    counts = mask.cumsum(1)  # (B, T): real tokens so far
    order = torch.argsort(mask.int(), dim=1, descending=True, stable=True)
    lengths = counts[:, -1]
    packed = pack_padded_sequence(
        x.gather(1, order[..., None].expand_as(x)), lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
    )
    start = tuple(part.index_select(0, packed.sorted_indices) for part in state)
    outputs, last = recurrence(cell, packed.data, start, packed.batch_sizes)
    outputs = PackedSequence(outputs, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
    outputs, _ = pad_packed_sequence(outputs, batch_first=True)
    outputs = torch.cat([state[0][:, None], outputs], dim=1)
    outputs = outputs.gather(1, counts[..., None].expand(-1, -1, cell.d_hidden))
    last = tuple(part.index_select(0, packed.unsorted_indices) for part in last)
    return outputs, where_real(lengths > 0, last, state)


def where_real(real, new, old):
    """The states (B, d_hidden) of `new` in the rows that are real (B,), those of `old` in the others."""
    return tuple(torch.where(real[:, None], a, b) for a, b in zip(new, old, strict=True))
