"""SQuAD's format, by the canonical path and from files: fixtures as the authors and the hub write them."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from course_lib.batches.spans import characters, encode_questions
from course_lib.data import REGISTRY, DataError
from course_lib.data.sources import hub
from course_lib.data.squad import CORPORA, Questions, load, questions_of, read_squad, write_squad
from course_lib.text.wordpiece import WordPiece

CONTEXT = "Zoë Ash built the mill in 1802 😀. The mill stood in Merrow."
OLD = {
    "version": "1.1",
    "data": [
        {
            "title": "The_mill",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": "5733be284776f41900661182",
                            "question": "Who built the mill?",
                            "answers": [{"answer_start": 0, "text": "Zoë Ash"}, {"answer_start": 4, "text": "Ash"}],
                        },
                        {
                            "id": "b",
                            "question": "Where did it stand?",
                            "answers": [{"answer_start": 52, "text": "Merrow"}],
                        },
                    ],
                },
                {"context": "Empty.", "qas": []},
            ],
        }
    ],
}
NEW = {
    "version": "v2.0",
    "data": [
        {
            "title": "The_mill",
            "paragraphs": [
                {
                    "qas": [
                        {
                            "plausible_answers": [{"text": "1802", "answer_start": 26}],
                            "question": "When did the mill burn?",
                            "id": "5a8d7bf7df8bba001a0f9ab1",
                            "answers": [],
                            "is_impossible": True,
                        },
                        {
                            "question": "When was the mill built?",
                            "id": "c",
                            "answers": [{"text": "1802", "answer_start": 26}],
                            "is_impossible": False,
                        },
                    ],
                    "context": CONTEXT,
                }
            ],
        }
    ],
}


def written(folder, content, name="dev.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def rows(questions):
    return [tuple(column[i] for column in questions[:6]) for i in range(len(questions.ids))]


def test_the_json_of_version_1_1(tmp_path):
    found = read_squad(written(tmp_path, OLD))
    assert rows(found) == [
        ("5733be284776f41900661182", "The_mill", "Who built the mill?", CONTEXT, ("Zoë Ash", "Ash"), (0, 4)),
        ("b", "The_mill", "Where did it stand?", CONTEXT, ("Merrow",), (52,)),
    ]
    assert found.kinds is None and found.spans() == [(0, 7), (52, 58)]


def test_the_json_of_version_2_0(tmp_path):
    found = read_squad(written(tmp_path, NEW))
    assert found.answers.tolist() == [(), ("1802",)] and found.spans() == [None, (26, 30)]
    assert found.ids[0] == "5a8d7bf7df8bba001a0f9ab1"


def test_what_is_taken(tmp_path):
    found = read_squad(written(tmp_path, NEW))
    for part in (found.take([1]), found.take(np.array([False, True]))):
        assert isinstance(part, Questions) and part.spans() == [(26, 30)] and part.kinds is None
    row = ("a", "t", "q?", "In Hull.", ("Hull",), (3,), "where")
    own = questions_of([row, ("b", "t", "q?", "Hull", (), (), "who")])
    assert own.take([1, 0]).kinds.tolist() == ["who", "where"] and own.answers.shape == (2,)
    rows_alike = [("a", "t", "q", "In Hull.", ("Hull", "In"), (3, 0)), ("b", "t", "q", "x y", ("x", "y"), (0, 2))]
    alike = questions_of(rows_alike)
    assert alike.answers.shape == (2,) and alike.answers[1] == ("x", "y"), "no table of two columns"
    with pytest.raises(ValueError, match="at least one question"):
        questions_of([])


@pytest.mark.parametrize(("content", "version"), [(OLD, "1.1"), (NEW, "v2.0"), (OLD, "v2.0")])
def test_what_is_written_is_read_again(tmp_path, content, version):
    found = read_squad(written(tmp_path, content))
    path = write_squad(found, tmp_path / "folder" / "again.json", version)
    assert rows(read_squad(path)) == rows(found)
    again = json.loads(path.read_text(encoding="utf-8"))
    assert again["version"] == version and len(again["data"]) == len(again["data"][0]["paragraphs"]) == 1
    marks = [entry.get("is_impossible") for entry in again["data"][0]["paragraphs"][0]["qas"]]
    assert marks == ([None, None] if version == "1.1" else [not answers for answers in found.answers])


def test_version_1_1_has_no_question_without_an_answer(tmp_path):
    found = read_squad(written(tmp_path, NEW))
    with pytest.raises(ValueError, match="question 5a8d7bf7df8bba001a0f9ab1 has no answer, which version 1.1"):
        write_squad(found, tmp_path / "x.json", "1.1")
    with pytest.raises(ValueError, match="version must be one of '1.1', 'v2.0'"):
        write_squad(found, tmp_path / "x.json", "2")
    with pytest.raises(TypeError, match="takes Questions and then a path; got str first"):
        write_squad("x.json", found)
    assert not (tmp_path / "x.json").exists()


def test_titles_and_contexts_are_parted_when_written(tmp_path):
    found = questions_of([
        ("a", "One", "q?", "In Hull.", ("Hull",), (3,)), ("b", "One", "q?", "In York.", ("York",), (3,)),
        ("c", "Two", "q?", "In York.", (), ()),
    ])  # fmt: skip
    path = write_squad(found, tmp_path / "x.json")
    data = json.loads(path.read_text())["data"]
    assert [(article["title"], len(article["paragraphs"])) for article in data] == [("One", 2), ("Two", 1)]
    assert rows(read_squad(path)) == rows(found)


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_places_that_are_a_character_or_two_beside_are_mended(tmp_path, shift):
    content = json.loads(json.dumps(NEW))
    content["data"][0]["paragraphs"][0]["qas"][1]["answers"][0]["answer_start"] += shift
    assert read_squad(written(tmp_path, content)).spans()[1] == (26, 30)


def changed(change):
    content = json.loads(json.dumps(NEW))
    change(content["data"][0]["paragraphs"][0])
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a JSON file in UTF-8"),
        ("[]", "has not the format of SQuAD"),
        ({"data": [{"title": "x"}]}, r"KeyError: 'paragraphs'"),
        ({"data": []}, "holds no question"),
        (changed(lambda p: p.pop("context")), "KeyError: 'context'"),
        (changed(lambda p: p["qas"][1].update(question=None)), "the question of question 'c' is None, not a text"),
        (changed(lambda p: p["qas"][1].update(question=" ")), "question 'c' is empty"),
        (changed(lambda p: p["qas"][1]["answers"][0].update(answer_start=29)), "'1802' of .* does not stand at 29"),
        (changed(lambda p: p["qas"][1]["answers"][0].update(answer_start="26")), "does not stand at '26'"),
        (changed(lambda p: p["qas"][1]["answers"][0].update(text="")), "answer '' of question 'c'"),
    ],
)
def test_files_that_are_damaged(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_squad(written(tmp_path, content))


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_squad(tmp_path / "nothing.json")
    path = tmp_path / "x.json"
    path.write_bytes(b'{"data": "\xff"}')
    with pytest.raises(DataError, match="is not a JSON file in UTF-8"):
        read_squad(path)


@pytest.fixture
def delivered(cache, monkeypatch):
    """A function that makes the hub deliver these columns as the files of a data set."""

    def deliver(name, columns):
        def download(repo, target, scratch, progress):
            assert repo.repo == {"squad-v1.1": "rajpurkar/squad", "squad-v2": "rajpurkar/squad_v2"}[name]
            for file in repo.files:
                assert file.path.split("/")[0] in ("plain_text", "squad_v2") and file.path.endswith(".parquet")
                assert file.path.split("/")[1].startswith(file.name.removesuffix(".parquet"))
                first = 1 if file.name == "validation.parquet" else 0
                parquet.write_table(pa.table(columns).slice(first), target / file.name)

        monkeypatch.setattr(hub, "download", download)

    return deliver


def columns_of(content):
    """The hub's columns, as `datasets` shows them."""
    found = {name: [] for name in ("id", "title", "context", "question", "answers")}
    for paragraph in content["data"][0]["paragraphs"]:
        for entry in paragraph["qas"]:
            for name, value in (("id", entry["id"]), ("title", "The_mill"), ("question", entry["question"])):
                found[name].append(value)
            found["context"].append(paragraph["context"])
            texts, starts = ([a[key] for a in entry["answers"]] for key in ("text", "answer_start"))
            found["answers"].append({"text": texts, "answer_start": starts})
    return found


