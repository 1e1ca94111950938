"""The mode of a model while it answers and does not learn: no dropout, no gradients, and then its own mode again."""

import contextlib

import torch


@contextlib.contextmanager
def evaluating(model):
    """Inside, a model is in evaluation mode and no gradient is kept; then each of its modules has its mode again."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with without_gradients():
            yield
    finally:
        model.train(modes[0][1])
        for module, mode in modes:  # a part may be in evaluation mode while the rest is trained
            module.training = mode


def answering(model):
    """As `evaluating`, for one token after the other: a model in evaluation mode is left alone, not visited whole."""
    return evaluating(model) if model.training else without_gradients()


@contextlib.contextmanager
def without_gradients():
    """`torch.inference_mode()`, after which a training in the same `torch.autocast` goes on.

    Up to PyTorch 2.10, autocast keeps the copies of the weights that it cast inside, which have no gradients.
    """
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.clear_autocast_cache()
