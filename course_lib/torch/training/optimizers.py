"""The optimizers of the course in PyTorch: Adam as in "Attention is all you need", and AdamW as BERT is tuned by."""

import torch

from course_lib.torch.training.common import named_weights, recasting
from course_lib.training.arguments import check_all_held, check_positive_or_zero
from course_lib.training.weight_names import scales_of


def adam(model):
    """Adam with beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9 (Vaswani et al. 2017, section 5.3); a loop sets the rate."""
    # fused: one kernel for all parameters, on the CPU twice as fast as one after the other
    return recasting(torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True))


def adamw(model, weight_decay: float = 0.01, layer_decay: float = 1.0):
    """AdamW (Loshchilov and Hutter 2019) with beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; a loop sets the rate.

    Weight decay spares everything with a single axis: biases and the parameters of normalisations. Frozen weights
    stand still.

    Parameters
    ----------
    model : its weights will be trained, those that are not frozen
    weight_decay : times the rate, subtracted from each weight in units of that weight
    layer_decay : the rate of each layer in units of that of the layer above, as for `scales_of`

    Raises
    ------
    ValueError : a weight_decay that is negative or not finite, a layer_decay outside (0, 1], or one below 1 for a
        model without layers.
    """
    check_positive_or_zero("weight_decay", weight_decay)
    weights = named_weights(model)
    groups = {}
    for weight, scale in zip(weights.values(), scales_of(list(weights), layer_decay), strict=True):
        if weight.requires_grad:
            groups.setdefault((scale, weight_decay if weight.ndim > 1 else 0.0), []).append(weight)
    groups = [{"params": p, "scale": scale, "weight_decay": decay} for (scale, decay), p in groups.items()]
    return recasting(torch.optim.AdamW(groups, lr=0.0, fused=True))


def own_rate(optimizer) -> float | None:
    """The rate of an optimizer's fastest group; 0 before a loop has set that of `adam` or `adamw`, None without one.

    Groups of other rates get a `scale`, their share of it, which `set_rate` keeps.
    """
    if optimizer is None:
        return None
    rates = [float(group["lr"]) / (group.get("scale") or 1.0) for group in optimizer.param_groups]
    if len(set(rates)) > 1:
        for group in optimizer.param_groups:
            group.setdefault("scale", float(group["lr"]) / max(rates))
    return max(rates)


def set_rate(optimizer, rate: float) -> None:
    """Set the rate of an optimizer: that of a group with a `scale` is `scale` times it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("scale", 1.0)


def described(optimizer) -> str | None:
    """What kind an optimizer is, and its settings but for the rate: what must be the same for a training to go on."""
    if optimizer is None:
        return None  # the one that `train` makes
    settings = ("betas", "eps", "momentum", "weight_decay", "scale")  # the same in every version
    groups = [
        {"weights": len(group["params"])} | {key: group[key] for key in settings if key in group}
        for group in optimizer.param_groups
    ]
    return f"{type(optimizer).__name__} {groups}"


def check_optimizer(model, optimizer) -> None:
    """Check an optimizer for a model; None is none.

    Raises
    ------
    TypeError : none of PyTorch's.
    ValueError : one of another model's weights, or one that lacks weights which are to be trained.
    """
    if optimizer is None:
        return
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be one of PyTorch's, such as `adamw(model)`; got {type(optimizer).__name__}")
    own = {id(weight) for weight in model.parameters()}
    held = [id(weight) for group in optimizer.param_groups for weight in group["params"]]
    foreign = sum(weight not in own for weight in held)
    if foreign:
        raise ValueError(f"the optimizer holds {foreign} weights that the model has not; make it of this model's")
    check_all_held([name for name, w in named_weights(model).items() if w.requires_grad and id(w) not in set(held)])
