"""Windowed attention with global positions, in chunks: time and memory linear in the length.

Source: Beltagy et al. 2020 (Longformer), section 3.1, without dilation and with one set of projections for both kinds
of attention.
"""

import tensorflow as tf

from course_lib.checks import check_attention, check_window
from course_lib.models.blocks import AttentionOutput
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.efficient.blockwise import for_every_head
from course_lib.tensorflow.layers import lengths
from course_lib.tensorflow.serialization import made_by, serializable


@serializable
def windowed(window: int, global_positions=()):
    """An attention function whose queries see `window` tokens on each side and the global positions, which see all.

    The numbers are those of `attention` under `window_mask(window, T, S, global_positions)`; with `causal=True` the
    window reaches back alone. The T queries are the last of the S keys: it is for self-attention.

    Parameters
    ----------
    window : how many tokens a query sees on each side, beside its own; a size of w in the paper is w / 2 here
    global_positions : places among the keys, from 0 on, of every sequence; those that there are not do nothing

    Returns
    -------
    A function of q (..., T, d_k), k (..., S, d_k), v (..., S, d_v) and what else `attention` takes. Its weights are
    None, and it raises what `attention` raises, and ValueError for fewer keys than queries.

    Raises
    ------
    ValueError : a window or a position that is no whole number from 0 on.
    """
    check_window(window, global_positions)
    everywhere = sorted(set(global_positions))

    @made_by(windowed, window, tuple(global_positions))
    def attend(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
        q, k, v = tf.convert_to_tensor(q), tf.convert_to_tensor(k), tf.convert_to_tensor(v)
        mask = None if mask is None else tf.experimental.numpy.atleast_2d(tf.convert_to_tensor(mask))
        bias = None if bias is None else tf.experimental.numpy.atleast_2d(tf.convert_to_tensor(bias))
        check_attention(q.shape, k.shape, v.shape, mask, bias, dropout, scale, causal)
        check_window(window, global_positions, q.shape[-2], k.shape[-2])
        k, v = for_every_head(k, q), for_every_head(v, q)
        n_queries, n_keys = lengths(q)[-2], lengths(k)[-2]

        def of(rows, columns, seen):
            """Attention of queries (m, a) to keys (m, b), of which they see those in `seen` (m, a, b)."""
            allowed = seen if mask is None else seen & _picked(mask, rows, columns)
            added = None if bias is None else _picked(bias, rows, columns)
            q_rows, k_columns, v_columns = (
                tf.gather(x, places, axis=-2) for x, places in ((q, rows), (k, columns), (v, columns))
            )
            context = attention(q_rows, k_columns, v_columns, allowed, added, dropout, scale).output  # (..., m, a, d_v)
            return tf.reshape(context, (*lengths(q)[:-2], -1, v.shape[-1]))

        context = of(*_near(n_queries, n_keys, window, everywhere, causal))[..., :n_queries, :]
        if everywhere:
            of_all = of(*_far(n_queries, n_keys, everywhere, causal))  # (..., G, d_v)
            order = _order(n_queries, n_keys, everywhere)
            context = tf.gather(tf.concat([context, of_all], axis=-2), order, axis=-2)
        return AttentionOutput(tf.ensure_shape(context, (*q.shape[:-1], v.shape[-1])), None)

    return attend


def _near(n_queries, n_keys, window, everywhere, causal):
    """The queries in chunks, with the keys that any query of a chunk may see: rows (n, c), columns (n, G + b), seen.

    A chunk has as many queries as the window. Of its keys each query sees two thirds, half where the future is hidden.
    """
    size = 1 if isinstance(n_queries, int) and n_queries == 1 else max(window, 1)
    first = n_keys - n_queries  # the position of the first query
    starts = tf.range(0, n_queries, size)[:, None]
    rows = starts + tf.range(size)  # (n, c)
    beside = tf.range(-window, size + (0 if causal else window))  # (b,), counted from the first query of the chunk
    columns = first + starts + beside  # (n, b)
    distance = beside - tf.range(size)[:, None]  # (c, b)
    near = (distance >= -window) & (distance <= (0 if causal else window))
    real = (columns >= 0) & (columns < n_keys) & ~tf.reduce_any(columns[..., None] == everywhere, axis=-1)
    seen = near & real[:, None]  # (n, c, b)
    if everywhere:  # first, and once: a window that holds one has left it out
        wide = tf.constant(everywhere)
        past = wide < (first + rows[..., None] + 1 if causal else n_keys)
        past = tf.broadcast_to(past, (*lengths(rows), len(everywhere)))
        columns = tf.concat([tf.broadcast_to(wide, (lengths(columns)[0], len(everywhere))), columns], axis=-1)
        seen = tf.concat([past, seen], axis=-1)
    return tf.minimum(rows, n_queries - 1), tf.clip_by_value(columns, 0, n_keys - 1), seen


def _far(n_queries, n_keys, everywhere, causal):
    """The global positions among the queries, with all keys: rows (1, G), columns (1, S), seen (1, G, S)."""
    columns, everywhere = tf.range(n_keys), tf.constant(everywhere)
    seen = columns <= (everywhere[:, None] if causal else n_keys)
    # one that is no query is read and not used
    rows = tf.clip_by_value(everywhere - (n_keys - n_queries), 0, n_queries - 1)
    return rows[None], columns[None], tf.broadcast_to(seen, (1, everywhere.shape[0], n_keys))


def _order(n_queries, n_keys, everywhere):
    """Where the context of each query stands: at its own place, or behind all of them if it sees everything: (T,)."""
    place = tf.range(n_queries)
    is_global = place[:, None] + (n_keys - n_queries) == everywhere  # (T, G)
    behind = n_queries + tf.argmax(is_global, axis=-1, output_type=tf.int32)
    return tf.where(tf.reduce_any(is_global, axis=-1), behind, place)


def _picked(x, rows, columns):
    """Of a mask or bias (..., T or 1, S or 1) the part for rows (m, a), columns (m, b): (..., m, a or 1, b or 1)."""
    rows, columns = rows[..., None], columns[..., None, :]
    rows = rows[:, :1] * 0 if x.shape[-2] == 1 else rows
    columns = columns[..., :1] * 0 if x.shape[-1] == 1 else columns
    *lead, n_rows, n_columns = lengths(x)
    flat = tf.reshape(x, (*lead, n_rows * n_columns))
    return tf.gather(flat, rows * n_columns + columns, axis=-1)
