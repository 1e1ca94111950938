"""Cross-entropy over the real tokens of a padded batch, with label smoothing (Szegedy et al. 2016, section 7)."""

import numpy as np

from course_lib.checks import check_labels
from course_lib.models.blocks import LossOutput
from course_lib.numpy.layers import checked_ids


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
    ValueError : shapes that do not fit, a smoothing outside [0, 1), labels that are neither pad_id nor 0 ... V - 1.
    TypeError : labels that are not integers.
    """
    logits, labels = np.asarray(logits), np.asarray(labels)
    check_labels(logits.shape, labels.shape, smoothing)
    real = labels != pad_id  # (B, T)
    labels = checked_ids("labels", np.where(real, labels, 0), logits.shape[-1], note=f", not counting pad_id={pad_id}")
    logits = np.where(real[..., None], logits, np.zeros_like(logits, shape=()))  # may be -inf or NaN at padding
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # (B, T, V)
    nll = -np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]  # (B, T)
    losses = nll if smoothing == 0.0 else (1.0 - smoothing) * nll - smoothing * log_p.mean(axis=-1)
    n_tokens = real.sum()
    n = max(n_tokens, 1)
    return LossOutput((losses * real).sum() / n, (nll * real).sum() / n, n_tokens)
