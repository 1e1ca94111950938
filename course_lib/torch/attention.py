"""Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, section 3.2)."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.checks import check_attention, check_dropout, check_features, check_heads
from course_lib.outputs import AttentionOutput


def softmax(scores):
    """exp(scores) / sum exp(scores) over the last axis: (..., S) -> (..., S); PyTorch subtracts the maximum."""
    return F.softmax(scores, dim=-1)


def attention(q, k, v, mask=None, dropout=0.0):
    """softmax(q k^T / sqrt(d_k)) v: each query's weighted mean of the values (eq. 1).

    In float16 a product q k^T above 65504 is too large to write down; `fused_attention` and bfloat16 reach further.

    Parameters
    ----------
    q : queries, shape (..., T, d_k)
    k : keys, shape (..., S, d_k)
    v : values, shape (..., S, d_v)
    mask : boolean, broadcastable to (..., T, S), True = may attend; None lets everyone attend to everyone
    dropout : probability with which a weight is dropped now; the returned weights are those before it

    Returns
    -------
    AttentionOutput : output (..., T, d_v) and weights (..., T, S). The weights of a query with nothing to
    attend to are zeros, and so is its output.

    Raises
    ------
    ValueError : axes that do not fit, a mask that does not broadcast, a dropout outside [0, 1).
    TypeError : a mask that is not boolean.
    """
    mask = _checked(q, k, v, mask, dropout)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    if mask is None:
        weights = softmax(scores)
    else:
        weights = softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min)) * mask
    return AttentionOutput(F.dropout(weights, dropout) @ v, weights)


def fused_attention(q, k, v, mask=None, dropout=0.0):
    """The same numbers as `attention` from PyTorch's fused kernel, which never forms the weights.

    Parameters, errors and output as for `attention`; the weights are None.
    """
    mask = _checked(q, k, v, mask, dropout)
    return AttentionOutput(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout), None)


def _checked(q, k, v, mask, dropout):
    check_dropout(dropout)
    if mask is None:
        check_attention(q.shape, k.shape, v.shape)
        return None
    mask = torch.as_tensor(mask, device=q.device)
    check_attention(q.shape, k.shape, v.shape, mask.shape, mask.dtype)
    return torch.atleast_2d(mask)  # PyTorch's fused kernel refuses a mask of fewer axes


class MultiHeadAttention(nn.Module):
    """n_heads attentions side by side, each in d_model / n_heads features of its own (section 3.2.2).

    Parameters
    ----------
    d_model : features of the inputs and of the output
    n_heads : number of heads; divides d_model
    dropout : probability for the attention weights in training
    attention : the attention function, `attention` or `fused_attention`

    Raises
    ------
    ValueError : n_heads does not divide d_model, or a dropout outside [0, 1).
    """

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, attention=attention):
        super().__init__()
        check_dropout(dropout)
        self.d_model, self.n_heads, self.d_head = d_model, n_heads, check_heads(d_model, n_heads)
        self.dropout, self.attention = dropout, attention
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, q, k, v, mask=None):
        """Project, attend in every head, merge, project.

        Parameters
        ----------
        q : shape (B, T, d_model)
        k, v : shape (B, S, d_model)
        mask : boolean, broadcastable to (B, H, T, S), True = may attend

        Returns
        -------
        AttentionOutput : output (B, T, d_model), weights (B, H, T, S).

        Raises
        ------
        ValueError, TypeError : as for `attention`.
        """
        for name, x in (("q", q), ("k", k), ("v", v)):
            check_features(name, x.shape, self.d_model)
        q, k, v = self.split(self.q_proj(q)), self.split(self.k_proj(k)), self.split(self.v_proj(v))
        context, weights = self.attention(q, k, v, mask, self.dropout if self.training else 0.0)
        return AttentionOutput(self.out_proj(self.merge(context)), weights)

    def split(self, x):
        """(B, T, d_model) -> (B, H, T, d_head)."""
        return x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)

    def merge(self, x):
        """(B, H, T, d_head) -> (B, T, d_model), the inverse of `split`."""
        return x.transpose(1, 2).flatten(2)
