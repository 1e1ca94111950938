"""The training loop in PyTorch, one for every task: limits, validation, accumulation, saving and exact resumption.

A model of your own needs an objective that knows its batches. Here one of fifteen lines learns what token comes next:

>>> import numpy as np, torch
>>> from types import SimpleNamespace
>>> from course_lib.batches.texts import Batches
>>> from course_lib.torch.training import loop, objectives
>>> class Bigram(torch.nn.Module):
...     def __init__(self, n):
...         super().__init__()
...         self.table = torch.nn.Embedding(n, n)
...     def forward(self, ids):
...         return SimpleNamespace(logits=self.table(ids))
>>> texts = [np.arange(start, start + 6) % 10 for start in range(10)]  # 0 1 2 3 4 5, 1 2 3 4 5 6, ...
>>> model, held_out = Bigram(10), Batches(texts, 5)
>>> history = loop.train(model, lambda epoch: Batches(texts, 5, seed=epoch), objectives.next_token(), held_out,
...                      rate=0.1, epochs=30, progress=False)
>>> print(loop.evaluate(model, held_out, objectives.next_token()).accuracy, history.stopped_by)
1.0 epochs
"""

import time
from collections.abc import Callable, Sequence

import torch
from torch import nn

from course_lib.batches.texts import IGNORED
from course_lib.checks import check_count
from course_lib.torch.layers import tensor_of
from course_lib.torch.modes import evaluating
from course_lib.torch.state import get_state
from course_lib.torch.training.common import check_model, check_saved, device_of, recasting
from course_lib.torch.training.freezing import trained
from course_lib.torch.training.optimizers import adam, check_optimizer, described, own_rate, set_rate
from course_lib.torch.training.snapshots import restore, set_weights, snapshot, weights_of
from course_lib.training.arguments import check_limit, check_max_norm, check_validation, settings_of
from course_lib.training.bar import Bar
from course_lib.training.divergence import check_weights
from course_lib.training.history import Evaluation, History, JointEvaluation
from course_lib.training.limits import Limits
from course_lib.training.objective import Objective, check_objective, evaluation_of, shares
from course_lib.training.run import Run
from course_lib.training.saving import VALIDATION, Saving
from course_lib.training.schedules import schedule_of


