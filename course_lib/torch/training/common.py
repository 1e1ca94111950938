"""What the trainings in PyTorch share: checks of a model, its device, and what half precision needs."""

import torch

from course_lib.torch.state import _parameters, _plain
from course_lib.training.arguments import check_parameters


def check_model(model) -> None:
    """Check a model before it is trained.

    Raises
    ------
    RuntimeError : inside `torch.no_grad()`, or `torch.inference_mode()`.
    ValueError : weights in float16 or bfloat16, or none to train; inside `torch.autocast` in float16.
    """
    if not torch.is_grad_enabled():
        raise RuntimeError("there are no gradients here: train outside of torch.no_grad() and torch.inference_mode()")
    remedy = "keep them in float32 (`model.float()`) and train inside `torch.autocast(device, torch.bfloat16)`"
    check_parameters([str(weight.dtype) for weight in model.parameters() if weight.requires_grad], remedy)
    kind = device_of(model).type
    if torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.float16:
        raise ValueError(
            "gradients in float16 vanish unless the loss is scaled, which this does not do; train inside "
            "`torch.autocast(device, torch.bfloat16)`"
        )


def named_weights(model) -> dict:
    """All weights under the names of `get_state`, and besides those of a LoRA, which that adds to their matrices."""
    return {_plain(name): weight for name, weight in model.named_parameters()}


def check_saved(model) -> None:
    """Raise ValueError for a model whose training could not be resumed: one with a LoRA."""
    known = _parameters(model)
    merged = [name for name, w in named_weights(model).items() if w.requires_grad and name not in known]
    if merged:
        raise ValueError(
            "a checkpoint holds what `get_state` gives, which adds up a matrix and its LoRA, so that "
            f"{merged[0]} could not be trained on from there; train without a checkpoint, or without a LoRA"
        )


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
