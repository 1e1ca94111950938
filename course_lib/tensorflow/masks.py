"""Masks as tensors of TensorFlow, boolean, True = may attend: combined with `&`, in either order."""

import keras
import tensorflow as tf

from course_lib import masks


def padding_mask(ids, pad_id: int = 0):
    """Hide the padding of a batch: no query may attend to a key that is padding.

    Parameters
    ----------
    ids : integers, shape (B, S)
    pad_id : the id of the padding token

    Returns
    -------
    Boolean, shape (B, 1, 1, S), True at real tokens.

    Raises
    ------
    ValueError : `ids` does not have the two axes (B, S).
    """
    check_one_length("ids", ids)
    ids = ids if isinstance(ids, keras.KerasTensor) else tf.convert_to_tensor(ids)
    return masks.padding_mask(ids, pad_id)


def causal_mask(n_queries: int, n_keys: int | None = None):
    """Hide the future: query t may attend to key s when s does not come after t.

    When there are more keys than queries, the queries are the last ones: the first query is at position
    `n_keys - n_queries`, as in incremental decoding. Source: Vaswani et al. 2017, section 3.2.3.

    Parameters
    ----------
    n_queries, n_keys : lengths T and S; S defaults to T

    Returns
    -------
    Boolean, shape (1, 1, T, S).

    Raises
    ------
    ValueError : fewer keys than queries.
    """
    check_known("causal_mask", n_queries, n_keys)
    return tf.constant(masks.causal_mask(n_queries, n_keys))


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
    Boolean, shape (1, 1, T, S).

    Raises
    ------
    ValueError : fewer keys than queries, a window or a position that is no whole number from 0 on.
    """
    check_known("window_mask", n_queries, n_keys)
    return tf.constant(masks.window_mask(window, n_queries, n_keys, global_positions))


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
    mask = tf.convert_to_tensor(mask)
    mask = mask[(None,) * (4 - mask.shape.rank)] if mask.shape.rank < 4 else mask
    return tf.broadcast_to(tf.reduce_any(mask, axis=(1, 2)), shape)


def check_known(name: str, n_queries, n_keys) -> None:
    """Raise TypeError for lengths that are not known while a function is traced, with what to do."""
    if tf.is_symbolic_tensor(n_queries) or tf.is_symbolic_tensor(n_keys):
        raise TypeError(
            f"{name} takes lengths that are known, as x.shape[1] where it is not None; for others compare "
            "positions inside of the compiled function: t = tf.range(tf.shape(x)[1]); mask = t <= t[:, None]"
        )


def check_one_length(name: str, ids) -> None:
    """Raise TypeError for a ragged tensor, with what to do."""
    if isinstance(ids, tf.RaggedTensor):
        raise TypeError(f"{name} must have one length; fill them up with padding, `ids.to_tensor(pad_id)`")
