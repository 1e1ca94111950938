"""What a model finds in texts, of any framework: tags of words, and answers that are pieces of a context.

A framework's `predictions.py` says how logits come out of its models; here is what goes in and what is made of
them: the functions of that module are methods of `Predictions`. Long sentences and contexts are read in parts, so that
no word is left out.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from course_lib.batches.spans import QuestionWindows, encode_questions
from course_lib.batches.texts import Batches
from course_lib.batches.tokens import EncodedWords, encode_words, word_tags
from course_lib.evaluation.best_spans import Found, answer_texts, best_spans
from course_lib.strings import as_texts
from course_lib.text.padding import stacked
from course_lib.training.arguments import max_len_of, reads_segments


class Answer(NamedTuple):
    """A piece of a context, its characters start to end - 1, or "" at 0 for no answer.

    `margin` is how much more "no answer" scores than the best piece: the lower, the surer the model is of an answer.
    """

    text: str
    start: int
    end: int
    margin: float


def tag_words(
    token_logits: Callable,
    model,
    sentences: Sequence[Sequence[str]],
    tokenizer,
    names: Sequence[str] | None = None,
    max_len: int | None = None,
) -> list[list[str]]:
    """A tag for each word of N sentences, the most probable one at its first token.

    A sentence that is too long is read in parts, each of which begins with the first word that the one before has no
    room for; a word has no context beyond its part. Words without a token are "O".

    Parameters
    ----------
    token_logits : (model, N arrays of ids) -> N arrays (length, n_classes)
    model : with a `config`; its `labels` name the classes, and its `max_len` limits the length
    sentences : N sequences of words
    tokenizer : a `WordPiece` with the model's vocabulary
    names : of the classes, in the place of those of the config
    max_len : tokens of a part at most; None is the model's maximum

    Raises
    ------
    TypeError : a sentence that is one str, a word that is not a str, a model that does not label tokens.
    ValueError : no sentence, names that are missing or not as many as classes, or a max_len below 3 or beyond the
        model's maximum.
    """
    names = names_of(model, names)
    max_len = _length(model, max_len)
    sentences = list(sentences) if not isinstance(sentences, str) else sentences  # a str is refused with its reason
    whole = encode_words(sentences, tokenizer)
    parts, rows = [], []
    for row, (ids, firsts) in enumerate(zip(whole.ids, whole.firsts, strict=True)):
        for part in _parts(ids, firsts, max_len):
            parts.append(part)
            rows.append(row)
    encoded = EncodedWords([ids for ids, _ in parts], [firsts for _, firsts in parts], 0)
    logits = token_logits(model, encoded.ids)
    if logits[0].shape[-1] != len(names):
        raise ValueError(f"there are {len(names)} names of classes, but the model has {logits[0].shape[-1]} classes")
    found: list[list[str]] = [[] for _ in whole.ids]
    for row, tags in zip(rows, word_tags(encoded, [each.argmax(-1) for each in logits], names), strict=True):
        found[row] += tags
    return found


def find_spans(
    span_logits: Callable,
    model,
    questions: str | Sequence[str],
    contexts: str | Sequence[str],
    tokenizer,
    max_len: int = 384,
    stride: int = 128,
    max_answer: int = 30,
    n_best: int = 5,
) -> list[Found]:
    """The best pieces of each context as the answer to its question, and how "no answer" compares with them.

    Parameters
    ----------
    span_logits : (model, `QuestionWindows`) -> two lists of arrays (length,), of the starts and of the ends
    model : with a `config`, whose `max_len` limits the length of a window
    questions, contexts : N texts each, or one
    tokenizer : a `WordPiece` with the model's vocabulary
    max_len, stride : of the windows, as for `encode_questions`; those of a small model are shortened to its maximum
    max_answer, n_best : as for `best_spans`

    Raises
    ------
    TypeError : a text that is not a str, a model that does not find answers.
    ValueError : unequal numbers, no question, or a question that leaves no room for its context.
    """
    limit = max_len_of(model)
    if limit is not None and limit < max_len:
        max_len, stride = limit, min(stride, limit // 3)
    windows: QuestionWindows = encode_questions(questions, contexts, tokenizer, None, max_len, stride)
    return best_spans(*span_logits(model, windows), windows, max_answer, n_best)


def as_answers(found: Sequence[Found], contexts: str | Sequence[str], threshold: float = np.inf) -> list[Answer]:
    """The best piece of each context, or no answer where its margin is over the threshold.

    Parameters
    ----------
    found : N, of `find_spans`
    contexts : the N texts
    threshold : of `best_threshold` on validation data; inf answers whenever there is a piece

    Raises
    ------
    TypeError, ValueError : as for `answer_texts`.
    """
    answers = []
    for one, text in zip(found, answer_texts(found, as_texts(contexts, "contexts"), threshold), strict=True):
        start, end = one.spans[0][:2] if text else (0, 0)
        answers.append(Answer(text, start, end, one.margin))
    return answers


class Predictions:
    """What a framework's models say of tokens and of spans: logits, tags of words, answers out of contexts.

    Parameters
    ----------
    reader : (model, {field of its output: axes}, whether segments are read) -> a function of a batch, ids (B, T) and,
        if they are read, segments (B, T), that gives each field as a float32 array; it calls `check_outputs`
    """

    def __init__(self, reader: Callable):
        self.reader = reader

    def token_logits(self, model, sequences, batch_size: int = 64, progress: bool = False) -> list[np.ndarray]:
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
        (found,) = self._run(model, sequences, None, {"logits": 3}, batch_size, progress)
        return found

    def span_logits(self, model, windows: QuestionWindows, batch_size: int = 64, progress: bool = False):
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
        return self._run(model, windows.ids, windows.segments, fields, batch_size, progress)

    def tag(
        self,
        model,
        sentences,
        tokenizer,
        names=None,
        max_len: int | None = None,
        batch_size: int = 64,
        progress: bool = False,
    ) -> list[list[str]]:
        """A tag for each word of N sentences: `tag(model, [["Owen", "sleeps"]], tokenizer)` -> [["B-PER", "O"]].

        Parameters and errors are those of `tag_words`, and of `token_logits`.
        """
        logits = lambda model, ids: self.token_logits(model, ids, batch_size, progress)  # noqa: E731
        return tag_words(logits, model, sentences, tokenizer, names, max_len)

    def find_answers(
        self,
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

        Parameters and errors are those of `find_spans`, and of `span_logits`.
        """
        logits = lambda model, windows: self.span_logits(model, windows, batch_size, progress)  # noqa: E731
        return find_spans(logits, model, questions, contexts, tokenizer, max_len, stride, max_answer, n_best)

    def answer(self, model, questions, contexts, tokenizer, threshold: float = np.inf, **options) -> list[Answer]:
        """The answer to each of N questions: `answer(model, "Who reads?", "Ann reads.", tokenizer)[0].text` -> "Ann".

        Parameters
        ----------
        threshold : above which margin there is no answer, of `best_threshold`; inf answers always
        model, questions, contexts, tokenizer, options : as for `find_answers`

        Raises
        ------
        TypeError, ValueError : as for `find_answers`.
        """
        return as_answers(self.find_answers(model, questions, contexts, tokenizer, **options), contexts, threshold)

    def _run(self, model, sequences, segments, fields: dict[str, int], batch_size, progress) -> list[list[np.ndarray]]:
        """For each field of the model's output, with so many axes, its part of each sequence."""
        found = [[None] * len(sequences) for _ in fields]
        knows_segments = segments is not None and reads_segments(model)
        read = self.reader(model, fields, knows_segments)
        batches = Batches(sequences, batch_size, pad_id=model.config.pad_id)
        for ids, rows in tqdm(batches, disable=not progress, unit="batch"):
            further = [stacked([segments[row] for row in rows], 0, 1)] if knows_segments else []
            for values, logits in zip(found, read(ids, *further), strict=True):
                for row, own in zip(rows, logits, strict=True):
                    values[row] = own[: len(sequences[row])]
        return found


