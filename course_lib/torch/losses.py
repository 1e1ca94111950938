"""Cross-entropy over the real tokens of a padded batch, with label smoothing (Szegedy et al. 2016, section 7)."""

import torch
from torch.nn import functional as F

from course_lib.checks import check_labels
from course_lib.models.blocks import LossOutput
from course_lib.torch.layers import checked_ids, tensor_of


def cross_entropy(logits, labels, pad_id: int = 0, smoothing: float = 0.0):
    """-sum_v q(v) log p(v), a mean over the real tokens; q is (1 - smoothing) on the label, the rest on all V alike.

    Szegedy et al. 2016, section 7, with the uniform distribution; Vaswani et al. 2017 take smoothing = 0.1
    (section 5.4). Without smoothing it is the negative log-likelihood.

    Parameters
    ----------
    logits : shape (B, T, V)
    labels : integers, shape (B, T)
    pad_id : the label that does not count
    smoothing : probability that is spread over the V tokens

    Returns
    -------
    LossOutput : loss, nll and n_tokens; zeros for a batch of padding alone.

    Raises
    ------
    ValueError : shapes that do not fit, a smoothing outside [0, 1), labels that are neither pad_id nor 0 ... V - 1
        (on a CPU and outside a compiled graph; elsewhere nobody looks).
    TypeError : labels that are not integers.
    """
    labels = tensor_of(labels, logits.device)  # an array or a list may come, as the ids of a model may
    check_labels(logits.shape, labels.shape, smoothing)
    real = labels != pad_id  # (B, T)
    labels = checked_ids("labels", labels.where(real, 0), logits.shape[-1], note=f", not counting pad_id={pad_id}")
    dtype = torch.promote_types(logits.dtype, torch.float32)  # half precision adds up neither exactly nor far enough
    log_p = F.log_softmax(logits, dim=-1, dtype=dtype)  # (B, T, V)
    nll = -log_p.gather(-1, labels.long()[..., None])[..., 0]  # (B, T)
    losses = nll if smoothing == 0.0 else (1.0 - smoothing) * nll - smoothing * log_p.mean(-1)
    n_tokens = real.sum()
    n = n_tokens.clamp(min=1)
    # not times `real`: at padding a loss may be inf or NaN, which times 0 is NaN
    losses, nll = losses.where(real, 0.0), nll.where(real, 0.0)
    return LossOutput(losses.sum() / n, nll.sum() / n, n_tokens)
