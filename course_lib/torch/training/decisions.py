"""What a Decision Transformer minimises, in PyTorch: an objective as those of `objectives.py`."""

from course_lib.torch.layers import at_least_float32
from course_lib.torch.training.objectives import scored
from course_lib.training import reading
from course_lib.training.objective import Objective, Part, field_of


def actions() -> Objective:
    """The action of each real step, from its return, its state and the steps before (Chen et al. 2021, section 3).

    The mean squared error of actions that are numbers, over their features; the cross-entropy of those that are ids,
    for a model with action_tanh=False. The model's predictions of states and returns are not trained.

    Batches: `TrajectoryBatch`; `model(states, actions, returns, times, real=)` has `actions` (B, T, d_action), `states`
    and `returns`. Of numbers, an evaluation has the mean squared error as `nll`, and no accuracy, but NaN.
    """

    return Objective("actions", reading.trajectories, action_losses, counted="real step")


def action_losses(model, states, actions, returns, times, real, labels=None):
    """The losses of `actions` for one batch."""
    output = model(states, actions, returns, times, real=real)
    predicted = field_of(output, "actions", model)
    part = squared(predicted, actions, real) if labels is None else scored(predicted, labels)
    # TensorFlow's loop refuses a weight that no gradient reaches; so these have one, of zeros, in both frameworks
    untrained = 0.0 * (output.states.sum() + output.returns.sum())
    return [part._replace(loss=part.loss + untrained)]


def squared(predicted, wanted, real) -> Part:
    """The mean squared error of numbers (B, T, d) where `real` (B, T) is True, as a part of a loss."""
    errors = (at_least_float32(predicted) - wanted).square().mean(-1)  # (B, T)
    n = real.sum()
    loss = errors.where(real, 0.0).sum() / n.clamp(min=1)
    return Part(loss, loss, n, None, None)