@pytest.mark.parametrize(("corpus", "content"), [("squad-v1.1", OLD), ("squad-v2", NEW)])
@pytest.mark.parametrize("part", ["train", "validation"])
def test_the_columns_of_the_hub(tmp_path, delivered, corpus, content, part):
    delivered(corpus, columns_of(content))
    first = 1 if part == "validation" else 0
    assert rows(load(corpus, part, progress=False)) == rows(read_squad(written(tmp_path, content)))[first:]
    assert set(CORPORA) <= set(REGISTRY) and REGISTRY[corpus].licence == "CC BY-SA 4.0"


def test_columns_that_are_others(delivered):
    columns = columns_of(NEW)
    delivered("squad-v2", {**columns, "answers": [{"text": ["York"], "answer_start": [0]}] * 2})
    with pytest.raises(DataError, match="train.parquet: answer 'York' of question '5a8d.* does not stand at 0"):
        load(progress=False)
    delivered("squad-v1.1", {name: columns[name] for name in ("id", "question")})
    with pytest.raises(DataError, match="should have the columns id, title, question, context, answers; it has id"):
        load("squad-v1.1", progress=False)


def test_another_corpus_or_part():
    with pytest.raises(ValueError, match="corpus must be one of 'squad-v1.1', 'squad-v2'; got 'squad'"):
        load("squad")
    with pytest.raises(ValueError, match="part must be one of 'train', 'validation'; got 'test'"):
        load("squad-v2", "test")
    assert replace(REGISTRY["squad-v2"], hub=()).sources("pypi") == ()


def test_what_is_read_can_be_trained_on(tmp_path):
    found = read_squad(written(tmp_path, OLD))
    windows = encode_questions(found.questions, found.contexts, WordPiece.from_pretrained("minilm-l6"), found.spans())
    back = [characters(*row) for row in zip(windows.offsets, windows.starts, windows.ends, strict=True)]
    assert back == found.spans()
