"""Linear attention: phi(q) phi(k)^T in the place of exp(q k^T), so that keys and values are summed up before a query.

Source: Katharopoulos et al. 2020, sections 3.2 (linearised), 3.3 (causal) and 3.4 (as a recurrent network).
"""

import torch
from torch.nn import functional as F

from course_lib.checks import check_attention, check_linear, check_linear_step
from course_lib.models.blocks import AttentionOutput
from course_lib.torch.efficient.blockwise import for_every_head
from course_lib.torch.layers import at_least_float32


def feature_map(x):
    """phi(x) = elu(x) + 1, which is positive (section 3.2.1): x + 1 where x > 0, else exp(x); (..., d) -> (..., d)."""
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def linear_attention(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
    """phi(q) (phi(k)^T v) / phi(q) (phi(k)^T 1): a weighted mean of the values in time and memory linear in T and S.

    The numbers are not those of `attention`, its conventions are. Sums are made in float32 at least, unless autocast
    decides otherwise. An exported program has the lengths of its example.

    Parameters
    ----------
    q : queries, shape (..., T, d_k)
    k : keys, shape (..., S, d_k); also of fewer heads, as for `attention`
    v : values, shape (..., S, d_v), of as many heads as k
    mask : boolean, broadcastable to (..., 1, S), True = may attend: a key is hidden from every query or from none
    bias, dropout, scale : stand here for the signature; there are no scores and no weights
    causal : hide the future; the queries are the last of the keys

    Returns
    -------
    AttentionOutput : output (..., T, d_v), zeros for a query with nothing to attend to; the weights are None.

    Raises
    ------
    ValueError : axes that do not fit, a mask that differs from query to query, a bias, a scale or a dropout, causal
        attention to fewer keys than queries.
    TypeError : a mask that is not boolean.
    """
    mask = None if mask is None else torch.atleast_2d(torch.as_tensor(mask, device=q.device))
    check_attention(q.shape, k.shape, v.shape, mask, bias, dropout, scale, causal)
    check_linear(mask, bias, dropout, scale)
    queries, keys, values = _prepared(q, for_every_head(k, q), for_every_head(v, q))
    if mask is not None:
        keys = keys * mask.transpose(-1, -2)
    if not causal:
        context = _mean(queries @ (keys.transpose(-1, -2) @ values))
    else:
        first = k.shape[-2] - q.shape[-2]  # the position of the first query
        past = keys[..., :first, :].transpose(-1, -2) @ values[..., :first, :]
        context = _mean(_along(queries, keys[..., first:, :], values[..., first:, :], past))
    return AttentionOutput(context.to(q.dtype), None)


def linear_attention_step(q, k, v, state=None):
    """Causal linear attention as a recurrent network: t more tokens, at a cost that does not grow with those before.

    Parameters
    ----------
    q : queries of the new tokens, shape (..., t, d_k)
    k, v : their keys (..., t, d_k) and values (..., t, d_v), also of fewer heads
    state : what an earlier call returned, shape (..., d_k, d_v + 1); None at the beginning

    Returns
    -------
    context (..., t, d_v), and the state: the paper's s, of the shape (..., d_k, d_v), with its z as one more column.

    Raises
    ------
    ValueError : axes that do not fit, or a state of other keys and values.
    """
    check_attention(q.shape, k.shape, v.shape)
    check_linear_step(q.shape, k.shape, v.shape, None if state is None else state.shape)
    queries, keys, values = _prepared(q, k, v)
    new = keys.transpose(-1, -2) @ values  # (..., d_k, d_v + 1)
    state = torch.zeros_like(new) if state is None else state
    context = _along(queries, *(for_every_head(x, q) for x in (keys, values, state)))
    return _mean(context).to(q.dtype), state + new


def _prepared(q, k, v):
    """phi(q), phi(k), and v with a feature of 1 more, whose mean is the sum of the weights; in float32 at least."""
    q, k, v = (at_least_float32(x) for x in (q, k, v))
    return feature_map(q), feature_map(k), F.pad(v, (0, 1), value=1.0)


def _along(queries, keys, values, past):
    """The sums for each query over `past` and the keys up to its own: (..., T, d_v + 1).

    In chunks of d_k tokens: the d_k products of each token within its chunk need as much memory as the state of its
    chunk does for each of them. Chunks of 1 are the sums of section 3.3 as they stand there.
    """
    length, d_k = queries.shape[-2:]
    size = 1 if length == 1 else d_k

    def chunked(x):
        """(..., T, d) -> (..., n, size, d), with zeros after the end."""
        return F.pad(x, (0, 0, 0, -length % size)).unflatten(-2, (-1, size))

    queries, keys, values = chunked(queries), chunked(keys), chunked(values)
    within = (queries @ keys.transpose(-1, -2)).tril() @ values
    states = keys.transpose(-1, -2) @ values  # (..., n, d_k, d_v + 1), of each chunk
    before = torch.cat([past[..., None, :, :], states[..., :-1, :, :]], dim=-3).cumsum(dim=-3)
    return (queries @ before + within).flatten(-3, -2)[..., :length, :]


def _mean(sums):
    """Sums of weighted values, and of the weights in the last feature -> weighted means, (..., T, d_v)."""
    total = sums[..., -1:]
    return sums[..., :-1] / torch.where(total > 0, total, 1)
