"""The layers that PyTorch and Keras ship ready-made: linear, embedding, layer normalisation, activations.

A module's attributes say what it is made of: an array is a parameter, a module or a list of modules is a
part. There is no training here, so there is no dropout layer. Fresh weights come from NumPy's global
generator, which `np.random.seed` fixes; all are float64.
"""

import numpy as np

from course_lib.checks import check_ids, check_tokens


class Module:
    """The base of all layers and models; `state.py` walks its attributes."""


class Linear(Module):
    """y = x W^T + b, with the weight as (d_out, d_in), as in PyTorch."""

    def __init__(self, d_in: int, d_out: int, bias: bool = True):
        bound = d_in**-0.5
        self.weight = np.random.uniform(-bound, bound, (d_out, d_in))
        self.bias = np.zeros(d_out) if bias else None

    def __call__(self, x):
        product = x @ self.weight.T
        return product if self.bias is None else product + self.bias


class Embedding(Module):
    """Row i of the table for id i."""

    def __init__(self, n: int, d_model: int, std: float = 0.02):
        self.weight = np.random.normal(0.0, std, (n, d_model))

    def __call__(self, ids):
        return self.weight[ids]


def checked_ids(name: str, ids, size: int, axes: str = "(B, T)", note: str = ""):
    """Ids for an embedding as an array, checked; `note` ends the message about ids out of range.

    Raises
    ------
    TypeError : ids that are not integers.
    ValueError : other axes than `axes`, or ids outside 0 ... size - 1.
    """
    ids = np.asarray(ids)
    is_integer = np.issubdtype(ids.dtype, np.integer)
    low, high = (ids.min(), ids.max()) if is_integer and ids.size else (0, 0)
    check_ids(name, ids.shape, is_integer, low, high, size, axes, note)
    return ids


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last axis, then a learned scale and shift (Ba et al. 2016, eq. 4)."""

    def __init__(self, d_model: int, eps: float = 1e-5):
        self.eps = eps
        self.weight = np.ones(d_model)
        self.bias = np.zeros(d_model)

    def __call__(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return self.weight * centred / np.sqrt(variance + self.eps) + self.bias


class RMSNorm(Module):
    """Mean square 1 over the last axis, then a learned scale (Zhang and Sennrich 2019, eq. 4)."""

    def __init__(self, d_model: int, eps: float = 1e-5):
        self.eps = eps
        self.weight = np.ones(d_model)

    def __call__(self, x):
        return self.weight * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + self.eps)


NORMS = {"layer": LayerNorm, "rms": RMSNorm}


def chosen(hidden, at=None):
    """The vectors of some tokens: those where `at` is True, in the order of the rows.

    Parameters
    ----------
    hidden : shape (B, T, d_model)
    at : boolean, shape (B, T); None: all, as they are

    Returns
    -------
    shape (N, d_model), or `hidden`.

    Raises
    ------
    TypeError : `at` is not boolean.
    ValueError : `at` has another shape.
    """
    if at is None:
        return hidden
    at = np.asarray(at)
    check_tokens("at", at.shape, at.dtype, hidden.shape[:2])
    return hidden[at]


def mean_pool(hidden, real=None):
    """One vector a sequence: the mean of its real tokens' vectors (Reimers and Gurevych 2019, section 3).

    Parameters
    ----------
    hidden : shape (B, T, d_model)
    real : boolean, shape (B, T), True at real tokens; None: all are

    Returns
    -------
    shape (B, d_model), in the dtype of `hidden`; zeros for a sequence without a real token.

    Raises
    ------
    TypeError : `real` is not boolean.
    ValueError : `real` has another shape.
    """
    if real is None:
        return hidden.mean(axis=1)
    real = np.asarray(real)
    check_tokens("real", real.shape, real.dtype, hidden.shape[:2])
    total = np.where(real[..., None], hidden, 0.0).sum(axis=1)  # (B, d_model)
    return total / np.maximum(real.sum(axis=1), 1)[:, None]


def gelu(x):
    """x Phi(x) with the exact normal distribution (Hendrycks and Gimpel 2016, section 2)."""
    from scipy.special import erf  # here, so that the library needs NumPy alone where nobody asks for this

    return x * (1.0 + erf(x / np.sqrt(2.0))) / 2.0


def gelu_new(x):
    """x Phi(x) with the normal distribution by way of a tanh (Hendrycks and Gimpel 2016, section 2), as in ALBERT."""
    return x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3))) / 2.0


def sigmoid(x):
    """1 / (1 + exp(-x)), written so that nothing overflows."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def relu(x):
    """max(0, x)."""
    return np.maximum(x, 0.0)


def silu(x):
    """x times its own sigmoid (Hendrycks and Gimpel 2016, section 2)."""
    return x * sigmoid(x)


ACTIVATIONS = {"gelu": gelu, "relu": relu, "gelu_new": gelu_new, "silu": silu}
