"""Training a translation model in PyTorch: an explicit loop with teacher forcing, validation and exact resumption."""

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from course_lib.torch.layers import evaluating, tensor_of
from course_lib.torch.losses import cross_entropy
from course_lib.torch.state import _get_buffers, _parameters, _plain, _set_buffers, get_state, set_state
from course_lib.torch.training.classifier import at_least_float32, check_model, device_of, recasting
from course_lib.training.arguments import (
    check_limit,
    check_max_norm,
    check_padding,
    check_validation,
    max_len_of,
    number,
    pair_of,
    settings_of,
    vocabularies_of,
)
from course_lib.training.bar import Bar
from course_lib.training.divergence import check_weights
from course_lib.training.history import Evaluation, History
from course_lib.training.limits import Limits
from course_lib.training.resume import part
from course_lib.training.run import Run
from course_lib.training.saving import VALIDATION, Saving
from course_lib.training.schedules import schedule_of
from course_lib.training.teacher_forcing import example_of, pad_id_of, teacher_forcing


def make_optimizer(model):
    """Adam with beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9 (Vaswani et al. 2017, section 5.3); `train` sets the rate."""
    # fused: one kernel for all parameters, on the CPU twice as fast as one after the other
    return recasting(torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True))


def train(
    model,
    batches: Callable[[int], Sequence],
    validation: Sequence | None = None,
    rate: float | Callable[[int], float] = 1e-3,
    smoothing: float = 0.1,
    max_norm: float | None = None,
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
    """Train a translation model in place with teacher forcing and leave it in evaluation mode, its best weights set.

    A training that was killed goes on exactly where it was saved: call this again, with a model of the same sizes and
    the same arguments. One that is over is loaded; with higher limits it goes on.

    Parameters
    ----------
    model : `model(source_ids (B, S), target_ids (B, T))` has `logits` (B, T, V); with a `pad_id`, or a config with one
    batches : epoch (from 0) -> its batches, as `PairBatches.epoch`: source ids (B, S), target ids (B, T)
    validation : held-out batches of the same kind; decide over the best weights and when patience is over
    rate : of Adam; a number, or a function of the step (0 for the first), as `schedules.warmup_then_inverse_root`
    smoothing : of the labels
    max_norm : the norm that the gradient of all parameters together is cut down to; None cuts nothing
    epochs, steps, seconds : limits, epochs and steps whole; whichever comes first. Validation and saving take no time
    validate_every : updates between two validations; None validates at the end of each epoch
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
    ValueError : no limit, a limit that is not positive, an epoch without batches, held-out ids that the model cannot
        read, weights in float16, or frozen ones alone.
    CheckpointError : `checkpoint` holds a training with another model, other settings, other data (those held out
        included), or other frozen parameters.
    FloatingPointError : the training diverged.
    """
    check_model(model)
    check_max_norm(max_norm)
    check_limit("validate_every", validate_every)
    pad_id = pad_id_of(model)
    held_out = check_validation(validation, pad_id, max_len_of(model), patience, vocabularies_of(model))
    settings = settings_of(model) | {"pad_id": pad_id, "dtype": str(next(model.parameters()).dtype), "clock": clock}
    settings |= {"smoothing": number("smoothing", smoothing), "max_norm": max_norm, "seed": seed, VALIDATION: held_out}
    trainable = [name for name, weight in _parameters(model).items() if weight.requires_grad]
    rate_at = schedule_of(rate)
    run = Run(batches, Limits(epochs, steps, seconds, patience), clock, pad_id)
    saving = Saving(checkpoint, save_every, settings, trainable, rate_at)
    with run, saving, Bar(progress) as bar:
        optimizer = make_optimizer(model)
        torch.manual_seed(seed)
        if (saved := saving.resume(run)) is not None:
            restore(model, optimizer, saved)
        model.train()
        try:
            for batch in run:  # until a limit is reached
                example, n_tokens = example_of(run.place(), batch, pad_id)
                for group in optimizer.param_groups:
                    group["lr"] = rate_at(run.step)
                loss = train_step(model, optimizer, example, smoothing, max_norm)
                run.record(loss, n_tokens)
                if validation is not None and run.is_due(validate_every):
                    with run.paused():
                        run.validated(evaluate(model, validation), lambda: _weights(model))
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
                _set_weights(model, run.best_weights)
    return run.history()


def train_step(model, optimizer, batch, smoothing: float = 0.1, max_norm: float | None = None):
    """One update: forward, loss, backward, clip, step. The loss is returned as a tensor, so that no GPU has to wait."""
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
    pad_id, counts = pad_id_of(model), []
    check_padding(batches, pad_id)
    with evaluating(model):
        for i, batch in enumerate(batches):
            pair = pair_of(f"batch {i}", batch)
            source, inputs, labels = (tensor_of(ids, device_of(model)) for ids in teacher_forcing(pair))
            logits = at_least_float32(model(source, inputs).logits)
            _, nll, n_tokens = cross_entropy(logits, labels, pad_id)
            right = ((logits.argmax(-1) == labels) & (labels != pad_id)).sum()
            counts.append(torch.stack([n_tokens, nll.double() * n_tokens, right]))
    return Evaluation.from_counts(np.array([count.tolist() for count in counts]))


def snapshot(model, optimizer) -> dict[str, np.ndarray]:
    """Weights, buffers, optimizer and random state as arrays by name; `restore` takes them back."""
    arrays = {f"model.{name}": value for name, value in get_state(model).items()}
    arrays |= {f"buffer.{name}": value for name, value in _get_buffers(model).items()}
    names = list(_parameters(model))
    for i, entries in optimizer.state_dict()["state"].items():
        for entry, value in entries.items():
            value = value.float() if value.dtype == torch.bfloat16 else value  # NumPy lacks it; `restore` casts back
            arrays[f"optimizer.{names[i]}:{entry}"] = value.cpu().numpy().copy()
    arrays["random.cpu"] = torch.get_rng_state().numpy().copy()
    if device_of(model).type == "cuda":
        arrays["random.cuda"] = torch.cuda.get_rng_state(device_of(model)).numpy().copy()
    return arrays


def restore(model, optimizer, arrays) -> None:
    """Set what `snapshot` kept; CheckpointError when the weights do not fit the model."""
    set_state(model, part(arrays, "model."))
    _set_buffers(model, part(arrays, "buffer."))
    places = {name: i for i, name in enumerate(_parameters(model))}
    state = {i: {} for i in places.values()}
    for key, value in part(arrays, "optimizer.").items():
        name, entry = key.split(":")
        state[places[_plain(name)]][entry] = torch.from_numpy(value.copy())
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    torch.set_rng_state(torch.from_numpy(arrays["random.cpu"].copy()))
    if "random.cuda" in arrays and device_of(model).type == "cuda":
        torch.cuda.set_rng_state(torch.from_numpy(arrays["random.cuda"].copy()), device_of(model))


def _weights(model) -> dict[str, np.ndarray]:
    return get_state(model) | _get_buffers(model)


def _set_weights(model, weights) -> None:
    buffers = _get_buffers(model)
    set_state(model, {name: value for name, value in weights.items() if name not in buffers})
    _set_buffers(model, weights)
