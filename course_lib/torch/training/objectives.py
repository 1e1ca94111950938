"""What the trainings of the course minimise, in PyTorch: each knows its batch and how a model is called.

Labels that do not count are IGNORED (-100). Where a model reads text, padding is hidden: `model(ids, mask=...)`. The
model names `mask` in its call, and has a `pad_id` of its own or in its config; None says that no text is padded.
"""

from functools import partial

import torch
from torch.nn import functional as F

from course_lib.batches.texts import IGNORED
from course_lib.torch.layers import at_least_float32, checked_ids, mean_pool
from course_lib.torch.losses import cross_entropy
from course_lib.torch.masks import padding_mask
from course_lib.torch.modes import evaluating
from course_lib.torch.state import get_state
from course_lib.training import reading
from course_lib.training.arguments import number, takes
from course_lib.training.objective import Objective, Part, check_fits, field_of, needs_no_labels, of_both
from course_lib.training.teacher_forcing import pad_id_of


def translation(smoothing: float = 0.1) -> Objective:
    """The next target token, from the source and the true target tokens before it (teacher forcing).

    Batches of source and target ids (B, S) and (B, T), as `PairBatches` and `CorruptedBatches`;
    `model(source, target).logits` (B, T, V).

    Parameters
    ----------
    smoothing : of the labels, as for `cross_entropy`
    """

    return Objective(
        "translation",
        reading.pairs,
        partial(translation_losses, smoothing=smoothing),
        settings={"smoothing": number("smoothing", smoothing)},
        pad_id=pad_id_of,
        counted="target token besides padding",
        check_held_out=reading.check_held_out_pairs,
    )


def translation_losses(model, source, inputs, labels, smoothing):
    """The losses of `translation` for one batch."""
    labels = labels.where(labels != pad_id_of(model), IGNORED)
    return [smoothed(model(source, inputs).logits, labels, smoothing)]


def next_token(smoothing: float = 0.0) -> Objective:
    """The next token of one sequence, from those before it (Radford et al. 2018, eq. 1), for a causal model.

    Batches with `ids` (B, T), as `texts.Batches`; `model(ids).logits` (B, T, V). If the model has a padding id, padding
    is not learned.
    """

    settings = {"smoothing": number("smoothing", smoothing)}
    losses = partial(next_token_losses, smoothing=smoothing)
    return Objective("next_token", reading.sequences, losses, settings=settings, pad_id=reading.padding_of)


def next_token_losses(model, ids, labels, smoothing):
    """The losses of `next_token` for one batch."""
    return [smoothed(field_of(model(ids), "logits", model), labels, smoothing)]


def classification() -> Objective:
    """The class of a text, or of several in one sequence that are told apart by their segments.

    Batches: `TextBatch`; `model(ids, mask=, segments=).logits` (B, n_classes).
    """

    return Objective("classification", reading.texts, classification_losses, pad_id=reading.padding_of)


def classification_losses(model, ids, labels, segments=None):
    """The losses of `classification` for one batch."""
    return [scored(field_of(called(model, ids, segments), "logits", model), labels)]


def image_classification() -> Objective:
    """The class of an image.

    Batches: `ImageBatch`; `model(images).logits` (B, n_classes).
    """

    return Objective("image_classification", reading.images, image_losses)


def image_losses(model, images, labels):
    """The losses of `image_classification` for one batch."""
    return [scored(field_of(model(images), "logits", model), labels)]


def token_labels() -> Objective:
    """The label of each token that has one, as for named entities (Devlin et al. 2018, section 5.3).

    Batches: `TokenBatch`; `model(ids, mask=).logits` (B, T, n_classes).
    """

    return Objective("token_labels", reading.tokens, token_losses, pad_id=reading.padding_of)


def token_losses(model, ids, labels):
    """The losses of `token_labels` for one batch."""
    return [scored(field_of(called(model, ids), "logits", model), labels)]


def spans() -> Objective:
    """Where an answer starts and where it ends: two cross-entropies (Devlin et al. 2018, section 4.2), here their mean.

    Batches: `SpanBatch`; `model(ids, mask=, segments=)` has `start_logits` and `end_logits` (B, T). Padding is no
    candidate, so that the loss of a text does not depend on its batch. The accuracy is that of single tokens, starts
    and ends alike.
    """

    return Objective("spans", reading.spans, span_losses, pad_id=reading.padding_of, counted="start or end")


