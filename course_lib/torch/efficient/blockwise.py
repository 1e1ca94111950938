"""Exact attention by blocks with a running softmax, FlashAttention's algorithm: memory linear in the length.

Sources: Dao et al. 2022, algorithm 1 and appendix B; the order of the loops is that of Dao 2023, section 3.1.
"""

import math
from typing import Any, NamedTuple

import torch

from course_lib.checks import check_attention, check_count
from course_lib.models.blocks import AttentionOutput
from course_lib.models.position_tables import made_by
from course_lib.torch.layers import at_least_float32, values_of


def blockwise_attention(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
    """The numbers of `attention` without the (T, S) scores: they are formed and forgotten a block at a time.

    Sums are made in float32 at least, unless autocast decides otherwise. A compiled or exported program has the lengths
    of its example.

    Parameters, errors and output as for `attention`; the weights are None.
    """
    return blockwise()(q, k, v, mask, bias, dropout, scale, causal)


def blockwise(block_size: int = 128):
    """`blockwise_attention` with blocks of another size.

    Parameters
    ----------
    block_size : queries and keys of a block; what a block needs grows with its square, and beyond it nothing changes

    Returns
    -------
    A function of q (..., T, d_k), k (..., S, d_k), v (..., S, d_v) and what else `attention` takes.

    Raises
    ------
    ValueError : a size below one.
    """
    check_count("block_size", block_size)

    @made_by(blockwise, block_size)
    def attend(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
        mask = None if mask is None else torch.atleast_2d(torch.as_tensor(mask, device=q.device))
        bias = None if bias is None else torch.atleast_2d(torch.as_tensor(bias, device=q.device))
        check_attention(q.shape, k.shape, v.shape, mask, bias, dropout, scale, causal)
        if bias is not None:  # minus infinity hides; other numbers stay finite in the dtype of the scores
            bias = at_least_float32(bias.to(q.dtype))
            bias = torch.where(bias == -math.inf, bias, bias.clamp(min=torch.finfo(bias.dtype).min / 4))
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        tiles = Tiles(None, None, scale, causal, dropout, 0, block_size)
        apply = torch.compiler.disable(_Attend.apply) if dropout else _Attend.apply  # no compiler knows generators
        context = apply(*map(at_least_float32, (q, k, v)), mask, bias, tiles)
        return AttentionOutput(context.to(q.dtype), None)

    return attend


class Tiles(NamedTuple):
    """What the blocks of one attention share; a block is a slice of the queries, rows, and one of the keys, columns."""

    mask: Any  # boolean, (..., T or 1, S or 1); None hides nothing
    bias: Any  # numbers, (..., T or 1, S or 1); None adds nothing
    scale: float  # what q k^T is multiplied by
    causal: bool  # whether the future is hidden; the queries are the last of the keys
    dropout: float
    seed: int  # which weights fall: the backward pass must drop those of the forward pass
    block_size: int

    def slices(self, length: int) -> list:
        """The blocks of `length` queries or keys; the last one may be shorter."""
        return [slice(i, min(i + self.block_size, length)) for i in range(0, max(length, 1), self.block_size)]

    def scores(self, q, k, rows, columns):
        """scale q k^T + bias of one block, minus infinity where hidden; None for a block that is hidden whole."""
        first = k.shape[-2] - q.shape[-2]  # the position of the first query
        mask = _block(self.mask, rows, columns)
        if (self.causal and columns.start >= first + rows.stop) or (mask is not None and _hides_all(mask)):
            return None
        q, k = q[..., rows, :], k[..., columns, :]
        scores = self.scale * (q @ for_every_head(k, q).transpose(-1, -2))  # (..., rows, columns)
        if self.bias is not None:
            scores = scores + _block(self.bias, rows, columns)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        if self.causal:
            t = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
            s = torch.arange(columns.start, columns.stop, device=q.device)
            scores = scores.masked_fill(s > first + t, -math.inf)
        return scores

    def kept(self, weights, rows, columns):
        """The factors of a block's weights: 0 for those that fall, 1 / (1 - dropout) for the others."""
        if not self.dropout:
            return 1.0
        luck = torch.Generator(weights.device).manual_seed(hash((self.seed, rows.start, columns.start)) % 2**62)
        drawn = torch.rand(weights.shape, generator=luck, device=weights.device)
        return (drawn >= self.dropout).to(weights.dtype) / (1 - self.dropout)


def forward(q, k, v, tiles):
    """A block of queries after the other, each along all blocks of keys.

    Parameters
    ----------
    q, k, v : as for `attention`
    tiles : a `Tiles`

    Returns
    -------
    context (..., T, d_v); and of each query, for `backward`, its largest score and the sum of exp(score - largest)
    over its keys, (..., T, 1) each, 0 for one with nothing to attend to.
    """
    done = []
    for rows in tiles.slices(q.shape[-2]):
        shape = (*q.shape[:-2], rows.stop - rows.start)
        context, total = q.new_zeros(*shape, v.shape[-1]), q.new_zeros(*shape, 1)
        top = q.new_full((*shape, 1), torch.finfo(q.dtype).min)
        for columns in tiles.slices(k.shape[-2]):
            scores = tiles.scores(q, k, rows, columns)
            if scores is None:
                continue
            higher = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
            exp = torch.exp(scores - higher)
            before = torch.exp(top - higher)  # what was summed up so far had `top` subtracted, and not `higher`
            total = before * total + exp.sum(dim=-1, keepdim=True)
            values = for_every_head(v[..., columns, :], q)
            context = before * context + (exp * tiles.kept(exp, rows, columns)) @ values
            top = higher
        done.append((context / torch.where(total > 0, total, 1), top, total))
    return tuple(torch.cat(parts, dim=-2) for parts in zip(*done, strict=True))


def backward(d_context, q, k, v, context, top, total, tiles):
    """The gradients, with the weights of each block computed again (Dao et al. 2022, algorithm 4).

    Parameters
    ----------
    d_context : the gradient by the context, (..., T, d_v)
    q, k, v, tiles : as for `forward`
    context, top, total : what it returned

    Returns
    -------
    The gradients by q, k, v and the bias, of their shapes; the last one is None without a bias.
    """
    # the gradient of softmax needs the sum over s of w_ts dL/dw_ts, which is this product (appendix B.2)
    row_sums = (d_context * context).sum(dim=-1, keepdim=True)
    total = torch.where(total > 0, total, 1)
    d_q, d_k, d_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    d_bias = None if tiles.bias is None else torch.zeros_like(tiles.bias)
    for columns in tiles.slices(k.shape[-2]):
        keys, values = (for_every_head(x[..., columns, :], q) for x in (k, v))
        for rows in tiles.slices(q.shape[-2]):
            scores = tiles.scores(q, k, rows, columns)
            if scores is None:
                continue
            weights = torch.exp(scores - top[..., rows, :]) / total[..., rows, :]
            kept, d_rows = tiles.kept(weights, rows, columns), d_context[..., rows, :]
            d_weights = (d_rows @ values.transpose(-1, -2)) * kept
            d_scores = weights * (d_weights - row_sums[..., rows, :])
            d_q[..., rows, :] += tiles.scale * (d_scores @ keys)
            d_k[..., columns, :] += _summed_as(tiles.scale * (d_scores.transpose(-1, -2) @ q[..., rows, :]), k)
            d_v[..., columns, :] += _summed_as((weights * kept).transpose(-1, -2) @ d_rows, v)
            if d_bias is not None:
                part = _block(d_bias, rows, columns)
                part += d_scores.sum_to_size(part.shape)
    return d_q, d_k, d_v, d_bias


class _Attend(torch.autograd.Function):
    """`forward` with `backward` as its gradient: of the (T, S) scores it keeps nothing."""

    @staticmethod
    def forward(ctx, q, k, v, mask, bias, tiles):
        ctx.tiles = tiles._replace(seed=int(torch.randint(2**62, ()))) if tiles.dropout else tiles
        found = forward(q, k, v, ctx.tiles._replace(mask=mask, bias=bias))
        ctx.save_for_backward(q, k, v, *found, mask, bias)
        return found[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_context):
        *kept, mask, bias = ctx.saved_tensors
        d_q, d_k, d_v, d_bias = backward(d_context, *kept, ctx.tiles._replace(mask=mask, bias=bias))
        return d_q, d_k, d_v, None, d_bias, None


def _block(x, rows, columns):
    """The part of a mask or a bias that belongs to a block: all of an axis of 1."""
    if x is None:
        return None
    return x[..., rows if x.shape[-2] > 1 else slice(None), columns if x.shape[-1] > 1 else slice(None)]


def _hides_all(mask) -> bool:
    """Whether a mask is False everywhere; False too where looking is not free."""
    return values_of(mask, lambda: not bool(mask.any()), False)


def for_every_head(x, q):
    """Keys or values of fewer heads than the queries, repeated; others as they are."""
    return x if x.shape[:-2] == q.shape[:-2] else x.repeat_interleave(q.shape[-3] // x.shape[-3], dim=-3)


def _summed_as(slopes, x):
    """The gradient of what `for_every_head` repeated: summed over the heads that share one."""
    if slopes.shape[:-2] == x.shape[:-2]:
        return slopes
    return slopes.unflatten(-3, (x.shape[-3], slopes.shape[-3] // x.shape[-3])).sum(dim=-3)
