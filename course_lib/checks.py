"""Argument checks shared by the three frameworks, so that the same mistake gives the same error in each.

The checks look at shapes and dtypes only and know no framework. An axis whose length is not known yet
(None, inside a `tf.function`) passes.
"""

from numbers import Integral


def check_attention(q_shape, k_shape, v_shape, mask=None, bias=None, dropout=0.0, scale=None, causal=False) -> None:
    """Check the arguments of attention: q (..., T, d_k), k (..., S, d_k), v (..., S, d_v).

    k and v may have fewer heads than q, (B, H / n, S, d): n heads of queries that follow each other share one.

    Raises
    ------
    ValueError : axes that do not fit, a mask or a bias that does not broadcast to (..., T, S), a dropout outside
        [0, 1), a scale that is not positive, causal attention to fewer keys than queries.
    TypeError : a mask that is not boolean, or a bias that is.
    """
    check_dropout(dropout)
    q, k, v = tuple(q_shape), tuple(k_shape), tuple(v_shape)
    if min(len(q), len(k), len(v)) < 2:
        raise ValueError(f"q, k and v need at least the two axes (length, features); got {_show_all(q, k, v)}")
    if not len(q) == len(k) == len(v):
        raise ValueError(f"q, k and v need the same number of axes; got {_show_all(q, k, v)}")
    if not _same(q[-1], k[-1]):
        raise ValueError(f"queries and keys need the same number of features (last axis); got {_show_all(q, k, v)}")
    if not _same(k[-2], v[-2]):
        raise ValueError(f"there must be one value for each key (axis -2 of k and v); got {_show_all(q, k, v)}")
    n_shared = 1 if len(q) > 3 else 0  # axes that may differ: with less than four, the first one is no head
    first, heads = slice(0, len(q) - 2 - n_shared), slice(len(q) - 2 - n_shared, len(q) - 2)
    if not all(map(_same, q[first], k[first])) or not all(map(_same, k[:-2], v[:-2])):
        raise ValueError(f"q, k and v need the same leading axes (batch, heads); got {_show_all(q, k, v)}")
    if not all(_same(a, b) or b and a % b == 0 for a, b in zip(q[heads], k[heads], strict=True)):
        raise ValueError(
            f"q needs as many heads (axis -3) as k and v, or a multiple of them; got {_show_all(q, k, v)}"
        )
    scores = (*q[:-1], k[-2])
    if mask is not None:
        check_mask(mask.shape, getattr(mask.dtype, "name", mask.dtype), scores)
    if bias is not None:
        check_bias(bias.shape, bias.dtype, scores)
    if scale is not None:
        check_positive("scale", scale)
    if causal and None not in scores[-2:]:
        check_causal(*scores[-2:])


def check_mask(mask_shape, mask_dtype, scores_shape) -> None:
    """Check that a mask is boolean and broadcasts to the shape of the scores.

    Raises
    ------
    TypeError : the mask is not boolean (a float or additive mask, 0/1 integers).
    ValueError : the mask does not broadcast to `scores_shape`.
    """
    if not _is_boolean(mask_dtype):
        raise TypeError(
            f"the mask must be boolean with True = may attend, got {mask_dtype}; turn 0/1 into booleans with "
            "`mask != 0`, and an additive mask (0 and -inf) with `mask == 0`"
        )
    _check_broadcast("mask", mask_shape, scores_shape)


def check_bias(bias_shape, bias_dtype, scores_shape) -> None:
    """Check that a bias is a number for each score: it broadcasts to the shape of the scores.

    Raises
    ------
    TypeError : a boolean bias.
    ValueError : the bias does not broadcast to `scores_shape`.
    """
    if _is_boolean(bias_dtype):
        raise TypeError("the bias is added to the scores and must be numbers, got bool; give a mask as `mask=`")
    _check_broadcast("bias", bias_shape, scores_shape)


def check_mask_of_ids(mask, ids_shape) -> None:
    """Raise ValueError for a boolean mask of the shape of the ids (B, T): with B = T it would pass for one (T, S)."""
    shape = tuple(getattr(mask, "shape", ()))
    if "bool" in str(getattr(mask, "dtype", "")) and None not in shape and shape == tuple(ids_shape):
        raise ValueError(
            f"a mask of the shape of ids, {_show(shape)}, would be read as one of queries and keys: give "
            "`padding_mask(ids)`, or mask[:, None, None, :], to hide keys of each sequence, and mask[None, None] for "
            "queries and keys of all sequences alike"
        )


