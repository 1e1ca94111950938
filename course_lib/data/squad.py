"""Questions over texts with answers that are pieces of them: SQuAD 1.1 and 2.0, and files in their format.

`load` reads the data sets from the canonical source, `read_squad` a JSON file of yours, `write_squad` writes one. What
they return, `Questions`, is also what `course_lib.data.stories` makes without a download.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_choice
from course_lib.data.cache import fetch
from course_lib.data.entries import DataError
from course_lib.files import replacing

CORPORA = {"squad-v1.1": "1.1", "squad-v2": "v2.0"}
"""The data sets, by the names of the registry, and the version that their JSON files state."""

PARTS = ("train", "validation")


class Questions(NamedTuple):
    """N questions, in object arrays (N,): all of str, but for each question a tuple of `answers` and one of `starts`.

    `answers` are the right ones, none at all where the text does not answer the question; `starts`, their first
    characters in the context, integers. `titles` say what the text is of; `kinds`, where known, what is asked for.
    """

    ids: np.ndarray
    titles: np.ndarray
    questions: np.ndarray
    contexts: np.ndarray
    answers: np.ndarray
    starts: np.ndarray
    kinds: np.ndarray | None = None

    def take(self, rows) -> Questions:
        """The questions of these rows, integers (M,), or a mask (N,), in their order."""
        return Questions(*(None if column is None else column[rows] for column in self))

    def spans(self) -> list[tuple[int, int] | None]:
        """The characters of each question's first answer (first, one after the last), None where it has none.

        What `encode_questions` of `course_lib.batches.spans` takes to train on.
        """
        pairs = zip(self.answers, self.starts, strict=True)
        return [(starts[0], starts[0] + len(answers[0])) if answers else None for answers, starts in pairs]


def questions_of(rows) -> Questions:
    """`Questions` of rows (id, title, question, context, answers, starts) or the same with a kind at their end.

    Raises
    ------
    ValueError : no row.
    """
    columns = list(zip(*rows, strict=True))
    if not columns:
        raise ValueError("there must be at least one question")
    found = []
    for column in columns:
        array = np.empty(len(column), dtype=object)
        array[:] = column  # element by element: NumPy would make a table of tuples of one length
        found.append(array)
    return Questions(*found)


def load(corpus: str = "squad-v2", part: str = "train", progress: bool = True) -> Questions:
    """Return one part of SQuAD, in the order of its file, fetching the data first if need be.

    Parameters
    ----------
    corpus : "squad-v1.1" (Rajpurkar et al. 2016; 87,599 and 10,570 questions, each with an answer) or "squad-v2"
        (Rajpurkar et al. 2018; 130,319 and 11,873, of which a third and a half have none), from the canonical source
    part : "train" or "validation", which the authors call dev; the test part is not published
    progress : show a bar while downloading

    Raises
    ------
    ValueError : unknown corpus or part.
    DataError : the data could not be fetched, or a file is not what it should be.
    """
    check_choice("corpus", corpus, tuple(CORPORA))
    check_choice("part", part, PARTS)
    path = fetch(corpus, "canonical", progress) / f"{part}.parquet"
    return questions_of(_checked(row, path) for row in _read_parquet(path))


def read_squad(path: str | Path) -> Questions:
    """Read questions from a JSON file in the format of SQuAD 1.1 or 2.0.

    Raises
    ------
    FileNotFoundError : no such file.
    DataError : not such a file, a question without an id, text or context, an answer that does not stand where it is
        said to stand (one or two characters beside it are forgiven), or no question at all.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        rows = list(_rows_of_json(content))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path} is not a JSON file in UTF-8: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} has not the format of SQuAD: data > paragraphs > context, qas > id, question, answers > text, "
            f"answer_start ({type(error).__name__}: {error})"
        ) from error
    if not rows:
        raise DataError(f"{path} holds no question.")
    return questions_of(_checked(row, path) for row in rows)


