"""Sphinx extension: questions with which a reader checks what a lecture has said, at the end of its page.

They stand in `book/self-check/`, in a file of the lecture's name: a list of questions, each with the answers to choose
from. Each answer says why it is right or wrong:

    - asks: What is $1 + 1$?
      answers:
        - wrong: "$1$"
          why: That is the product.
        - right: "$2$"
          why: One, and one more.
      check: 1 + 1 == 2

Texts are MyST. A number that stands in the lecture quotes the claim that its cell keeps, 0.83<!--name-->. `check` is
one expression of Python, or several, that the tests compute: the numbers that no cell has. Nothing of it is shown.

The section is put before the lecture's exercises when the book is built. The notebooks stay as they are. An answer is a
plain <details>, which opens without JavaScript, and which custom.css opens in print.
"""

import functools
import json

import yaml
from course_map import ROOT, Computed, lectures, with_titles
from docutils import nodes
from sphinx.application import Sphinx

FOLDER = ROOT / "book" / "self-check"
BEFORE = "## Exercises\n"
SECTION = """## Self-check

Choose an answer: it opens, and says whether it is right, and why. Nothing is counted.

```{{self-check}} {stem}
```
"""


@functools.cache
def questions(stem: str) -> list[dict]:
    """The questions of a lecture; [] where it has none.

    Raises
    ------
    ValueError : a question without text or without answers, or an answer that is neither right nor wrong or has no
        reason.
    """
    path = FOLDER / f"{stem}.yml"
    found = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else []
    for question in found:
        if not question.get("asks") or not question.get("answers") or question.keys() - {"asks", "answers", "check"}:
            raise ValueError(f"{path.name}: a question has `asks`, `answers` and perhaps `check`: {question}")
        for answer in question["answers"]:
            if not answer.get("why") or len(answer) != 2 or not answer.keys() & {"right", "wrong"}:
                raise ValueError(f"{path.name}: an answer is `right` or `wrong`, and says `why`: {answer}")
    return found


def with_section(notebook: str, text: str) -> str:
    """A notebook, as JSON, with one Markdown cell more: before the exercises, or at the end where it has none."""
    content = json.loads(notebook)
    cells = content["cells"]
    cell = {"cell_type": "markdown", "id": "self-check", "metadata": {}, "source": text}
    for place, other in enumerate(cells):
        before, heading, after = "".join(other["source"]).partition(BEFORE)
        if heading and other["cell_type"] == "markdown":
            exercises = {**other, "id": "after-self-check", "source": heading + after}
            cells[place : place + 1] = [{**other, "source": before}, cell, exercises]
            break
    else:
        cells.append(cell)
    return json.dumps(content)


def add_section(app: Sphinx, docname: str, source: list[str]) -> None:
    folder, _, stem = docname.rpartition("/")
    path = FOLDER / f"{stem}.yml"
    if folder == "notebooks" and path.is_file():
        app.env.note_dependency(str(path))
        source[0] = with_section(source[0], SECTION.format(stem=stem))


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


class SelfCheck(Computed):
    """The questions of the lecture that is named."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        stem = self.arguments[0]
        try:
            found = questions(stem)
        except ValueError as error:
            raise self.error(f"{self.name}: {error}") from error
        lecture = lectures().get(stem[:2])
        self.numbers = lecture.numbers if lecture else {}
        block = nodes.container(classes=["self-check"])
        for count, question in enumerate(found, start=1):
            frame = nodes.container(classes=["question"])
            frame += nodes.paragraph("", "", nodes.strong("", f"{count}. "), *self.inline(question["asks"]))
            for letter, answer in zip("abcdefgh", question["answers"], strict=False):
                frame += self.answer(letter, answer)
            block += frame
        return [block]

    def answer(self, letter: str, answer: dict) -> list[nodes.Node]:
        kind = "right" if "right" in answer else "wrong"
        verdict = nodes.strong("", f"{kind.capitalize()}. ")
        summary = nodes.inline("", f"{letter}) ", *self.inline(answer[kind]))
        reason = nodes.paragraph("", "", verdict, *self.inline(answer["why"]))
        opening, closing = f'<details class="answer {kind}"><summary>', "</details>"
        return [html(opening), summary, html("</summary>"), reason, html(closing)]

    def inline(self, text: str) -> list[nodes.Node]:
        parsed, messages = self.state.inline_text(with_titles(text.strip(), self.numbers), self.lineno)
        return [*parsed, *messages]


def forget(*_: object) -> None:
    """A build that follows another in one process reads the questions anew."""
    questions.cache_clear()


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("self-check", SelfCheck)
    app.connect("source-read", add_section)
    app.connect("builder-inited", forget)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
