"""Cross-entropy over the real tokens of a padded batch, with label smoothing (Szegedy et al. 2016, section 7)."""

import tensorflow as tf

from course_lib.checks import check_labels
from course_lib.models.blocks import LossOutput
from course_lib.tensorflow.layers import at_least_float32, checked_ids


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
        (when run eagerly; a compiled function cannot look).
    TypeError : labels that are not integers.
    """
    logits, labels = at_least_float32(tf.convert_to_tensor(logits)), tf.convert_to_tensor(labels)
    check_labels(logits.shape, labels.shape, smoothing)
    real = labels != pad_id  # (B, T)
    labels = checked_ids("labels", tf.where(real, labels, 0), logits.shape[-1], note=f", not counting pad_id={pad_id}")
    nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)  # (B, T)
    losses = nll
    if smoothing != 0.0:
        uniform = tf.reduce_logsumexp(logits, axis=-1) - tf.reduce_mean(logits, axis=-1)  # mean of -log p
        losses = (1.0 - smoothing) * nll + smoothing * uniform
    n_tokens = tf.math.count_nonzero(real)
    n = tf.cast(tf.maximum(n_tokens, 1), logits.dtype)
    # not times `real`: at padding a loss may be inf or NaN, which times 0 is NaN
    losses, nll = (tf.where(real, x, tf.zeros((), x.dtype)) for x in (losses, nll))
    return LossOutput(tf.reduce_sum(losses) / n, tf.reduce_sum(nll) / n, n_tokens)
