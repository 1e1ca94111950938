"""Every lecture has questions to check oneself, each answer says why, and the numbers in them are computed."""

import builtins
import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.support.lecture_files import LECTURES, QUOTED, claims, loose_numbers, quotes, read
from tests.support.tiny_book import build, code, text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import self_check  # noqa: E402

COURSE = yaml.safe_load((ROOT / "book" / "course.yml").read_text(encoding="utf-8"))
ALL = {stem: self_check.questions(stem) for stem in COURSE}


def texts(question):
    return [question["asks"], *(part for answer in question["answers"] for part in answer.values())]


def place(question):
    """The position of the right answer."""
    return ["right" in answer for answer in question["answers"]].index(True)


@pytest.mark.parametrize("stem", COURSE)
def test_a_lecture_has_three_questions_with_one_right_answer_each(stem):
    assert len(ALL[stem]) == 3, f"write book/self-check/{stem}.yml"
    for question in ALL[stem]:
        assert 3 <= len(question["answers"]) <= 4
        assert sum("right" in answer for answer in question["answers"]) == 1
        said = [answer.get("right", answer.get("wrong")) for answer in question["answers"]]
        assert len(set(said)) == len(said)
        assert all(4 <= len(answer["why"].split()) <= 60 for answer in question["answers"])


def test_every_file_is_that_of_a_lecture():
    assert {path.stem for path in self_check.FOLDER.iterdir()} <= {path.stem for path in LECTURES}


def test_the_right_answer_is_found_neither_by_its_position_nor_by_its_length():
    found = [question for questions in ALL.values() for question in questions]
    positions = Counter(place(question) for question in found)
    assert all(0.15 < positions[i] / len(found) < 0.35 for i in range(4)), positions
    assert [stem for stem, questions in ALL.items() if len({place(question) for question in questions}) == 1] == []
    longest = [max(range(len(q["answers"])), key=lambda i: len(next(iter(q["answers"][i].values())))) for q in found]
    assert 0.1 < np.mean([place(q) == i for q, i in zip(found, longest, strict=True)]) < 0.4


@pytest.mark.parametrize("stem", COURSE)
def test_numbers_of_the_lecture_are_those_that_its_cells_keep(stem):
    known = claims(read(ROOT / "notebooks" / f"{stem}.ipynb"))
    for said in (part for question in ALL[stem] for part in texts(question)):
        assert loose_numbers(said) == [], "numbers that quote no cell, and stand outside formulas"
        wrong = [f"{q.text}, kept: {known.get(q.name)}" for q in quotes(said) if not agrees(q, known)]
        assert wrong == []


def agrees(quote, known):
    return quote.name in known and abs(quote.value - known[quote.name]) <= quote.half_digit * (1 + 1e-9)


def near(value, told):
    """Whether a number rounds to the digits that a text gives."""
    return abs(value - float(told)) <= 0.5 * 10.0 ** -len(told.partition(".")[2]) * (1 + 1e-9)


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


DECIMAL = re.compile(r"\d+\.\d+")


@pytest.mark.parametrize("stem", COURSE)
def test_numbers_that_are_worked_with_a_pencil_are_computed(stem):
    for question in ALL[stem]:
        said = QUOTED.sub(" ", " ".join(texts(question)))
        missing = {float(n) for n in DECIMAL.findall(said)} - {float(n) for n in DECIMAL.findall(checked(question))}
        assert missing == set(), f"`check` computes no {missing}: {question['asks']}"


def checked(question):
    return question.get("check", "")


@pytest.mark.parametrize("stem", COURSE)
def test_numbers_that_are_worked_with_a_pencil_are_right(stem):
    checks = [checked(question) or "True" for question in ALL[stem]]
    names = [name for name in np.__all__ if not hasattr(builtins, name)]
    numbers = {"near": near, "softmax": softmax, **{name: getattr(np, name) for name in names}}
    assert [check for check in checks if not eval(check, dict(numbers))] == []