def names_of(model, names: Sequence[str] | None = None) -> list[str]:
    """The names of a model's classes; ValueError where neither it nor the caller names them."""
    names = getattr(getattr(model, "config", None), "labels", None) if names is None else names
    if names is None:
        raise ValueError(
            "the classes have no names: give `names`, such as ['O', 'B-PER', ...], or a config with `labels`"
        )
    return list(names)


def check_outputs(model, output, fields: dict[str, int]) -> list:
    """The fields of a model's output, each with so many axes, of which the first two are (B, T).

    Raises
    ------
    TypeError : the model does not return them.
    """
    found = [getattr(output, name, None) for name in fields]
    if any(value is None or len(value.shape) != n for value, n in zip(found, fields.values(), strict=True)):
        what, which = "find answers", "BertForQuestionAnswering"
        if "logits" in fields:
            what, which = "label tokens", "BertForTokenClassification"
        raise TypeError(f"a {type(model).__name__} does not {what}: give a {which}, or another model that returns "
                        f"{' and '.join(f'{name} with {n} axes' for name, n in fields.items())}")  # fmt: skip
    return found


def _length(model, max_len: int | None) -> int | None:
    limit = max_len_of(model)
    if max_len is not None and limit is not None and max_len > limit:
        raise ValueError(f"max_len is {max_len}, but the model reads {limit} tokens at most")
    if max_len is not None and max_len < 3:
        raise ValueError(f"max_len must be 3 or more, for a token between the special ones; got {max_len}")
    return limit if max_len is None else max_len


def _parts(ids: np.ndarray, firsts: np.ndarray, max_len: int | None):
    """The ids and first tokens of each part of a sentence: all words in their order, each in one part."""
    if max_len is None or len(ids) <= max_len:
        return [(ids, firsts)]
    room, parts, begin = max_len - 2, [], 0
    while begin < len(firsts):
        known = firsts[begin:][firsts[begin:] >= 0]
        offset = known[0] if len(known) else 1  # the token that this part begins with
        inside = (firsts[begin:] < 0) | (firsts[begin:] < offset + room)
        n = len(inside) if inside.all() else int(np.argmin(inside))
        own = firsts[begin : begin + n]
        last = min(offset + room, len(ids) - 1)
        tokens = np.concatenate([ids[:1], ids[offset:last], ids[-1:]])
        parts.append((tokens, np.where(own >= 0, own - offset + 1, -1)))
        begin += n
    return parts
