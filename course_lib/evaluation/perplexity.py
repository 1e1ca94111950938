"""How well a model predicts tokens: perplexity and accuracy, without padding."""

import numpy as np


def perplexity(losses, targets=None, pad_id: int = 0) -> float:
    """exp of the mean loss of a token: as unsure as between that many equally probable tokens.

    Parameters
    ----------
    losses : the negative log-probability of each right token in nats, without label smoothing; any shape
    targets : the ids that were to be predicted, in the same shape, to leave out padding; None counts every loss
    pad_id : the id that does not count

    Raises
    ------
    ValueError : unequal shapes, or no token.
    """
    losses = np.asarray(losses, dtype=np.float64)
    return float(np.exp(losses[_real(losses, targets, pad_id, "losses")].mean()))


def token_accuracy(predictions, targets, pad_id: int = 0) -> float:
    """The fraction of target tokens that are predicted rightly, given the right ones before; padding does not count.

    Parameters
    ----------
    predictions, targets : ids, both of the same shape, such as (B, T)
    pad_id : positions whose target is this id do not count, whatever is predicted there

    Raises
    ------
    ValueError : unequal shapes, or no token.
    """
    predictions, targets = np.asarray(predictions), np.asarray(targets)
    real = _real(predictions, targets, pad_id, "predictions")
    return float((predictions == targets)[real].mean())


def _real(values, targets, pad_id, name) -> np.ndarray:
    """Where the target is no padding: boolean, in the shape of the values."""
    real = np.ones(values.shape, dtype=bool) if targets is None else np.asarray(targets) != pad_id
    if real.shape != values.shape:
        raise ValueError(f"{name} and targets must have the same shape, got {values.shape} and {real.shape}")
    if not real.any():
        raise ValueError("there is no token to count: every target is padding")
    return real