def check_tokens(name: str, shape, dtype, tokens_shape) -> None:
    """Check what says True or False of each token of a batch, such as which are real.

    Raises
    ------
    TypeError : it is not boolean.
    ValueError : another shape than that of the tokens, (B, T).
    """
    if not _is_boolean(dtype):
        raise TypeError(f"{name} must be boolean, True at the tokens that count, got {dtype}; 0/1 become it by `!= 0`")
    shape, tokens = tuple(shape), tuple(tokens_shape)
    if len(shape) != 2 or not all(map(_same, shape, tokens)):
        raise ValueError(f"{name} must say True or False of each token, {_show(tokens)}; got {_show(shape)}")


def check_causal(n_queries: int, n_keys: int) -> None:
    """Raise ValueError when there are fewer keys than queries: the queries are the last of the keys."""
    if n_keys < n_queries:
        raise ValueError(f"a causal mask needs at least as many keys as queries, got T={n_queries}, S={n_keys}")


def check_window(window, global_positions, n_queries: int | None = None, n_keys: int | None = None) -> None:
    """Raise ValueError unless window and positions are whole numbers from 0 on, with a key for each query."""
    check_count("window", window, least=0)
    for position in global_positions:
        check_count("a global position", position, least=0)
    if n_queries is not None and n_keys is not None and n_keys < n_queries:
        raise ValueError(
            "a window lies around each query's place among the keys, which needs at least as many keys as queries; "
            f"got T={n_queries}, S={n_keys}"
        )


def check_linear(mask, bias, dropout, scale) -> None:
    """Raise ValueError for what linear attention cannot do, as it forms no scores and no weights."""
    given = {"bias": bias is not None, "scale": scale is not None, "dropout": dropout > 0}
    if any(given.values()):
        names = ", ".join(name for name, is_given in given.items() if is_given)
        raise ValueError(f"linear attention forms no scores and no weights, so it takes no {names}")
    if mask is not None and mask.shape[-2] != 1:
        raise ValueError(
            "linear attention hides a key from every query or from none: give a mask of (..., 1, S), such as "
            f"`padding_mask(ids)`, and `causal=True` for the future; got {_show(tuple(mask.shape))}"
        )


def check_linear_step(q_shape, k_shape, v_shape, state_shape=None) -> None:
    """Raise ValueError unless there is a query for each key, and a state, if any, is (..., d_k, d_v + 1)."""
    q, k, v = tuple(q_shape), tuple(k_shape), tuple(v_shape)
    if not _same(q[-2], k[-2]):
        raise ValueError(f"a step takes a query for each key; got {_show_all(q, k, v)}")
    expected = (*k[:-2], k[-1], v[-1] + 1)
    if state_shape is not None and not _same_shape(tuple(state_shape), expected):
        raise ValueError(f"the state of these keys has the shape {_show(expected)}; got {_show(tuple(state_shape))}")


def check_dropout(dropout: float) -> None:
    """Raise ValueError unless `dropout` is a probability in [0, 1)."""
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout is a probability in [0, 1), got {dropout}")


def check_heads(d_model: int, n_heads: int, n_kv_heads: int | None = None, d_head: int | None = None) -> int:
    """Return d_head, d_model / n_heads unless given; raise ValueError where the heads do not divide what they share."""
    if d_head is None and (n_heads < 1 or d_model < 1 or d_model % n_heads):
        raise ValueError(f"d_model must be a positive multiple of n_heads, got d_model={d_model}, n_heads={n_heads}")
    if n_kv_heads is not None and (n_kv_heads < 1 or n_heads % n_kv_heads):
        raise ValueError(
            f"n_heads must be a positive multiple of n_kv_heads, got n_heads={n_heads}, n_kv_heads={n_kv_heads}"
        )
    return d_model // n_heads if d_head is None else d_head


def check_features(name: str, shape, n_features: int) -> None:
    """Raise ValueError unless an input has the shape (B, T, n_features)."""
    shape = tuple(shape)
    if len(shape) != 3 or not _same(shape[-1], n_features):
        raise ValueError(f"{name} must have shape (B, T, {n_features}), got {_show(shape)}")


