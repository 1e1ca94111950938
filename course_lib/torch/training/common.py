"""What the trainings in PyTorch share: checks of a model, its device, and what half precision needs."""

import torch

from course_lib.training.arguments import check_parameters


def check_model(model) -> None:
    """Check a model before it is trained.

    Raises
    ------
    RuntimeError : inside `torch.no_grad()`, or `torch.inference_mode()`.
    ValueError : weights in float16, or none to train.
    """
    if not torch.is_grad_enabled():
        raise RuntimeError("there are no gradients here: train outside of torch.no_grad() and torch.inference_mode()")
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    remedy = "keep them in float32 (`model.float()`) and train inside `torch.autocast(device, torch.bfloat16)`"
    check_parameters(len(weights), any(weight.dtype == torch.float16 for weight in weights), remedy)


def recasting(optimizer):
    """The optimizer, with a hook that lets `torch.autocast` cast the weights anew after each step.

    Autocast keeps its copies of the weights until its `with` ends, so a whole training in one would go on computing
    with the weights of its first update.
    """
    if not getattr(optimizer, "recasts", False):
        optimizer.register_step_post_hook(lambda *_: torch.clear_autocast_cache())
        optimizer.recasts = True
    return optimizer


def device_of(model):
    """The device that the model's parameters are on."""
    return next(model.parameters()).device
