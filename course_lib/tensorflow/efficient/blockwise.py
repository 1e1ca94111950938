"""Exact attention by blocks with a running softmax, FlashAttention's algorithm: memory linear in the length.

Sources: Dao et al. 2022, algorithm 1 and appendix B; the order of the loops is that of Dao 2023, section 3.1.
"""

import math
from typing import Any, NamedTuple

import tensorflow as tf

from course_lib.checks import check_attention, check_count
from course_lib.models.blocks import AttentionOutput
from course_lib.tensorflow.layers import at_least_float32, lengths, random_seed
from course_lib.tensorflow.serialization import made_by, serializable


@serializable
def blockwise_attention(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
    """The numbers of `attention` without the (T, S) scores: they are formed and forgotten a block at a time.

    Sums are made in float32 at least.

    Parameters, errors and output as for `attention`; the weights are None.
    """
    return blockwise()(q, k, v, mask, bias, dropout, scale, causal)


@serializable
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
        q, k, v = tf.convert_to_tensor(q), tf.convert_to_tensor(k), tf.convert_to_tensor(v)
        mask = None if mask is None else tf.experimental.numpy.atleast_2d(tf.convert_to_tensor(mask))
        bias = None if bias is None else tf.experimental.numpy.atleast_2d(tf.convert_to_tensor(bias))
        check_attention(q.shape, k.shape, v.shape, mask, bias, dropout, scale, causal)
        if bias is not None:  # minus infinity hides; other numbers stay finite in the dtype of the scores
            bias = at_least_float32(tf.cast(bias, q.dtype))
            bias = tf.where(bias == -math.inf, bias, tf.maximum(bias, bias.dtype.min / 4))
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        tiles = Tiles(mask, bias, scale, causal, dropout, random_seed() if dropout else None, block_size)
        context = _attend(*map(at_least_float32, (q, k, v)), tiles)
        return AttentionOutput(tf.cast(context, q.dtype), None)

    return attend


class Tiles(NamedTuple):
    """What the blocks of one attention share; a block is the i-th of the queries and the j-th of the keys."""

    mask: Any  # boolean, (..., T or 1, S or 1); None hides nothing
    bias: Any  # numbers, (..., T or 1, S or 1); None adds nothing
    scale: float  # what q k^T is multiplied by
    causal: bool  # whether the future is hidden; the queries are the last of the keys
    dropout: float
    seed: Any  # (2,) which weights fall: the backward pass must drop those of the forward pass
    block_size: int


class _Grid:
    """Queries, keys, values, mask and bias cut into blocks, all of one size: XLA knows no others. Zeros fill the last.

    Parameters
    ----------
    q, k, v : as for `attention`
    tiles : a `Tiles`
    """

    def __init__(self, q, k, v, tiles):
        self.tiles, (self.n_queries, self.n_keys) = tiles, (lengths(q)[-2], lengths(k)[-2])
        # a length that is not known may be any
        n_rows, n_columns = (min(x.shape[-2] or tiles.block_size, tiles.block_size) for x in (q, k))
        self.n_rows, self.n_columns = n_rows, n_columns
        self.q, self.k, self.v = _cut(q, n_rows), _cut(k, n_columns), _cut(v, n_columns)  # (n, ..., block, d)
        self.mask, self.bias = self.cut(tiles.mask), self.cut(tiles.bias)
        self.across, self.down = -(-self.n_keys // n_columns), -(-self.n_queries // n_rows)  # how many blocks

    def cut(self, x):
        """A mask or a bias in blocks: (blocks of queries or 1, of keys or 1, ..., queries or 1, keys or 1)."""
        if x is None:
            return None
        x = _cut(x, 1 if x.shape[-2] == 1 else self.n_rows)  # (i, ..., rows, S)
        x = _cut(tf.linalg.matrix_transpose(x), 1 if x.shape[-1] == 1 else self.n_columns)  # (j, i, ..., columns, rows)
        return tf.linalg.matrix_transpose(tf.experimental.numpy.swapaxes(x, 0, 1))

    def block(self, whole, cut, i, j):
        """Of a mask or a bias, and of what `cut` made of it, the part that belongs to a block."""
        return cut[0 if whole.shape[-2] == 1 else i][0 if whole.shape[-1] == 1 else j]

    def is_seen(self, i, j):
        """Whether any query of a block may see any key of it."""
        seen = tf.constant(True)
        if self.tiles.causal:
            seen = j * self.n_columns < self.n_keys - self.n_queries + (i + 1) * self.n_rows
        return seen if self.mask is None else seen & tf.reduce_any(self.block(self.tiles.mask, self.mask, i, j))

    def scores(self, i, j):
        """scale q k^T + bias of one block, minus infinity where hidden."""
        q = self.q[i]
        scores = self.tiles.scale * tf.matmul(q, for_every_head(self.k[j], q), transpose_b=True)  # (..., rows, columns)
        if self.bias is not None:
            scores += self.block(self.tiles.bias, self.bias, i, j)
        t, s = i * self.n_rows + tf.range(self.n_rows)[:, None], j * self.n_columns + tf.range(self.n_columns)
        seen = s < self.n_keys
        if self.tiles.causal:
            seen &= s <= self.n_keys - self.n_queries + t
        if self.mask is not None:
            seen &= self.block(self.tiles.mask, self.mask, i, j)
        return tf.where(seen, scores, tf.constant(-math.inf, scores.dtype))

    def kept(self, weights, i, j):
        """The factors of a block's weights: 0 for those that fall, 1 / (1 - dropout) for the others."""
        if not self.tiles.dropout:
            return tf.ones((), weights.dtype)
        luck = tf.random.stateless_uniform(tf.shape(weights), self.tiles.seed + tf.stack([i, j]), dtype=weights.dtype)
        return tf.cast(luck >= self.tiles.dropout, weights.dtype) / (1 - self.tiles.dropout)


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
    grid = _Grid(q, k, v, tiles)

    def along_the_keys(i):
        def step(j, context, top, total):
            def seen():
                scores = grid.scores(i, j)
                higher = tf.maximum(top, tf.reduce_max(scores, axis=-1, keepdims=True))
                exp = tf.exp(scores - higher)
                before = tf.exp(top - higher)  # what was summed up so far had `top` subtracted, and not `higher`
                values = for_every_head(grid.v[j], q)
                return (
                    before * context + tf.matmul(exp * grid.kept(exp, i, j), values),
                    higher,
                    before * total + tf.reduce_sum(exp, axis=-1, keepdims=True),
                )

            return j + 1, *tf.cond(grid.is_seen(i, j), seen, lambda: (context, top, total))

        zero = tf.zeros_like(grid.q[i][..., :1])  # (..., rows, 1)
        start = (0, zero * tf.zeros(v.shape[-1], v.dtype), zero + zero.dtype.min, zero)
        _, context, top, total = _loop(grid.across, step, start)
        return context / tf.where(total > 0, total, 1), top, total

    done = tf.map_fn(along_the_keys, tf.range(grid.down), fn_output_signature=(q.dtype,) * 3, parallel_iterations=1)
    return tuple(_joined(part, q, d) for part, d in zip(done, (v.shape[-1], 1, 1), strict=True))


def backward(d_context, q, k, v, context, top, total, tiles):
    """The gradients, with the weights of each block computed again (Dao et al. 2022, algorithm 4).

    They are computed twice, for the queries and for the keys: a graph has no array to add to in place.

    Parameters
    ----------
    d_context : the gradient by the context, (..., T, d_v)
    q, k, v, tiles : as for `forward`
    context, top, total : what it returned

    Returns
    -------
    The gradients by q, k, v and the bias, of their shapes; the last one is None without a bias.
    """
    grid = _Grid(q, k, v, tiles)
    # the gradient of softmax needs the sum over s of w_ts dL/dw_ts, which is this product (appendix B.2)
    row_sums = tf.reduce_sum(d_context * context, axis=-1, keepdims=True)
    row_sums, top, total, d_context = (_cut(x, grid.n_rows) for x in (row_sums, top, total, d_context))
    total = tf.where(total > 0, total, 1)

    def slopes(i, j):
        """The weights of a block after dropout, and the gradient by its scores."""
        weights = tf.exp(grid.scores(i, j) - top[i]) / total[i]
        kept = grid.kept(weights, i, j)
        d_weights = tf.matmul(d_context[i], for_every_head(grid.v[j], q), transpose_b=True) * kept
        return weights * kept, weights * (d_weights - row_sums[i])

    def of_queries(i):
        def step(j, d_q):
            def seen():
                return d_q + tiles.scale * tf.matmul(slopes(i, j)[1], for_every_head(grid.k[j], q))

            return j + 1, tf.cond(grid.is_seen(i, j), seen, lambda: d_q)

        return _loop(grid.across, step, (0, tf.zeros_like(grid.q[i])))[1]

    def of_keys(j):
        of_each = grid.bias is not None and tiles.bias.shape[-2] != 1  # whether the bias has a row for each query
        no_bias = tf.zeros((), q.dtype) if grid.bias is None else tf.zeros_like(grid.block(tiles.bias, grid.bias, 0, j))

        def step(i, d_k, d_v, d_bias):
            def seen():
                weights, d_scores = slopes(i, j)
                d_keys = tiles.scale * tf.matmul(d_scores, grid.q[i], transpose_a=True)
                d_values = tf.matmul(weights, d_context[i], transpose_a=True)
                added = no_bias if grid.bias is None else _summed_over(d_scores, no_bias)
                return d_k + _summed_as(d_keys, d_k), d_v + _summed_as(d_values, d_v), added

            d_k, d_v, added = tf.cond(grid.is_seen(i, j), seen, lambda: (d_k, d_v, no_bias))
            return i + 1, d_k, d_v, d_bias.write(i, added) if of_each else d_bias + added

        kept = tf.TensorArray(q.dtype, grid.down, element_shape=no_bias.shape) if of_each else no_bias
        start = (0, tf.zeros_like(grid.k[j]), tf.zeros_like(grid.v[j]), kept)
        _, d_k, d_v, d_bias = _loop(grid.down, step, start)
        return d_k, d_v, d_bias.stack() if of_each else d_bias[None]

    d_q = tf.map_fn(of_queries, tf.range(grid.down), fn_output_signature=q.dtype, parallel_iterations=1)
    d_k, d_v, d_bias = tf.map_fn(
        of_keys, tf.range(grid.across), fn_output_signature=(q.dtype,) * 3, parallel_iterations=1
    )
    if grid.bias is not None:  # (j, i or 1, ..., rows or 1, columns or 1)
        if tiles.bias.shape[-1] == 1:
            d_bias = tf.reduce_sum(d_bias, axis=0, keepdims=True)
        d_bias = tf.linalg.matrix_transpose(_joined_blocks(tf.linalg.matrix_transpose(d_bias)))
        d_bias = _joined_blocks(d_bias)[..., : lengths(tiles.bias)[-2], : lengths(tiles.bias)[-1]]
    joined = (_joined(part, x, x.shape[-1]) for part, x in ((d_q, q), (d_k, k), (d_v, v)))
    return *joined, None if grid.bias is None else d_bias


def _attend(q, k, v, tiles):
    """The context by `forward`, with `backward` as its gradient: of the (T, S) scores it keeps nothing."""

    @tf.custom_gradient
    def attend(q, k, v, *bias):
        found = forward(q, k, v, tiles)

        def gradient(d_context):
            return backward(d_context, q, k, v, *found, tiles)[: 3 + len(bias)]

        return found[0], gradient

    return attend(q, k, v) if tiles.bias is None else attend(q, k, v, tiles.bias)


def _loop(n, step, start):
    """The variables of a loop after n steps, the first of which counts them."""
    return tf.while_loop(lambda i, *_: i < n, step, start, maximum_iterations=n, parallel_iterations=1)


def _cut(x, size):
    """(..., N, d) -> (n, ..., size, d), with zeros after the end."""
    *lead, n, d = lengths(x)
    padded = tf.pad(x, [(0, 0)] * len(lead) + [(0, -n % size), (0, 0)])
    return tf.experimental.numpy.moveaxis(tf.reshape(padded, (*lead, -1, size, d)), len(lead), 0)


def _joined_blocks(blocks):
    """(n, ..., size, d) -> (..., n size, d): what `_cut` has cut, with its end."""
    blocks = tf.experimental.numpy.moveaxis(blocks, 0, -3)
    *lead, n, size, d = lengths(blocks)
    return tf.reshape(blocks, (*lead, n * size, d))


def _joined(blocks, like, d):
    """(n, ..., size, d) -> (..., N, d), of as many vectors as `like` has."""
    whole = _joined_blocks(blocks)[..., : lengths(like)[-2], :]
    return tf.ensure_shape(whole, (*like.shape[:-1], d))


def for_every_head(x, q):
    """Keys or values of fewer heads than the queries, repeated; others as they are."""
    if len(q.shape) < 4 or q.shape[-3] == x.shape[-3]:
        return x
    return tf.repeat(x, q.shape[-3] // x.shape[-3], axis=-3)


def _summed_as(slopes, x):
    """The gradient of what `for_every_head` repeated: summed over the heads that share one."""
    if len(x.shape) < 3 or slopes.shape[-3] == x.shape[-3]:
        return slopes
    *lead, n_heads, length, d = lengths(slopes)
    shared = tf.reshape(slopes, (*lead, x.shape[-3], n_heads // x.shape[-3], length, d))
    return tf.reduce_sum(shared, axis=-3)


def _summed_over(slopes, like):
    """The gradient of what was broadcast from the shape of `like`: its share of each score, summed."""
    _, axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(slopes), s1=tf.shape(like))
    return tf.reshape(tf.reduce_sum(slopes, axes), tf.shape(like))