def check_length(length: int | None, max_len: int) -> None:
    """Raise ValueError when a sequence is longer than the model has positions."""
    if length is not None and length > max_len:
        raise ValueError(f"a sequence of {length} tokens is over the maximum of {max_len}; truncate or split it")


def check_even(name: str, value: int) -> None:
    """Raise ValueError unless a number of features is even and positive: sines and cosines come in pairs."""
    if value < 2 or value % 2:
        raise ValueError(f"{name} must be an even number of 2 or more: sines and cosines come in pairs; got {value}")


def check_ids(
    name: str, shape, is_integer: bool, low: int, high: int, size: int, axes: str = "(B, T)", note: str = ""
) -> None:
    """Check a batch of ids by its shape, its kind and its smallest and largest id; `note` ends the message about these.

    Raises
    ------
    TypeError : ids that are not integers.
    ValueError : ids with other axes than `axes`, "(B, T)" or "(B,)", or ids outside 0 ... size - 1.
    """
    if not is_integer:
        raise TypeError(f"{name} must be integers")
    if len(tuple(shape)) != len(axes.strip("(,)").split(",")):
        raise ValueError(f"{name} must have shape {axes}, got {_show(tuple(shape))}")
    if low < 0 or high >= size:
        raise ValueError(f"{name} must lie in 0 ... {size - 1}, got ids from {low} to {high}{note}")


def check_segments(shape, ids_shape) -> None:
    """Raise ValueError unless there is one segment for each id, and an id at all in each sequence."""
    shape, ids_shape = tuple(shape), tuple(ids_shape)
    if ids_shape[1] == 0:
        raise ValueError(f"ids need at least one token in each sequence, got {_show(ids_shape)}")
    if not all(_same(a, b) for a, b in zip(shape, ids_shape, strict=True)):
        raise ValueError(f"segments must have the shape of ids {_show(ids_shape)}, got {_show(shape)}")


def check_times(x_shape, times_shape, n_features: int) -> None:
    """Raise ValueError unless x is (B, T, n_features) and there is one time (B, T) for each of its vectors."""
    check_features("x", x_shape, n_features)
    times = tuple(times_shape)
    if len(times) != 2 or not all(_same(a, b) for a, b in zip(times, x_shape, strict=False)):
        raise ValueError(
            f"times must have shape (B, T) with one time per vector of x {_show(x_shape)}, got {_show(times)}"
        )


def check_count(name: str, value, least: int = 1) -> None:
    """Raise ValueError unless `value` is a whole number of `least` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of {least} or more, got {value!r}")


def check_positive(name: str, value) -> None:
    """Raise ValueError unless `value` is positive."""
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value}")


def check_choice(name: str, value, choices) -> None:
    """Raise ValueError unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_labels(logits_shape, labels_shape, smoothing: float) -> None:
    """Raise ValueError unless logits are (B, T, V), labels (B, T), and `smoothing` a probability in [0, 1)."""
    logits, labels = tuple(logits_shape), tuple(labels_shape)
    if len(logits) != 3 or len(labels) != 2 or not all(map(_same, logits, labels)):
        raise ValueError(
            f"logits must have shape (B, T, V) and labels (B, T); got logits {_show(logits)}, labels {_show(labels)}"
        )
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing is a probability in [0, 1), got {smoothing}")


def check_recurrence(x_shape, d_in: int, mask_shape=None, mask_dtype=None) -> None:
    """Check what a recurrent network reads: x (B, T, d_in), T > 0, and a mask (B, T), True = a real token.

    Raises
    ------
    ValueError : x of another shape or without a step, or not one place of the mask for each step.
    TypeError : a mask that is not boolean.
    """
    check_features("x", x_shape, d_in)
    x = tuple(x_shape)
    if x[1] == 0:
        raise ValueError(f"a recurrent network needs at least one step, got x {_show(x)}")
    if mask_shape is None:
        return
    if "bool" not in str(mask_dtype):
        raise TypeError(f"the mask must be boolean with True = a real token, got {mask_dtype}; write `ids != pad_id`")
    mask = tuple(mask_shape)
    if len(mask) != 2 or not (_same(mask[0], x[0]) and _same(mask[1], x[1])):
        raise ValueError(f"the mask must have one place for each step, {_show(x[:2])}; got {_show(mask)}")