def span_losses(model, ids, starts, ends, segments=None):
    """The losses of `spans` for one batch."""
    output = called(model, ids, segments)
    logits = torch.cat([field_of(output, f"{side}_logits", model) for side in ("start", "end")])  # (2 B, T)
    logits, pad_id = at_least_float32(logits), reading.padding_of(model)
    if pad_id is not None:
        logits = logits.masked_fill((ids == pad_id).repeat(2, 1), torch.finfo(logits.dtype).min)
    return [scored(logits, torch.cat([starts, ends]))]


def masked_lm(blanks_only: bool = True) -> Objective:
    """The tokens that stood at the blanks (Devlin et al. 2018, section 3.1, task 1).

    Batches: `MaskedBatch`; `model(ids, mask=, at=).logits` (N, V), those of the N blanks; of a model
    whose call names no argument `at` (B, T, V).

    Parameters
    ----------
    blanks_only : ask for the blanks alone, which saves most of the work; False asks for all tokens, as XLA needs it,
        which must know all shapes
    """

    losses = partial(masked_losses, blanks_only=blanks_only)
    return Objective("masked_lm", reading.masked, losses, pad_id=reading.padding_of, counted="blank")


def masked_losses(model, ids, labels, blanks_only):
    """The losses of `masked_lm` for one batch."""
    return [scored(*blanks(model, "logits", ids, labels, blanks_only=blanks_only)[:2])]


def pretraining(blanks_only: bool = True) -> Objective:
    """The tokens at the blanks, and whether the second text follows the first: the sum (Devlin et al. 2018, A.2).

    Batches: `PretrainingBatch`; `model(ids, mask=, segments=, at=)` has `masked_logits` (N, V) and `next_logits`
    (B, 2), the first of which says "follows".

    Parameters
    ----------
    blanks_only : as for `masked_lm`
    """

    parts = ("masked", "next")
    losses = partial(pretraining_losses, blanks_only=blanks_only)
    return Objective("pretraining", reading.pretraining, losses, parts, pad_id=reading.padding_of, counted="blank")


def pretraining_losses(model, ids, labels, follows, blanks_only, segments=None):
    """The losses of `pretraining` for one batch."""
    logits, labels, output = blanks(model, "masked_logits", ids, labels, segments, blanks_only)
    is_other = torch.where(follows == IGNORED, IGNORED, 1 - follows)
    return [scored(logits, labels), scored(field_of(output, "next_logits", model), is_other)]


def contrastive(scale: float = 20.0, symmetric: bool = False) -> Objective:
    """Which of the batch's second texts belongs to the first: in-batch negatives (Henderson et al. 2017, section 4.4).

    Texts are compared by the cosine of their mean vectors, times `scale` (Reimers and Gurevych 2019, section 3).
    Several batches that make one update are not one large batch: each text is told from those of its own.

    Batches: `ContrastiveBatch`; `model(ids, mask=).last_hidden` (B, T, d_model).

    Parameters
    ----------
    scale : of the cosines, which are logits then
    symmetric : also the other way round, which of the first texts belongs to the second; the mean of both

    Raises
    ------
    ValueError : a scale that is not positive.
    """
    if not number("scale", scale) > 0:
        raise ValueError(f"scale must be positive, got {scale}")

    settings = {"scale": scale, "symmetric": symmetric}
    read = partial(reading.contrastive, directions=1 + symmetric)
    losses = partial(contrastive_losses, scale=scale, symmetric=symmetric)
    return Objective("contrastive", read, losses, settings=settings, pad_id=reading.padding_of)


def contrastive_losses(model, first, second, scale, symmetric):
    """The losses of `contrastive` for one batch."""
    first, second = (F.normalize(mean_vector(model, ids), dim=-1) for ids in (first, second))
    logits = scale * first @ second.T  # (B, B)
    labels = torch.arange(len(logits), device=logits.device)
    if symmetric:
        logits, labels = torch.cat([logits, logits.T]), torch.cat([labels, labels])
    return [scored(logits, labels)]


