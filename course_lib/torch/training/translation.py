"""Training a translation model in PyTorch: the loop of `training.loop` with teacher forcing."""

from collections.abc import Callable, Sequence

from torch import nn

from course_lib.torch.layers import tensor_of
from course_lib.torch.losses import cross_entropy
from course_lib.torch.training import loop, objectives
from course_lib.torch.training.common import device_of
from course_lib.training.history import Evaluation, History
from course_lib.training.teacher_forcing import pad_id_of


def train(
    model,
    batches: Callable[[int], Sequence],
    validation: Sequence | None = None,
    rate: float | Callable[[int], float] = 1e-3,
    smoothing: float = 0.1,
    **options,
) -> History:
    """Train a translation model in place with teacher forcing and leave it in evaluation mode, its best weights set.

    Parameters
    ----------
    model : `model(source_ids (B, S), target_ids (B, T))` has `logits` (B, T, V); with a `pad_id`, or a config with one
    batches : epoch (from 0) -> its batches, as `PairBatches.epoch`: source ids (B, S), target ids (B, T)
    validation : held-out batches of the same kind; decide over the best weights and when patience is over
    rate : of Adam; a number, or a function of the step (0 for the first), as `schedules.warmup_then_inverse_root`
    smoothing : of the labels
    options : limits, clipping, saving and all else, by name, as for `course_lib.torch.training.loop.train`, which
        also says what is raised and how a training goes on from its `checkpoint`

    Returns
    -------
    History : of the updates and the validations.
    """
    return loop.train(model, batches, objectives.translation(smoothing), validation, rate, **options)


def train_step(model, optimizer, batch, smoothing: float = 0.1, max_norm: float | None = None):
    """One update, written out: forward, loss, backward, clip, step. The loss stays a tensor, so that no GPU waits."""
    source, inputs, labels = (tensor_of(ids, device_of(model)) for ids in batch)
    loss = cross_entropy(model(source, inputs).logits, labels, pad_id_of(model), smoothing).loss
    optimizer.zero_grad()
    loss.backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.detach()


def evaluate(model, batches) -> Evaluation:
    """How well a model predicts the target tokens of held-out batches, each from the true ones before it.

    Parameters
    ----------
    batches : of source ids (B, S) and target ids (B, T)

    Returns
    -------
    Evaluation : n_tokens, nll and accuracy over all real target tokens.
    """
    return loop.evaluate(model, batches, objectives.translation())
