"""Students' pages, made side by side: as nbgrader makes them, and nobody's stops another's."""

import os
import signal
import time

import nbconvert.exporters.html
import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter

from course_lib.grading.marking import feedback
from tests.support.course import ASSIGNMENT, Course

PLAIN = [
    nbformat.v4.new_markdown_cell("**Bold**, `code`, $a < b$ and <div>a part that is left open"),
    nbformat.v4.new_code_cell(
        "def f(x):\n    return '<b>' + x  # & more",
        outputs=[
            nbformat.v4.new_output("stream", name="stdout", text="1 < 2 & 3\n"),
            nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=["\x1b[31mValueError\x1b[0m"]),
            nbformat.v4.new_output("execute_result", data={"text/html": "<table><tr><td>4</table>"}),
        ],
    ),
]
IMAGE = nbformat.v4.new_output("display_data", data={"image/png": "iVBORw0KGgo="})


@pytest.fixture(scope="module")
def course(generated, tmp_path_factory):
    """A course in which anna and zoe have marks of nothing."""
    made = Course(tmp_path_factory.mktemp("feedback") / "course", copied_from=generated.root)
    with made.gradebook() as gradebook:
        for student in ("anna", "zoe"):
            gradebook.add_student(student)
            gradebook.add_submission(ASSIGNMENT, student)
    return made


@pytest.fixture
def page(course, monkeypatch):
    """Makes anna's feedback of some cells; the page."""
    for name, value in course._environment("instructor").items():
        monkeypatch.setenv(name, value)

    def made(cells, compiled=""):
        executed(course, "anna", cells)
        assert feedback.pages(course.root, ASSIGNMENT, ["anna"], compiled) == {"anna": ""}
        return (course.root / "feedback" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text()

    return made


def executed(course, student, cells):
    folder = course.root / "autograded" / student / ASSIGNMENT
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / f"{ASSIGNMENT}.ipynb")


def told(course, monkeypatch, make, jobs=2, **settings):
    """What `feedback` says of anna, ben and zoe, where `make` stands in for what makes the page of one of them."""

    def pages(root, assignment, students, compiled):
        return {student: make(student) for student in students}

    monkeypatch.setattr(feedback, "pages", pages)
    for name, value in settings.items():
        monkeypatch.setattr(feedback, name, value)
    return dict(feedback.feedback(course.root, ASSIGNMENT, ["anna", "ben", "zoe"], jobs))


def nbgraders(page, cells, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(feedback, "FeedbackExporter", HTMLExporter)
        return page(cells)


def test_a_page_is_nbgraders(page, monkeypatch):
    ours = page(PLAIN)
    assert "left open" in ours and "1 &lt; 2 &amp; 3" in ours
    assert str(BeautifulSoup(ours, features="html.parser")) == nbgraders(page, PLAIN, monkeypatch)


def test_a_page_without_images_is_read_no_second_time(page, monkeypatch):
    monkeypatch.setattr(nbconvert.exporters.html, "BeautifulSoup", None)
    assert "left open" in page(PLAIN)


def test_images_are_described_as_nbconvert_describes_them(page, monkeypatch):
    with_image = [*PLAIN, nbformat.v4.new_code_cell("plot()", outputs=[IMAGE])]
    ours = page(with_image)
    assert 'alt="No description has been provided for this image"' in ours
    assert ours == nbgraders(page, with_image, monkeypatch)


def test_a_page_with_an_image_is_made_once(page, monkeypatch):
    made, render = [], feedback.TemplateExporter.from_notebook_node

    def noted(self, *given, **more):
        made.append(self)
        return render(self, *given, **more)

    monkeypatch.setattr(feedback.TemplateExporter, "from_notebook_node", noted)
    page([*PLAIN, nbformat.v4.new_code_cell("plot()", outputs=[IMAGE])])
    assert len(made) == 1


def test_what_nbconvert_changes_is_looked_for_in_the_page_too():
    """A template of the course's own may add it."""
    for page in ("<img src='x'>", "<div class='jp-notebook'>", "<!-- open"):
        assert not feedback._is_left_as_it_is(page)
    assert feedback._is_left_as_it_is("<p> <!-- closed --> </p>")


@pytest.mark.parametrize("shown", ["<IMG src='x.png'>", "an <!-- open comment"])
def test_what_nbconvert_changes_is_changed(page, monkeypatch, shown):
    output = nbformat.v4.new_output("execute_result", data={"text/html": shown})
    cells = [*PLAIN, nbformat.v4.new_code_cell("show()", outputs=[output])]
    assert page(cells) == nbgraders(page, cells, monkeypatch)


def test_a_filter_of_the_courses_own_is_used(course, page):
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    config.write_text(before + 'c.TemplateExporter.filters = {"highlight_code": lambda source, **_: source.upper()}\n')
    try:
        assert "DEF F(X):" in page(PLAIN)
    finally:
        config.write_text(before)


def test_each_notebook_is_highlighted_in_its_own_language():
    exporter = feedback.FeedbackExporter()
    for language in ("python", "r"):
        about = {"language_info": {"name": language, "pygments_lexer": language}}
        shown, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=PLAIN, metadata=about))
        assert f"hl-{language}" in shown