def train(
    model,
    batches: Callable[[int], Sequence],
    objective: Objective,
    validation: Sequence | None = None,
    rate: float | Callable[[int], float] | None = None,
    optimizer=None,
    max_norm: float | None = None,
    accumulate: int = 1,
    epochs: int | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    validate_every: int | None = None,
    patience: int | None = None,
    checkpoint=None,
    save_every: float = 60.0,
    seed: int = 0,
    progress: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> History:
    """Train a model in place and leave it in evaluation mode, its best weights set.

    A training that was killed goes on exactly where it was saved: call this again, with a model of the same sizes and
    the same arguments. One that is over is loaded; with higher limits it goes on.

    Inside `torch.autocast(device, torch.bfloat16)` it trains in mixed precision. Where a processor trains, softmax may
    make numbers under 1e-38, which take it ten times as long; `torch.set_flush_denormal(True)` has them be 0.

    Parameters
    ----------
    model : what the objective calls; for texts, its call names `mask`, and it or its config has a `pad_id`
    batches : epoch (from 0) -> its batches, a sequence of what the objective reads; or what has such a method `epoch`
    objective : one of `training.objectives`, or an `Objective` of your own
    validation : held-out batches of the same kind; decide over the best weights and when patience is over
    rate : a number, or a function of the step (0 for the first), as `schedules.warmup_then_inverse_root`; None is the
        optimizer's own, or 1e-3 for one of the course. Groups of several rates keep their ratios: it is the highest
    optimizer : of all weights that are not frozen, such as `optimizers.adamw(model)`; None is `optimizers.adam(model)`
    max_norm : the norm that the gradient of all parameters together is cut down to; None cuts nothing
    accumulate : batches whose gradients make one update, each weighted by how many predictions it counts, so that n
        small ones give the update of one large one, but for `contrastive`, which tells each text from those of its
        batch alone; the last update of an epoch may have fewer
    epochs, steps, seconds : limits, epochs and steps whole; whichever comes first. Validation and saving take no time
    validate_every : updates between two validations; None validates at the end of each epoch. The end of a training is
        validated, too, so that one that goes on with higher limits may have a better best than one that had them
    patience : validations without a better one until training stops; None never stops early
    checkpoint : a folder to save to and resume from
    save_every : seconds between two times of saving; infinity saves at the end alone
    seed : of dropout; the order of the batches is theirs
    progress : show a bar
    clock : what counts the seconds; `time.process_time`, with one thread, leaves out those in which other work had the
        processor, though work on its other cores may still slow it down

    Returns
    -------
    History : losses, validations, and times.

    Raises
    ------
    ValueError : no limit, a limit that is not positive, an epoch without batches, a batch or held-out data that the
        objective refuses, weights of 16 bits, frozen ones alone, an optimizer of another model or of a part of
        its weights, autocast in float16, or a LoRA together with a `checkpoint`.
    TypeError : what is no objective, no optimizer, or no batch.
    CheckpointError : `checkpoint` holds a training with another model, other settings, other data (those held out
        included), or other frozen parameters.
    FloatingPointError : the training diverged.
    """
    check_model(model)
    if checkpoint is not None:
        check_saved(model)
    check_objective(objective)
    check_max_norm(max_norm)
    check_limit("validate_every", validate_every)
    check_count("accumulate", accumulate)
    check_optimizer(model, optimizer)
    own = own_rate(optimizer)
    pad_id = objective.pad_id(model)
    held_out = check_validation(validation, objective, model, patience)
    settings = settings_of(model) | {"pad_id": pad_id, "dtype": str(next(model.parameters()).dtype), "clock": clock}
    settings |= {"objective": objective.name, "optimizer": described(optimizer), "accumulate": accumulate}
    settings |= objective.settings | {"max_norm": max_norm, "seed": seed, VALIDATION: held_out}
    rate_at = schedule_of(rate, own)
    run = Run(batches, Limits(epochs, steps, seconds, patience), clock, pad_id, accumulate)
    saving = Saving(checkpoint, save_every, settings, trained(model), rate_at)
    optimizer = adam(model) if optimizer is None else recasting(optimizer)
    with run, saving, Bar(progress) as bar:
        model.zero_grad()  # of weights that were frozen since, too, which would count in `max_norm`
        torch.manual_seed(seed)
        if (saved := saving.resume(run)) is not None:
            restore(model, optimizer, saved)
        model.train()
        try:
            for batches in run.updates():  # until a limit is reached
                updates = objective.updates(model, batches)
                set_rate(optimizer, rate_at(run.step))
                loss = train_step(model, optimizer, objective, updates, max_norm)
                run.record(loss, sum(update.counts[0] for update in updates))
                if validation is not None and run.is_due(validate_every):
                    with run.paused():
                        run.validated(evaluate(model, validation, objective), lambda: weights_of(model))
                if saving.is_due(run):
                    with run.paused():
                        saving.save(run, snapshot(model, optimizer))
                bar.show(run)
            if saving.is_due(run):  # interrupted between two updates
                saving.save(run, snapshot(model, optimizer))
            check_weights(get_state(model), run.kept())
        finally:
            model.eval()
            if run.best is not None:
                set_weights(model, run.best_weights)
    return run.history()


def train_step(model, optimizer, objective: Objective, updates, max_norm: float | None = None):
    """One update from one batch or several: forward, loss, backward for each, then clip and step.

    Parameters
    ----------
    updates : what `objective.update` read of each batch

    Returns
    -------
    The loss as a tensor, so that no GPU has to wait: a mean over all that the batches count.
    """
    optimizer.zero_grad()
    losses = []
    for update, weights in zip(updates, shares(updates), strict=True):
        parts = objective.losses(model, **tensors(update.arrays, device_of(model)))
        loss = sum(part.loss * weight for part, weight in zip(parts, weights.tolist(), strict=True))
        loss.backward()
        losses.append(loss.detach())
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return sum(losses)


def evaluate(model, batches, objective: Objective) -> Evaluation | JointEvaluation:
    """How well a model predicts the labels of held-out batches.

    Parameters
    ----------
    batches : of what the objective reads

    Returns
    -------
    Evaluation : n_tokens, nll and accuracy over all that the objective counts; of an objective of several parts a
        JointEvaluation, which has each of them besides.
    """
    check_objective(objective)
    counts = []
    with evaluating(model):
        for i, batch in enumerate(objective.padded_alike(model, batches)):
            update = objective.read(model, f"batch {i}", batch)
            counts.append(measure(objective.losses(model, **tensors(update.arrays, device_of(model)))))
    return evaluation_of(objective, [count.tolist() for count in counts])


def measure(parts):
    """For each of P parts (labels, summed nll, right predictions), float64 (P, 3)."""
    rows = []
    for part in parts:
        if part.labels is None:
            right = torch.full_like(part.nll, torch.nan)
        else:
            right = ((part.logits.argmax(-1) == part.labels) & (part.labels != IGNORED)).sum()
        rows.append(torch.stack([part.n, part.nll.double() * part.n, right]))
    return torch.stack(rows)


def tensors(arrays, device) -> dict:
    """Arrays as tensors on a device, by the same names."""
    return {name: tensor_of(value, device) for name, value in arrays.items()}
