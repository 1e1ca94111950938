"""Masks that say who may attend to whom: boolean, True = may attend, combined with `&`.

Every mask broadcasts to (B, H, T, S): batch, heads, queries, keys. PyTorch's own `nn.MultiheadAttention`
uses the opposite sign (True = hidden), so convert with `~` at that border and nowhere else.

These are the functions for NumPy; `course_lib.torch` and `course_lib.tensorflow` have them for their tensors.
"""

import numpy as np

from course_lib.checks import check_causal, check_window


def padding_mask(ids, pad_id: int = 0):
    """Hide the padding of a batch: no query may attend to a key that is padding.

    Parameters
    ----------
    ids : integer array or tensor of any of the three frameworks, shape (B, S)
    pad_id : the id of the padding token

    Returns
    -------
    Boolean array or tensor of the same framework, shape (B, 1, 1, S), True at real tokens.

    Raises
    ------
    ValueError : `ids` does not have the two axes (B, S).
    """
    if len(ids.shape) != 2:
        raise ValueError(f"ids must have shape (B, S), got {tuple(ids.shape)}")
    return (ids != pad_id)[:, None, None, :]


def causal_mask(n_queries: int, n_keys: int | None = None) -> np.ndarray:
    """Hide the future: query t may attend to key s when s does not come after t.

    When there are more keys than queries, the queries are the last ones: the first query is at position
    `n_keys - n_queries`, as in incremental decoding. Source: Vaswani et al. 2017, section 3.2.3.

    Parameters
    ----------
    n_queries, n_keys : lengths T and S; S defaults to T

    Returns
    -------
    Boolean NumPy array, shape (1, 1, T, S). Every framework's attention takes it as it is; to combine it with a
    mask of a framework, take `causal_mask` from there: `from course_lib.torch import causal_mask`.

    Raises
    ------
    ValueError : fewer keys than queries.
    """
    n_keys = n_queries if n_keys is None else n_keys
    check_causal(n_queries, n_keys)
    t = np.arange(n_keys - n_queries, n_keys)[:, None]
    s = np.arange(n_keys)[None, :]
    return (s <= t)[None, None]


def window_mask(window: int, n_queries: int, n_keys: int | None = None, global_positions=()) -> np.ndarray:
    """Hide what is far away: query t may attend to key s when they are `window` tokens apart at most.

    A global position attends to every key, and every query to it. With `causal_mask`, the window reaches back alone.
    When there are more keys than queries, the queries are the last ones, as in `causal_mask`.
    Source: Beltagy et al. 2020, section 3.1, whose window size w counts both sides, w = 2 `window`.

    Parameters
    ----------
    window : how many tokens a query sees on each side, beside its own
    n_queries, n_keys : lengths T and S; S defaults to T
    global_positions : places among the keys, from 0 on; those that there are not do nothing

    Returns
    -------
    Boolean NumPy array, shape (1, 1, T, S).

    Raises
    ------
    ValueError : fewer keys than queries, a window or a position that is no whole number from 0 on.
    """
    n_keys = n_queries if n_keys is None else n_keys
    check_window(window, global_positions, n_queries, n_keys)
    t = np.arange(n_keys - n_queries, n_keys)[:, None]
    s = np.arange(n_keys)[None, :]
    return ((abs(s - t) <= window) | np.isin(s, global_positions) | np.isin(t, global_positions))[None, None]


def real_tokens(mask, shape):
    """Which tokens a mask of a batch takes for real: those that any query of any head may attend to.

    Parameters
    ----------
    mask : boolean, broadcastable to (B, H, T, S), such as `padding_mask(ids)`; None hides nothing
    shape : of the batch, (B, S)

    Returns
    -------
    Boolean, shape (B, S); None for None.
    """
    if mask is None:
        return None
    mask = np.asarray(mask)
    mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    return np.broadcast_to(mask.any(axis=(1, 2)), shape)
