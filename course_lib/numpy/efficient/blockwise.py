"""Exact attention by blocks with a running softmax, FlashAttention's algorithm: memory linear in the length.

Sources: Dao et al. 2022, algorithm 1 and appendix B; the order of the loops is that of Dao 2023, section 3.1.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from course_lib.checks import check_attention, check_count
from course_lib.models.blocks import AttentionOutput
from course_lib.models.position_tables import made_by


def blockwise_attention(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
    """The numbers of `attention` without the (T, S) scores: they are formed and forgotten a block at a time.

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
        q, k, v = np.asarray(q), np.asarray(k), np.asarray(v)
        mask = None if mask is None else np.atleast_2d(mask)
        bias = None if bias is None else np.atleast_2d(bias)
        check_attention(q.shape, k.shape, v.shape, mask, bias, dropout, scale, causal)
        if bias is not None:  # minus infinity hides; other numbers stay finite in the dtype of the scores
            lowest = np.finfo(np.result_type(q, np.float16)).min / 4
            bias = np.where(bias == -np.inf, bias, np.maximum(bias, lowest)).astype(lowest.dtype)
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        seed = np.random.randint(2**31) if dropout else 0
        context, _, _ = forward(q, k, v, Tiles(mask, bias, scale, causal, dropout, seed, block_size))
        return AttentionOutput(context, None)

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
        if (self.causal and columns.start >= first + rows.stop) or (mask is not None and not mask.any()):
            return None
        q, k = q[..., rows, :], k[..., columns, :]
        scores = self.scale * (q @ for_every_head(k, q).swapaxes(-1, -2))  # (..., rows, columns)
        if self.bias is not None:
            scores += _block(self.bias, rows, columns)
        if mask is not None:
            np.copyto(scores, -np.inf, where=~mask)
        if self.causal:
            t, s = np.arange(rows.start, rows.stop)[:, None], np.arange(columns.start, columns.stop)
            np.copyto(scores, -np.inf, where=s > first + t)
        return scores

    def kept(self, weights, rows, columns):
        """The factors of a block's weights: 0 for those that fall, 1 / (1 - dropout) for the others."""
        if not self.dropout:
            return 1.0
        luck = np.random.default_rng((self.seed, rows.start, columns.start))
        return (luck.random(weights.shape) >= self.dropout) / (1 - self.dropout)


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
        dtype = np.result_type(q, k, v)
        context, total = np.zeros((*shape, v.shape[-1]), dtype), np.zeros((*shape, 1), dtype)
        top = np.full((*shape, 1), np.finfo(dtype).min, dtype)
        for columns in tiles.slices(k.shape[-2]):
            scores = tiles.scores(q, k, rows, columns)
            if scores is None:
                continue
            higher = np.maximum(top, scores.max(axis=-1, keepdims=True))
            exp = np.exp(scores - higher)
            before = np.exp(top - higher)  # what was summed up so far had `top` subtracted, and not `higher`
            total = before * total + exp.sum(axis=-1, keepdims=True)
            values = for_every_head(v[..., columns, :], q)
            context = before * context + (exp * tiles.kept(exp, rows, columns)) @ values
            top = higher
        done.append((context / np.where(total > 0, total, 1), top, total))
    return tuple(np.concatenate(parts, axis=-2) for parts in zip(*done, strict=True))


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
    row_sums = (d_context * context).sum(axis=-1, keepdims=True)
    total = np.where(total > 0, total, 1)
    d_q, d_k, d_v = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    d_bias = None if tiles.bias is None else np.zeros(tiles.bias.shape, q.dtype)
    for columns in tiles.slices(k.shape[-2]):
        keys, values = (for_every_head(x[..., columns, :], q) for x in (k, v))
        for rows in tiles.slices(q.shape[-2]):
            scores = tiles.scores(q, k, rows, columns)
            if scores is None:
                continue
            weights = np.exp(scores - top[..., rows, :]) / total[..., rows, :]
            kept, d_rows = tiles.kept(weights, rows, columns), d_context[..., rows, :]
            d_weights = (d_rows @ values.swapaxes(-1, -2)) * kept
            d_scores = weights * (d_weights - row_sums[..., rows, :])
            d_q[..., rows, :] += tiles.scale * (d_scores @ keys)
            d_k[..., columns, :] += _summed_as(tiles.scale * (d_scores.swapaxes(-1, -2) @ q[..., rows, :]), k)
            d_v[..., columns, :] += _summed_as((weights * kept).swapaxes(-1, -2) @ d_rows, v)
            if d_bias is not None:
                part = _block(d_bias, rows, columns)
                part += _summed_over(d_scores, part.shape)
    return d_q, d_k, d_v, d_bias


def _block(x, rows, columns):
    """The part of a mask or a bias that belongs to a block: all of an axis of 1."""
    if x is None:
        return None
    return x[..., rows if x.shape[-2] > 1 else slice(None), columns if x.shape[-1] > 1 else slice(None)]


def for_every_head(x, q):
    """Keys or values of fewer heads than the queries, repeated; others as they are."""
    return x if x.shape[:-2] == q.shape[:-2] else x.repeat(q.shape[-3] // x.shape[-3], axis=-3)


def _summed_as(slopes, x):
    """The gradient of what `for_every_head` repeated: summed over the heads that share one."""
    if slopes.shape[:-2] == x.shape[:-2]:
        return slopes
    n_heads, n_sharing = x.shape[-3], slopes.shape[-3] // x.shape[-3]
    return slopes.reshape(*slopes.shape[:-3], n_heads, n_sharing, *slopes.shape[-2:]).sum(axis=-3)


def _summed_over(slopes, shape):
    """The gradient of what was broadcast from `shape`: its share of each score, summed."""
    slopes = slopes.sum(axis=tuple(range(slopes.ndim - len(shape))))
    return slopes.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)