def test_what_is_no_question_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(self_check, "FOLDER", tmp_path)
    for faulty in (
        [{"asks": "Why?"}],
        [{"asks": "Why?", "answers": [{"right": "So."}]}],
        [{"asks": "Why?", "answers": [{"right": "So.", "why": ""}]}],
        [{"asks": "Why?", "answers": [{"right": "So.", "wrong": "No.", "why": "x"}]}],
        [{"asks": "Why?", "answers": [{"right": "So.", "why": "x"}], "answer": 1}],
    ):
        (tmp_path / "99-x.yml").write_text(yaml.safe_dump(faulty), encoding="utf-8")
        self_check.questions.cache_clear()
        with pytest.raises(ValueError, match=r"99-x\.yml: a"):
            self_check.questions("99-x")
    self_check.questions.cache_clear()


QUESTIONS = [
    {
        "asks": "What is $x$, if it was 0.25<!--kept-->?",
        "answers": [{"wrong": "$1$", "why": "Not $x$."}, {"right": "*One* `x`", "why": "Softmax."}],
    }
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a lecture with a question, whose exercises begin inside a cell."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "11-x.yml").write_text(yaml.safe_dump(QUESTIONS), encoding="utf-8")
    cells = [text("# A\n\nA."), code("# ## Exercises\n"), text("## Z\n\nZ.\n\n## Exercises\n\nE.")]
    metadata = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    lecture = json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_check, "FOLDER", folder)
        patch.setattr(self_check, "lectures", lambda: {"11": type("L", (), {"numbers": {"kept": NUMBER}})})
        built = build(
            folder / "book",
            [text("```{toctree}\nbook/glossary\nnotebooks/11-x\n```")],
            extensions=("self_check", "glossary_cards"),
            files={"notebooks/11-x.ipynb": lecture, "book/glossary.md": GLOSSARY},
            myst_enable_extensions=["dollarmath"],
        )
    self_check.questions.cache_clear()
    assert built.warnings == ""
    return built.page("notebooks/11-x")


NUMBER = {"name": "kept", "value": "0.251"}
GLOSSARY = "# Glossary\n\n```{glossary}\nsoftmax\n  Sums to one.\n```\n"


def test_questions_stand_before_the_exercises(page):
    assert [heading.text.strip("#\u00b6 ") for heading in page.select("h2")] == ["Z", "Self-check", "Exercises"]
    block = page.select_one("#self-check .self-check")
    assert block.select_one(".question > p").get_text() == "1. What is \\(x\\), if it was 0.25?"
    assert block.select_one(".claim")["title"].startswith("0.251")


def test_an_answer_opens_without_a_script_and_says_why(page):
    first, second = page.select("details.answer")
    assert first["class"] == ["answer", "wrong"] and second["class"] == ["answer", "right"]
    assert first.select_one("summary").get_text() == "a) \\(1\\)" and first.select_one("summary .math")
    assert second.select_one("summary em").text == "One" and second.select_one("summary code").text == "x"
    assert first.select_one(":scope > p").get_text() == "Wrong. Not \\(x\\)."
    assert second.select_one(":scope > p").get_text() == "Right. Softmax."
    assert page.select("a.term") == [], "a link inside of what is to be pressed"


PRINTED = """<!doctype html><html data-theme="light"><style>{styles}</style><article class="bd-article">
<div class="self-check"><div class="question"><p>Q</p><details class="answer right"><summary>a) one</summary>
<p>Right. It is so.</p></details></div></div></article>"""


def test_answers_are_folded_on_a_screen_opened_by_keys_and_open_in_print(browser, tmp_path):
    styles = (ROOT / "book" / "_static" / "custom.css").read_text(encoding="utf-8")
    (tmp_path / "a.html").write_text(PRINTED.format(styles=styles), encoding="utf-8")
    tab = browser.new_page(java_script_enabled=False)
    tab.goto((tmp_path / "a.html").as_uri())
    reason = tab.get_by_text("Right. It is so.")
    assert not reason.is_visible()
    tab.emulate_media(media="print")
    assert reason.is_visible()
    tab.emulate_media(media="screen")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    assert reason.is_visible()
    tab.close()
