"""What several modules share: activations, norms, ids on their way into an embedding, means, computed tables."""

from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_lib.checks import check_ids, check_tokens

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "gelu_new": partial(F.gelu, approximate="tanh"), "silu": F.silu}
NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


def checked_ids(name: str, ids, size: int, axes: str = "(B, T)", device=None, note: str = ""):
    """Ids as an embedding takes them: a tensor of int64 or int32, checked.

    Parameters
    ----------
    name : of the argument, for the messages
    ids : a tensor; or a NumPy array or a list, which become a tensor on `device`
    size : how many ids there are
    axes : the axes that they must have
    note : the end of the message about ids out of range

    Raises
    ------
    TypeError : ids that are not integers.
    ValueError : other axes, or ids outside 0 ... size - 1, where looking at them costs nothing.
    """
    if not isinstance(ids, torch.Tensor):
        ids = tensor_of(ids, device)
    is_integer = not (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool)
    if is_integer and ids.dtype not in (torch.int64, torch.int32):
        ids = ids.long()
    looked = is_integer and ids.numel()
    low, high = values_of(ids, lambda: (int(ids.min()), int(ids.max())), (0, 0)) if looked else (0, 0)
    check_ids(name, ids.shape, is_integer, low, high, size, axes, note)
    return ids


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
    at = tensor_of(at, hidden.device)
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
    wide = at_least_float32(hidden)
    if real is None:
        return wide.mean(1).to(hidden.dtype)
    real = tensor_of(real, hidden.device)
    check_tokens("real", real.shape, real.dtype, hidden.shape[:2])
    total = torch.where(real[..., None], wide, 0.0).sum(1)  # (B, d_model)
    return (total / real.sum(1, keepdim=True).clamp(min=1)).to(hidden.dtype)


def at_least_float32(x):
    """A tensor of half precision in float32, which NumPy knows and which sums can be made in; others as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def tensor_of(values, device=None):
    """A tensor of a tensor, an array or a list; also of an array that is read backwards, such as ids[:, ::-1]."""
    if isinstance(values, np.ndarray):
        values = np.ascontiguousarray(values)  # PyTorch has no negative strides
    return torch.as_tensor(values, device=device)


def values_of(x, look, otherwise):
    """What `look()` reads off the values of x; `otherwise` when nobody can look, or when it would hold up a device."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or x.device.type != "cpu":
        return otherwise
    try:
        return look()
    except RuntimeError:  # a tensor without values of its own, as those inside `torch.vmap`
        return otherwise


class ComputedTable(nn.Module):
    """A module with a buffer `table` that is computed and not learned, so that no state dict holds it.

    A module that was built on the meta device gets its weights from a state dict, after `to_empty` or by `assign=True`.
    The table would stay without numbers. It is computed anew whenever the module is moved, and when a state dict is
    assigned to one without numbers.
    """

    def compute(self):
        """The table as a float64 NumPy array."""
        raise NotImplementedError

    def fill(self, dtype=None, device=None):
        """Compute the table, in the default dtype and on the default device when None."""
        table = torch.tensor(self.compute(), dtype=dtype or torch.get_default_dtype(), device=device)
        self.register_buffer("table", table, persistent=False)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.fill(self.table.dtype, self.table.device)
        return self

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *arguments):
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *arguments)
        if self.table.is_meta and local_metadata.get("assign_to_params_buffers"):
            self.fill(self.table.dtype)