def distillation(teacher, temperature: float = 2.0, alpha: float = 0.5, objective: Objective | None = None):
    """What a teacher says, besides the labels (Hinton et al. 2015, section 2).

    alpha T^2 KL(teacher || student), both at the temperature T, plus (1 - alpha) times the loss of the objective. The
    teacher's weights stay as they are, and it has no dropout.

    Parameters
    ----------
    teacher : a model of the same task and the same classes
    temperature : what both models' logits are divided by
    alpha : the share of the teacher, in [0, 1]; with 1, `classification` needs no labels: IGNORED ones count as well
    objective : of the labels, `classification()` when None, or `masked_lm()`; one of a single part

    Raises
    ------
    ValueError : a temperature that is not positive, an alpha outside [0, 1]; for a batch, models of different padding.
    TypeError : an objective of several parts.
    """
    objective = classification() if objective is None else objective
    settings = {"temperature": temperature, "alpha": alpha}
    losses = partial(distillation_losses, objective=objective, teacher=teacher, **settings)
    return objective.distilled(losses, teacher, get_state(teacher), **settings)


def distillation_losses(model, objective, teacher, temperature, alpha, **arrays):
    """The losses of `distillation` for one batch."""
    own, theirs = of_both(arrays)
    (hard,) = objective.losses(model, **own)
    with evaluating(teacher):
        (said,) = objective.losses(teacher, **theirs)
    check_fits(said.logits.shape, hard.logits.shape, "teacher's logits", "student's")
    real = (hard.labels != IGNORED) | needs_no_labels(alpha, own)
    log_p, log_q = (F.log_softmax(tempered(part.logits, temperature), -1)[real] for part in (said, hard))  # (N, C)
    divergence = (log_p.exp() * (log_p - log_q)).sum() / real.sum().clamp(min=1)
    return [hard._replace(loss=alpha * temperature**2 * divergence + (1 - alpha) * hard.loss)]


def scored(logits, labels) -> Part:
    """The cross-entropy of logits (..., C) and labels (...), as a part of a loss."""
    check_fits(logits.shape[:-1], labels.shape, "logits", "labels")
    rows, wanted = at_least_float32(logits.reshape(-1, logits.shape[-1])), labels.reshape(-1)  # (N, C), (N,)
    real = wanted != IGNORED
    checked_ids("labels", wanted.where(real, 0), logits.shape[-1], "(N,)", note=f", not counting {IGNORED}")
    n = real.sum()
    loss = F.cross_entropy(rows, wanted, ignore_index=IGNORED, reduction="sum") / n.clamp(min=1)
    return Part(loss, loss, n, logits, labels)


def tempered(logits, temperature: float):
    """Logits divided by a temperature, finite where the type's least stands for what is no candidate."""
    logits = at_least_float32(logits) / temperature
    return logits.clamp(min=torch.finfo(logits.dtype).min / 4)  # so far that the difference of two is finite too


def smoothed(logits, labels, smoothing: float) -> Part:
    """The same of logits (B, T, V) and labels (B, T) that are smoothed."""
    return Part(*cross_entropy(logits, labels, IGNORED, smoothing), logits, labels)


def called(model, ids, segments=None, **more):
    """What a model says of ids (B, T), their padding hidden."""
    if segments is not None:
        more["segments"] = segments
    pad_id = reading.padding_of(model)
    return model(ids, mask=None if pad_id is None else padding_mask(ids, pad_id), **more)


def blanks(model, name: str, ids, labels, segments=None, blanks_only: bool = True):
    """Logits and labels of the blanks alone, (N, V) and (N,), or of all tokens, and the model's whole output."""
    chosen = labels != IGNORED
    asked = blanks_only and takes(model, "at")
    output = called(model, ids, segments, **({"at": chosen} if asked else {}))
    logits = field_of(output, name, model)
    return logits, labels[chosen] if asked else labels, output


def mean_vector(model, ids):
    """The mean of the real tokens' last hidden states, (B, d_model)."""
    hidden = at_least_float32(field_of(called(model, ids), "last_hidden", model))  # (B, T, d_model)
    pad_id = reading.padding_of(model)
    return mean_pool(hidden, None if pad_id is None else ids != pad_id)