def test_a_page_needs_no_place_for_templates(page, tmp_path):
    assert "left open" in page(PLAIN, str(tmp_path / "no" / "such" / "folder"))


def test_templates_are_compiled_once(page, tmp_path, monkeypatch):
    first = page(PLAIN, str(tmp_path))
    assert list(tmp_path.iterdir())
    monkeypatch.setattr("jinja2.environment.Environment.compile", None)
    assert page(PLAIN, str(tmp_path)) == first


def test_an_exporter_of_the_courses_own_is_used(course, page, monkeypatch):
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    own = "from nbconvert.exporters import MarkdownExporter\nc.GenerateFeedback.exporter_class = MarkdownExporter\n"
    config.write_text(before + own)
    try:
        executed(course, "zoe", PLAIN)
        assert feedback.pages(course.root, ASSIGNMENT, ["zoe"]) == {"zoe": ""}
    finally:
        config.write_text(before)
    assert (course.root / "feedback" / "zoe" / ASSIGNMENT / f"{ASSIGNMENT}.md").is_file()


def test_code_is_highlighted_once(page, course, monkeypatch):
    monkeypatch.setattr(feedback.Highlighted, "_known", {})
    first, asked = page(PLAIN), []
    monkeypatch.setattr(feedback.Highlight2HTML, "__call__", lambda self, source, *_: asked.append(source) or source)
    assert page(PLAIN) == first and not asked
    more = nbformat.v4.new_code_cell("y = 2")
    assert "y = 2" in page([*PLAIN, more]) and asked == ["y = 2"]
    more.metadata.magics_language = "html"
    page([*PLAIN, more])
    assert asked == ["y = 2", "y = 2"]


def test_who_has_no_marks_is_told_why(course, page):
    executed(course, "nobody", PLAIN)
    assert "nobody" in feedback.pages(course.root, ASSIGNMENT, ["nobody"])["nobody"]


def test_what_nbgrader_raises_is_said_and_stops_nobody(course, page, monkeypatch):
    def generate_feedback(self, assignment, student, force):
        if student == "anna":
            raise OSError(28, "No space left on device")
        if student == "ben":
            raise MemoryError  # which says nothing
        return {"success": True}

    monkeypatch.setattr(feedback.NbGraderAPI, "generate_feedback", generate_feedback)
    said = feedback.pages(course.root, ASSIGNMENT, ["anna", "ben", "zoe"])
    assert said == {"anna": "[Errno 28] No space left on device", "ben": "MemoryError", "zoe": ""}


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_page_that_never_ends_stops_no_others(course, monkeypatch, jobs):
    def make(student):
        time.sleep(3600 if student == "anna" else 0)
        return ""

    said = told(course, monkeypatch, make, jobs=jobs, SHARE_S=3)
    assert said == {"anna": "it took more than 3 seconds", "ben": "", "zoe": ""}


def test_a_process_that_is_killed_stops_no_others(course, monkeypatch):
    def make(student):
        if student == "ben":
            os.kill(os.getpid(), signal.SIGKILL)
        return ""

    said = told(course, monkeypatch, make, jobs=1)
    assert "SIGKILL" in said.pop("ben") and said == {"anna": "", "zoe": ""}


def test_pages_are_made_side_by_side(course, monkeypatch, tmp_path):
    def make(student):
        (tmp_path / student).touch()
        while len(list(tmp_path.iterdir())) < 2:  # until another one has begun
            time.sleep(0.01)
        return ""

    assert set(told(course, monkeypatch, make, SHARE=1, SHARE_S=60).values()) == {""}


def test_no_more_are_made_at_a_time_than_told(course, monkeypatch, tmp_path):
    def make(student):
        (tmp_path / student).touch()
        time.sleep(0.3)
        alone = [path.name for path in tmp_path.iterdir()] == [student]
        (tmp_path / student).unlink()
        return "" if alone else "beside another"

    assert set(told(course, monkeypatch, make, jobs=1, SHARE=1).values()) == {""}


def test_a_process_makes_no_more_than_its_share(course, monkeypatch):
    said = told(course, monkeypatch, lambda student: str(os.getpid()), jobs=1, SHARE=2)
    assert said["anna"] == said["ben"] != said["zoe"]
    assert len(set(told(course, monkeypatch, lambda student: str(os.getpid()), jobs=1, SHARE=3).values())) == 1


def test_where_no_process_can_be_started_that_is_said_of_each(course, monkeypatch):
    def none(*_):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    said = told(course, monkeypatch, None, Apart=none)
    assert said == dict.fromkeys(("anna", "ben", "zoe"), "[Errno 11] Resource temporarily unavailable")


def test_where_a_process_cannot_be_started_just_now_it_is_tried_again(course, monkeypatch):
    made, apart = [], feedback.Apart

    def sometimes(*given):
        made.append(given)
        if len(made) == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return apart(*given)

    said = told(course, monkeypatch, lambda student: "", Apart=sometimes, SHARE=1)
    assert said == dict.fromkeys(("anna", "ben", "zoe"), "")


def test_nothing_is_left_beside_pages(course, monkeypatch):
    told(course, monkeypatch, lambda student: "")
    assert not (course.root / feedback.GRADING).exists()


def test_nobody_gets_none(course):
    assert list(feedback.feedback(course.root, ASSIGNMENT, [], 2)) == []