def write_squad(questions: Questions, path: str | Path, version: str = "v2.0") -> Path:
    """Write questions as a JSON file in SQuAD's format, for other programs; return its path.

    Neighbours with the same title, and in them those with the same context, stand together. Kinds are left out.

    Parameters
    ----------
    version : what the file states, "1.1" or "v2.0"; a question without an answer needs the latter

    Raises
    ------
    TypeError : what is no Questions, such as a path that comes first.
    ValueError : another version, or a question without an answer for 1.1.
    OSError : the file could not be written.
    """
    check_choice("version", version, tuple(CORPORA.values()))
    if not isinstance(questions, Questions):
        raise TypeError(f"write_squad takes Questions and then a path; got {type(questions).__name__} first")
    data: list[dict] = []
    for key, title, question, context, answers, starts in zip(*questions[:6], strict=True):
        entry = {"id": key, "question": question}
        entry["answers"] = [
            {"text": text, "answer_start": int(start)} for text, start in zip(answers, starts, strict=True)
        ]
        if version == "v2.0":
            entry["is_impossible"] = not answers
        elif not answers:
            raise ValueError(f"question {key} has no answer, which version 1.1 does not know; write version 'v2.0'")
        if not data or data[-1]["title"] != title:
            data.append({"title": title, "paragraphs": []})
        paragraphs = data[-1]["paragraphs"]
        if not paragraphs or paragraphs[-1]["context"] != context:
            paragraphs.append({"context": context, "qas": []})
        paragraphs[-1]["qas"].append(entry)
    path = Path(path)
    with replacing(path.parent) as scratch:
        text = json.dumps({"version": version, "data": data}, ensure_ascii=False)
        (scratch / path.name).write_text(text, encoding="utf-8")
    return path


def _rows_of_json(content) -> Iterator[tuple]:
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                answers = [] if entry.get("is_impossible") else entry["answers"]
                texts, starts = [a["text"] for a in answers], [a["answer_start"] for a in answers]
                yield entry["id"], article.get("title", ""), entry["question"], paragraph["context"], texts, starts


def _read_parquet(path: Path) -> Iterator[tuple]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(
            "Reading SQuAD needs the package pyarrow: run `pip install -e '.[canonical]'` in the course's folder."
        ) from None
    table = parquet.read_table(path)
    names = ["id", "title", "question", "context", "answers"]
    if not set(names) <= set(table.column_names):
        raise DataError(f"{path} should have the columns {', '.join(names)}; it has {', '.join(table.column_names)}.")
    for row in table.select(names).to_pylist():
        yield *(row[name] for name in names[:4]), row["answers"]["text"], row["answers"]["answer_start"]


def _checked(row, path: str | Path) -> tuple:
    """The row with tuples, once its texts are texts and its answers stand in the context."""
    key, title, question, context, answers, starts = row
    for name, text in (("id", key), ("title", title), ("question", question), ("context", context)):
        if not isinstance(text, str):
            raise DataError(f"{path}: the {name} of question {key!r} is {text!r:.40}, not a text.")
    if not question.strip():
        raise DataError(f"{path}: question {key!r} is empty.")
    places = [_place(answer, start, context) for answer, start in zip(answers, starts, strict=True)]
    if None in places:
        answer, start = answers[places.index(None)], starts[places.index(None)]
        raise DataError(f"{path}: answer {answer!r:.40} of question {key!r} does not stand at {start!r} of its context")
    return key, title, question, context, tuple(answers), tuple(places)


def _place(answer, start, context: str) -> int | None:
    """Where an answer begins, at its start or one or two characters beside it; None for nowhere."""
    if not isinstance(answer, str) or not isinstance(start, int) or not answer:
        return None
    beside = (start + shift for shift in (0, -1, 1, -2, 2))
    return next((place for place in beside if place >= 0 and context.startswith(answer, place)), None)
