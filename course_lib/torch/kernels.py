"""What runs faster than the formulas of the other modules, and gives the same numbers."""

import warnings

import torch
from torch.nn import functional as F
from torch.nn.modules import module as modules
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from course_lib.torch.attention import MultiHeadAttention, fused_attention

# on a GPU the kernels copy our four weights together at every call, and say so
warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")


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


def may_be_quick(layer):
    """Whether `quick_step` may stand for the step of a `DecoderLayer`: nothing trains it, hooks it or takes its parts.

    For each token it looks at some twenty parts, which takes a hundredth of the time that `quick_step` saves.
    """
    if layer.training or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    if modules._global_forward_hooks or modules._global_forward_pre_hooks:
        return False
    parts = layer._modules
    attentions = [part for part in (parts["self_attention"], parts["cross_attention"]) if part is not None]
    if any(type(part) is not MultiHeadAttention or part.rotary_base is not None for part in attentions):
        return False
    inner = (linear for part in attentions for linear in part._modules.values())
    return not any(map(_is_hooked, (*parts.values(), *inner)))


def _is_hooked(part):
    return part is not None and bool(part._forward_hooks or part._forward_pre_hooks or part._compiled_call_impl)


def quick_step(layer, x, cache, mask, memory_mask):
    """`DecoderLayer.step` for one new token of each row, x (B, 1, d_model), in two thirds of its time.

    What is left out is what needs no time elsewhere, but counts where each product has a single row: dropout, checks,
    and the calls of modules, of which PyTorch's look for hooks.
    """
    own, other, pre_norm = layer.self_attention, layer.cross_attention, layer.config.pre_norm
    norm1, norm3 = layer.norm1.forward, layer.norm3.forward
    h = norm1(x) if pre_norm else x
    keys = torch.cat([cache.keys, _heads(own, own.k_proj, h)], dim=2)  # (B, H, t + 1, d_head)
    values = torch.cat([cache.values, _heads(own, own.v_proj, h)], dim=2)
    x = x + _attended(own, h, keys, values, mask)
    x = x if pre_norm else norm1(x)
    if other is not None:
        norm2 = layer.norm2.forward
        x = x + _attended(other, norm2(x) if pre_norm else x, cache.memory_keys, cache.memory_values, memory_mask)
        x = x if pre_norm else norm2(x)
    x = x + layer.feed_forward.forward(norm3(x) if pre_norm else x)
    return x if pre_norm else norm3(x), cache._replace(keys=keys, values=values)


def _attended(part, h, keys, values, mask):
    queries = _heads(part, part.q_proj, h)
    if part.attention is fused_attention:
        sharing = part.n_heads != part.n_kv_heads
        context = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, scale=part.scale, enable_gqa=sharing
        )
    else:
        scale = {} if part.scale is None else {"scale": part.scale}
        context = part.attention(queries, keys, values, mask=mask, **scale)[0]
    return part.out_proj.forward(context.reshape(h.shape[0], 1, -1))


def _heads(part, linear, h):
    """(B, 1, d_model) -> (B, n_heads, 1, d_head)."""
    return linear.forward(h).view(h.shape[0], -1, 1, part.d_head)
