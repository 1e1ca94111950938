"""RestoreCells alone: cells that a submission lacks come back at their places, as the gradebook keeps them."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import compute_checksum
from traitlets.config import Configurable

from course_lib.grading.restore import RestoreCells
from tests.support.course import grade_id

CELLS = ("imports", "answer", "test", "explain", "last test")
POINTS = {"test": 4.0, "explain": 2.0, "last test": 1.0}
ANSWERS = ("answer", "explain")


def cell(name):
    """A cell of the released notebook, as nbgrader marks it."""
    made = (new_markdown_cell if name == "explain" else new_code_cell)(f"# released: {name}")
    made.metadata["nbgrader"] = {
        "schema_version": 3, "grade_id": name, "cell_type": made.cell_type, "task": False,
        "grade": name in POINTS, "solution": name in ANSWERS, "locked": name not in ANSWERS,
    }  # fmt: skip
    if name in POINTS:
        made.metadata.nbgrader["points"] = POINTS[name]
    made.metadata.nbgrader["checksum"] = compute_checksum(made)
    return made


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A gradebook that knows these cells in another order than the source."""
    url = f"sqlite:///{tmp_path_factory.mktemp('course')}/gradebook.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nbgrader.api.get_alembic_version", lambda: "any")  # which takes seconds, and nothing is upgraded
        gradebook = Gradebook(url)
    with gradebook:
        gradebook.add_assignment("ps")
        gradebook.add_notebook("nb", "ps")
        for known in map(cell, sorted(CELLS, reverse=True)):
            marks, kind = known.metadata.nbgrader, {"cell_type": known.cell_type}
            kept = {"source": known.source, "checksum": marks.checksum, "locked": marks.locked}
            gradebook.add_source_cell(marks.grade_id, "nb", "ps", **kept, **kind)
            if marks.grade:
                gradebook.add_grade_cell(marks.grade_id, "nb", "ps", max_score=marks.points, **kind)
            if marks.solution:
                gradebook.add_solution_cell(marks.grade_id, "nb", "ps")
    return url


@pytest.fixture
def course(tmp_path, url):
    """A function that restores a notebook of these cells; its `source` is the source notebook's path."""
    source = tmp_path / "source" / "ps" / "nb.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(new_notebook(cells=[new_markdown_cell("A title."), *map(cell, CELLS)]), source)
    converter, exporter = Configurable(), Configurable()
    converter.coursedir, exporter.parent = CourseDirectory(root=str(tmp_path)), converter

    def restored(*cells, notebook="nb"):
        resources = {"nbgrader": {"notebook": notebook, "assignment": "ps", "db_url": url}}
        return RestoreCells(parent=exporter).preprocess(new_notebook(cells=list(cells)), resources)[0].cells

    restored.source = source
    return restored


def names(cells):
    return list(map(grade_id, cells))


def test_missing_cells_come_back_in_the_order_of_the_source_and_those_of_the_student_stay(course):
    own = new_code_cell("print('mine')")
    assert names(course(own, *map(cell, CELLS))) == [None, *CELLS], "nothing is missing"
    assert names(course(cell("imports"), own, cell("last test"))) == [*CELLS[:4], None, "last test"]
    assert names(course(own, cell("answer"))) == ["imports", None, *CELLS[1:]]


def test_a_cell_comes_back_as_it_was_released(course):
    (found,) = (c for c in course(*(cell(name) for name in CELLS if name != "explain")) if c.cell_type == "markdown")
    expected = cell("explain")
    assert (found.source, found.metadata) == (expected.source, expected.metadata)
    assert [c.metadata for c in course()] == [cell(name).metadata for name in CELLS]


def test_without_the_source_they_come_back_in_the_order_of_the_gradebook(course):
    course.source.unlink()
    assert sorted(names(course())) == sorted(CELLS)


def test_a_cell_that_the_source_has_no_more_comes_back_last(course):
    nbformat.write(new_notebook(cells=[cell(name) for name in CELLS if name != "answer"]), course.source)
    assert names(course()) == [*(name for name in CELLS if name != "answer"), "answer"]


def test_a_notebook_that_the_gradebook_does_not_know_stays_as_it_is(course):
    own = new_code_cell("print('mine')")
    assert [c.source for c in course(own, notebook="other")] == [own.source]
