"""Fine-tuning a BERT classifier in PyTorch by the loop of `training.loop`, and prediction."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from tqdm import tqdm

from course_lib.batches.texts import Batches, TextBatches, check_examples, epochs_of
from course_lib.checks import check_count
from course_lib.masks import padding_mask
from course_lib.text.padding import positional
from course_lib.torch.layers import at_least_float32, mean_pool, tensor_of
from course_lib.torch.models.bert import BertModel
from course_lib.torch.models.bert_heads import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.torch.modes import evaluating
from course_lib.torch.training import loop, objectives, optimizers
from course_lib.torch.training.common import check_model, device_of
from course_lib.training.arguments import (
    check_fraction,
    check_lengths,
    check_max_norm,
    check_positive_or_zero,
    max_len_of,
    n_classes_of,
)
from course_lib.training.schedules import warmup_then_linear_decay

NO_CLASSIFIERS = (
    BertModel,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForTokenClassification,
)


def make_optimizer(model, n_steps: int, lr: float = 2e-4, warmup: float = 0.1, weight_decay: float = 0.01):
    """`optimizers.adamw`, whose rate warms up and then decays to 0 (Devlin et al. 2018, A.2).

    Parameters
    ----------
    model : its parameters will be trained
    n_steps : updates in all
    lr : the peak rate
    warmup : fraction of the updates until the peak
    weight_decay : times the rate, subtracted from each weight in units of that weight

    Returns
    -------
    The optimizer and its schedule; call `step()` of both after each update.

    Raises
    ------
    ValueError : no steps, a rate or a decay that is negative or not finite, a warmup outside [0, 1).
    """
    check_count("n_steps", n_steps)
    check_positive_or_zero("lr", lr)
    check_fraction("warmup", warmup)
    optimizer = optimizers.adamw(model, weight_decay)
    optimizers.set_rate(optimizer, lr)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, _factors(n_steps, warmup))


def _factors(n_steps: int, warmup: float) -> Callable[[int], float]:
    return lambda step: warmup_then_linear_decay(min(step, n_steps - 1), n_steps, int(warmup * n_steps))


def train(
    model,
    sequences,
    labels,
    epochs: int = 1,
    batch_size: int = 32,
    lr: float = 2e-4,
    warmup: float = 0.1,
    weight_decay: float = 0.01,
    max_norm: float | None = 1.0,
    seed: int = 0,
    progress: bool = True,
):
    """Train a classifier in place and leave it in evaluation mode, also when Ctrl-C or an error ends it.

    Inside `torch.autocast(device, torch.bfloat16)` it trains in mixed precision.

    Parameters
    ----------
    model : a `BertForSequenceClassification`, or another model with its call and its logits
    sequences : N arrays of token ids, shape (length,)
    labels : integers, shape (N,)
    epochs, batch_size : passes over the data, and examples an update
    lr, warmup, weight_decay : as for `make_optimizer`
    max_norm : the norm that the gradient of all parameters together is cut down to; None cuts nothing
    seed : of the order of the batches, and of dropout
    progress : show a bar

    Returns
    -------
    The loss of each update, shape (n_steps,).

    Raises
    ------
    ValueError : labels that do not fit the sequences or the classes, no examples, a sequence that is too long, no
        epochs, a negative rate, weights of 16 bits, or frozen ones alone.
    TypeError : labels or ids that are not integers, a model that does not classify.
    FloatingPointError : the training diverged.
    """
    check_model(model)
    check_max_norm(max_norm)
    sequences = positional("sequences", sequences)
    labels = check_examples(sequences, labels, n_classes_of(model, NO_CLASSIFIERS))
    n_steps = sum(map(len, epochs_of(sequences, epochs, batch_size, seed, model.config.pad_id)))
    check_lengths(sequences, max_len_of(model))
    optimizer, _ = make_optimizer(model, n_steps, lr, warmup, weight_decay)
    factor = _factors(n_steps, warmup)
    history = loop.train(
        model,
        TextBatches(sequences, labels, batch_size, seed, pad_id=model.config.pad_id),
        objectives.classification(),
        rate=lambda step: lr * factor(step),
        optimizer=optimizer,
        max_norm=max_norm,
        epochs=epochs,
        seed=seed,
        progress=progress,
    )
    return history.loss


def train_step(model, optimizer, ids, labels, max_norm: float | None = 1.0):
    """One update, written out: forward, loss, backward, clip, step. ids (B, T), labels (B,) -> the loss, a tensor."""
    ids = tensor_of(ids, device_of(model))
    labels = tensor_of(labels, device_of(model))
    logits = model(ids, mask=padding_mask(ids, model.config.pad_id)).logits  # (B, n_classes)
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    if max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.detach()


def predict(model, sequences, batch_size: int = 64, progress: bool = False):
    """The logits of each sequence, in the order given: float32 array (N, n_classes)."""
    batches = Batches(sequences, batch_size, pad_id=model.config.pad_id)
    logits = np.empty((len(sequences), n_classes_of(model, NO_CLASSIFIERS)), dtype=np.float32)
    with evaluating(model):
        for ids, rows in tqdm(batches, disable=not progress, unit="batch"):
            ids = tensor_of(ids, device_of(model))
            found = model(ids, mask=padding_mask(ids, model.config.pad_id)).logits
            logits[rows] = at_least_float32(found).cpu().numpy()
    return logits


def embed(model, sequences, batch_size: int = 64, progress: bool = False):
    """One vector a text from an encoder: the mean of its tokens' last hidden states, float32 (N, d_model).

    A text of padding alone, which has no tokens, gets zeros.

    Parameters
    ----------
    model : a `BertModel`
    sequences : N arrays of token ids, shape (length,)
    """
    batches = Batches(sequences, batch_size, pad_id=model.config.pad_id)
    vectors = np.empty((len(sequences), model.config.d_model), dtype=np.float32)
    with evaluating(model):
        for ids, rows in tqdm(batches, disable=not progress, unit="batch"):
            ids = tensor_of(ids, device_of(model))
            hidden = model(ids, mask=padding_mask(ids, model.config.pad_id)).last_hidden  # (B, T, d_model)
            vectors[rows] = mean_pool(at_least_float32(hidden), ids != model.config.pad_id).cpu().numpy()
    return vectors
