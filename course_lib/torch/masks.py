"""Masks that say who may attend to whom: boolean tensors, True = may attend, combined with `&` in either order."""

import torch

from course_lib import masks
from course_lib.checks import check_causal, check_window
from course_lib.torch.layers import tensor_of


def padding_mask(ids, pad_id: int = 0):
    """Hide the padding of a batch: no query may attend to a key that is padding.

    Parameters
    ----------
    ids : integers, shape (B, S)
    pad_id : the id of the padding token

    Returns
    -------
    Boolean tensor on the device of the ids, shape (B, 1, 1, S), True at real tokens.

    Raises
    ------
    ValueError : `ids` does not have the two axes (B, S).
    """
    return masks.padding_mask(tensor_of(ids), pad_id)


def causal_mask(n_queries: int, n_keys: int | None = None):
    """Hide the future: query t may attend to key s when s does not come after t.

    When there are more keys than queries, the queries are the last ones: the first query is at position
    `n_keys - n_queries`, as in incremental decoding. Source: Vaswani et al. 2017, section 3.2.3.

    Parameters
    ----------
    n_queries, n_keys : lengths T and S; S defaults to T

    Returns
    -------
    Boolean tensor on PyTorch's default device, shape (1, 1, T, S); for ids elsewhere, `.to(ids.device)`.

    Raises
    ------
    ValueError : fewer keys than queries.
    """
    n_keys = n_queries if n_keys is None else n_keys
    check_causal(n_queries, n_keys)
    t = torch.arange(n_keys - n_queries, n_keys)[:, None]
    s = torch.arange(n_keys)[None, :]
    return (s <= t)[None, None]


def window_mask(window: int, n_queries: int, n_keys: int | None = None, global_positions=()):
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
    Boolean tensor on PyTorch's default device, shape (1, 1, T, S); for ids elsewhere, `.to(ids.device)`.

    Raises
    ------
    ValueError : fewer keys than queries, a window or a position that is no whole number from 0 on.
    """
    n_keys = n_queries if n_keys is None else n_keys
    check_window(window, global_positions, n_queries, n_keys)
    t = torch.arange(n_keys - n_queries, n_keys)[:, None]
    s = torch.arange(n_keys)[None, :]
    everywhere = torch.tensor(list(global_positions), dtype=t.dtype)
    return (((s - t).abs() <= window) | torch.isin(s, everywhere) | torch.isin(t, everywhere))[None, None]


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
    mask = tensor_of(mask)
    mask = mask[(None,) * (4 - mask.ndim)]
    return mask.any(dim=1).any(dim=1).expand(shape)