def check_step(x_shape, d_in: int) -> None:
    """Raise ValueError unless the input of one step has the shape (B, d_in)."""
    x = tuple(x_shape)
    if len(x) != 2 or not _same(x[1], d_in):
        raise ValueError(f"x must have shape (B, {d_in}), got {_show(x)}")


def check_state(state, n_states: int, n_rows: int | None, d_hidden: int) -> None:
    """Check a recurrent state: a tuple of n_states arrays (B, d_hidden).

    Raises
    ------
    TypeError : a state that is no tuple or list.
    ValueError : another number of arrays, or another shape.
    """
    if not isinstance(state, (tuple, list)):
        raise TypeError(f"the state must be a tuple of arrays, got {type(state).__name__}; write (h,) for a single one")
    shapes = [tuple(part.shape) for part in state]
    if len(shapes) != n_states or not all(
        len(shape) == 2 and _same(shape[0], n_rows) and _same(shape[1], d_hidden) for shape in shapes
    ):
        expected = f"{n_states} of shape {_show((n_rows, d_hidden))}"
        raise ValueError(f"the state must hold {expected}; got {', '.join(map(_show, shapes)) or 'none'}")


def check_score(query_shape, keys_shape, d_query: int, d_key: int) -> None:
    """Raise ValueError unless query is (B, T, d_query), keys (B, S, d_key), of one batch."""
    check_features("query", query_shape, d_query)
    keys = tuple(keys_shape)
    if len(keys) != 3 or not _same(keys[-1], d_key):
        raise ValueError(f"keys must have shape (B, S, {d_key}), got {_show(keys)}")
    if not _same(tuple(query_shape)[0], keys[0]):
        raise ValueError(f"query and keys need the same batch, got {_show(tuple(query_shape))} and {_show(keys)}")


def check_same_features(d_query: int, d_key: int) -> None:
    """Raise ValueError unless queries and keys have the same number of features."""
    if d_query != d_key:
        raise ValueError(f"a dot product needs d_query = d_key, got {d_query} and {d_key}; 'general' takes any two")


def check_halves(d_hidden: int) -> None:
    """Raise ValueError unless d_hidden is even and positive: each direction of the encoder gets a half."""
    if d_hidden < 2 or d_hidden % 2:
        raise ValueError(f"an encoder of two directions needs an even d_hidden of 2 or more, got {d_hidden}")


def check_pairs(source_shape, target_shape) -> None:
    """Raise ValueError unless source and target ids are as many sequences, none of them without a token."""
    source, target = tuple(source_shape), tuple(target_shape)
    if not _same(source[0], target[0]):
        raise ValueError(f"there must be one target for each source, got {_show(source)} and {_show(target)}")
    if target[1] == 0:
        raise ValueError(f"targets need at least the start token, got target_ids {_show(target)}")


def check_continuation(ids_shape, n_rows: int, n_read: int) -> None:
    """Raise ValueError unless ids (N, t) continue the N rows read so far by at least one token."""
    shape = tuple(ids_shape)
    if len(shape) != 2 or shape[0] != n_rows:
        raise ValueError(f"ids must have shape ({n_rows}, t), got {_show(shape)}; `reorder` chooses other rows")
    if shape[1] <= n_read:
        raise ValueError(f"{n_read} tokens of each row are read already, so ids need more; got {_show(shape)}")


def _is_boolean(dtype) -> bool:
    return "bool" in str(dtype)


def _check_broadcast(name, shape, scores_shape):
    shape, scores = tuple(shape), tuple(scores_shape)
    padded = (1,) * (len(scores) - len(shape)) + shape
    if len(shape) > len(scores) or not all(n == 1 or _same(n, s) for n, s in zip(padded, scores, strict=True)):
        raise ValueError(f"a {name} of shape {_show(shape)} does not broadcast to the scores {_show(scores)}")


def _same_shape(a, b) -> bool:
    return len(a) == len(b) and all(map(_same, a, b))


def _same(a, b) -> bool:
    return a is None or b is None or a == b


def _show_all(q, k, v) -> str:
    # called when there is something to say: a length that varies from call to call has no text while PyTorch compiles
    return f"q {_show(q)}, k {_show(k)}, v {_show(v)}"


def _show(shape) -> str:
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"
