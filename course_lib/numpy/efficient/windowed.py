"""Windowed attention with global positions, in chunks: time and memory linear in the length.

Source: Beltagy et al. 2020 (Longformer), section 3.1, without dilation and with one set of projections for both kinds
of attention.
"""

import numpy as np

from course_lib.checks import check_attention, check_window
from course_lib.models.blocks import AttentionOutput
from course_lib.models.position_tables import made_by
from course_lib.numpy.attention import attention
from course_lib.numpy.efficient.blockwise import for_every_head


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
    everywhere = np.unique(np.asarray(global_positions, dtype=int))

    @made_by(windowed, window, tuple(global_positions))
    def attend(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
        q, k, v = np.asarray(q), np.asarray(k), np.asarray(v)
        mask = None if mask is None else np.atleast_2d(mask)
        bias = None if bias is None else np.atleast_2d(bias)
        check_attention(q.shape, k.shape, v.shape, mask, bias, dropout, scale, causal)
        check_window(window, global_positions, q.shape[-2], k.shape[-2])
        k, v = for_every_head(k, q), for_every_head(v, q)
        n_queries, n_keys = q.shape[-2], k.shape[-2]

        def of(rows, columns, seen):
            """Attention of queries (m, a) to keys (m, b), of which they see those in `seen` (m, a, b)."""
            allowed = seen if mask is None else seen & _picked(mask, rows, columns)
            added = None if bias is None else _picked(bias, rows, columns)
            q_rows, k_columns, v_columns = q[..., rows, :], k[..., columns, :], v[..., columns, :]
            context = attention(q_rows, k_columns, v_columns, allowed, added, dropout, scale).output  # (..., m, a, d_v)
            return context.reshape(*context.shape[:-3], -1, context.shape[-1])

        context = of(*_near(n_queries, n_keys, window, everywhere, causal))[..., :n_queries, :]
        if len(everywhere):
            of_all = of(*_far(n_queries, n_keys, everywhere, causal))  # (..., G, d_v)
            context = np.concatenate([context, of_all], axis=-2)[..., _order(n_queries, n_keys, everywhere), :]
        return AttentionOutput(context, None)

    return attend


def _near(n_queries, n_keys, window, everywhere, causal):
    """The queries in chunks, with the keys that any query of a chunk may see: rows (n, c), columns (n, G + b), seen.

    A chunk has as many queries as the window. Of its keys each query sees two thirds, half where the future is hidden.
    """
    size = 1 if n_queries == 1 else max(window, 1)
    first = n_keys - n_queries  # the position of the first query
    starts = np.arange(0, n_queries, size)[:, None]
    rows = starts + np.arange(size)  # (n, c)
    beside = np.arange(-window, size + (0 if causal else window))  # (b,), counted from the first query of the chunk
    columns = first + starts + beside  # (n, b)
    distance = beside - np.arange(size)[:, None]  # (c, b)
    near = (distance >= -window) & (distance <= (0 if causal else window))
    real = (columns >= 0) & (columns < n_keys) & ~np.isin(columns, everywhere)
    seen = near & real[:, None]  # (n, c, b)
    if len(everywhere):  # first, and once: a window that holds one has left it out
        past = everywhere < (first + rows[..., None] + 1 if causal else n_keys)
        past = np.broadcast_to(past, (*rows.shape, len(everywhere)))
        columns = np.concatenate([np.broadcast_to(everywhere, (len(columns), len(everywhere))), columns], axis=-1)
        seen = np.concatenate([past, seen], axis=-1)
    return rows.clip(max=n_queries - 1), columns.clip(0, n_keys - 1), seen


def _far(n_queries, n_keys, everywhere, causal):
    """The global positions among the queries, with all keys: rows (1, G), columns (1, S), seen (1, G, S)."""
    columns = np.arange(n_keys)
    seen = columns <= (everywhere[:, None] if causal else n_keys)
    rows = (everywhere - (n_keys - n_queries)).clip(0, n_queries - 1)  # one that is no query is read and not used
    return rows[None], columns[None], np.broadcast_to(seen, (1, len(everywhere), n_keys))


def _order(n_queries, n_keys, everywhere):
    """Where the context of each query stands: at its own place, or behind all of them if it sees everything: (T,)."""
    is_global = np.arange(n_keys - n_queries, n_keys)[:, None] == everywhere  # (T, G)
    return np.where(is_global.any(axis=-1), n_queries + is_global.argmax(axis=-1), np.arange(n_queries))


def _picked(x, rows, columns):
    """Of a mask or bias (..., T or 1, S or 1) the part for rows (m, a), columns (m, b): (..., m, a or 1, b or 1)."""
    rows, columns = rows[..., None], columns[..., None, :]
    return x[..., rows if x.shape[-2] > 1 else rows[:, :1] * 0, columns if x.shape[-1] > 1 else columns[..., :1] * 0]
