"""What models say of tokens and of spans, in TensorFlow: logits, tags of words, answers out of contexts."""

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from course_lib.batches.spans import QuestionWindows
from course_lib.batches.texts import Batches
from course_lib.evaluation.best_spans import Found
from course_lib.masks import padding_mask
from course_lib.predictions import Answer, as_answers, check_outputs, find_spans, tag_words
from course_lib.tensorflow.layers import at_least_float32
from course_lib.text.padding import stacked
from course_lib.training.arguments import reads_segments


def token_logits(model, sequences, batch_size: int = 64, progress: bool = False) -> list[np.ndarray]:
    """The logits of each token, in the order given.

    Parameters
    ----------
    model : a `BertForTokenClassification`, or another model whose `logits` are (B, T, n_classes)
    sequences : N arrays of token ids, shape (length,)
    batch_size : sequences that are read together
    progress : show a bar

    Returns
    -------
    N float32 arrays (length, n_classes).

    Raises
    ------
    ValueError : no sequences, an empty one, ids outside the vocabulary, a sequence that is too long.
    TypeError : ids that are not integers, a model that does not label tokens.
    """
    (found,) = _run(model, sequences, None, {"logits": 3}, batch_size, progress)
    return found


def span_logits(model, windows: QuestionWindows, batch_size: int = 64, progress: bool = False):
    """The logits of each token as the start and as the end of an answer.

    Parameters
    ----------
    model : a `BertForQuestionAnswering`, or another model with `start_logits` and `end_logits`, each (B, T)
    windows : M, of `encode_questions`
    batch_size, progress : as for `token_logits`

    Returns
    -------
    Two lists of M float32 arrays (length,).

    Raises
    ------
    ValueError : ids outside the vocabulary, a window that is too long.
    TypeError : a model that does not find answers.
    """
    fields = {"start_logits": 2, "end_logits": 2}
    return _run(model, windows.ids, windows.segments, fields, batch_size, progress)


def tag(
    model, sentences, tokenizer, names=None, max_len: int | None = None, batch_size: int = 64, progress: bool = False
) -> list[list[str]]:
    """A tag for each word of N sentences: `tag(model, [["Owen", "sleeps"]], tokenizer)` -> [["B-PER", "O"]].

    Parameters and errors are those of `tag_words` of `course_lib.predictions`, and of `token_logits`.
    """
    logits = lambda model, ids: token_logits(model, ids, batch_size, progress)  # noqa: E731
    return tag_words(logits, model, sentences, tokenizer, names, max_len)


def find_answers(
    model,
    questions,
    contexts,
    tokenizer,
    max_len: int = 384,
    stride: int = 128,
    max_answer: int = 30,
    n_best: int = 5,
    batch_size: int = 64,
    progress: bool = False,
) -> list[Found]:
    """The best spans for each of N questions, and the score of "no answer": to choose a threshold, or to look at.

    Parameters and errors are those of `find_spans` of `course_lib.predictions`, and of `span_logits`.
    """
    logits = lambda model, windows: span_logits(model, windows, batch_size, progress)  # noqa: E731
    return find_spans(logits, model, questions, contexts, tokenizer, max_len, stride, max_answer, n_best)


def answer(model, questions, contexts, tokenizer, threshold: float = np.inf, **options) -> list[Answer]:
    """The answer to each of N questions: `answer(model, "Who sleeps?", "Owen sleeps.", tokenizer)[0].text` -> "Owen".

    Parameters
    ----------
    threshold : above which margin there is no answer, of `best_threshold`; inf answers always
    model, questions, contexts, tokenizer, options : as for `find_answers`

    Raises
    ------
    TypeError, ValueError : as for `find_answers`.
    """
    return as_answers(find_answers(model, questions, contexts, tokenizer, **options), contexts, threshold)


def _run(model, sequences, segments, fields: dict[str, int], batch_size, progress) -> list[list[np.ndarray]]:
    """For each field of the model's output, with so many axes, its part of each sequence."""
    pad_id = model.config.pad_id
    batches = Batches(sequences, batch_size, pad_id=pad_id)
    found = [[None] * len(sequences) for _ in fields]
    knows_segments = segments is not None and reads_segments(model)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)] * (1 + knows_segments))  # one graph for all
    def forward(ids, *segments):
        further = {"segments": segments[0]} if segments else {}
        output = model(ids, mask=padding_mask(ids, pad_id), training=False, **further)
        return [at_least_float32(logits) for logits in check_outputs(model, output, fields)]

    for ids, rows in tqdm(batches, disable=not progress, unit="batch"):
        further = [stacked([segments[row] for row in rows], 0, 1)] if knows_segments else []
        for values, logits in zip(found, forward(ids, *further), strict=True):
            for row, own in zip(rows, logits.numpy(), strict=True):
                values[row] = own[: len(sequences[row])]
    return found
