"""What students get holds no solution and no hidden test: whatever is left in is found, wherever it stands."""

import io
import json
import shutil
import zipfile

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.grading import release
from tests.support.course import ASSIGNMENT, ROOT, Course

ANSWER, HIDDEN, TEXT = 'return "softmax" * 2', "assert double(21) == 42", "Because the variance grows."


def cell(make, name, source):
    return make(source, metadata={"nbgrader": {"grade_id": name}})


@pytest.fixture
def course(tmp_path):
    """A course of one small assignment, as nbgrader leaves it: sources with answers, and the release without."""
    head = "def double(x):"
    answers = [f"{head}\n    ### BEGIN SOLUTION\n    {ANSWER}\n    ### END SOLUTION", f"# Tests\n{HIDDEN}", TEXT]
    stubs = [f"{head}\n    # YOUR CODE HERE\n    raise NotImplementedError()", "# Tests", "YOUR ANSWER HERE"]
    for folder, (code, tests, text) in (("source", answers), ("release", stubs)):
        cells = [
            new_markdown_cell("Double it."),
            cell(new_code_cell, "double", code),
            cell(new_code_cell, "test-double", tests),
            cell(new_markdown_cell, "explain", text),
        ]
        (tmp_path / folder / "one").mkdir(parents=True)
        nbformat.write(new_notebook(cells=cells), tmp_path / folder / "one" / "one.ipynb")
    return tmp_path


def proven(course):
    return release.main(["one", "--course", str(course)])


def test_a_clean_release_is_proven_and_stays(course, capsys):
    assert proven(course) == 0
    assert "None of the 5 lines" in capsys.readouterr().out  # with the two that mark the solution
    assert (course / "release" / "one" / "one.ipynb").exists()


def changed(course, change):
    path = course / "release" / "one" / "one.ipynb"
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    nbformat.write(notebook, path)


def zipped(line):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes/help.json", json.dumps({"lines": [line]}))
    return data.getvalue()


PLACES = {
    "a cell": lambda course: changed(course, lambda nb: nb.cells[0].update(source=f"Say {TEXT}")),
    "an output": lambda course: changed(
        course, lambda nb: nb.cells[1].outputs.append(new_output("stream", text=f"In [3]: {ANSWER}\n"))
    ),
    "metadata": lambda course: changed(course, lambda nb: nb.metadata.update(notes={"key": [HIDDEN]})),
    "a key": lambda course: changed(course, lambda nb: nb.metadata.update({HIDDEN: 1})),
    "a module": lambda course: (course / "release/one/double.py").write_text(f"def double(x):\n    {ANSWER}\n"),
    "a folder's file": lambda course: [
        (course / "release/one/data").mkdir(),
        (course / "release/one/data/x.csv").write_text(f"1,{HIDDEN}\n"),
    ],
    "UTF-16": lambda course: (course / "release/one/notes.txt").write_text(TEXT, encoding="utf-16"),
    "an archive": lambda course: (course / "release/one/data.zip").write_bytes(zipped(ANSWER)),
    "a name": lambda course: (course / f"release/one/{TEXT}").write_text(""),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_found_wherever_it_stands_and_is_not_handed_out(course, capsys, place):
    PLACES[place](course)
    assert proven(course) == 1
    said = capsys.readouterr().err
    assert said.startswith("1 lines of solutions or hidden tests stand in") and "which was removed" in said
    assert sum(line in said for line in (ANSWER, HIDDEN, TEXT)) == 1
    assert not (course / "release" / "one").exists()


def test_an_answer_that_another_cell_shows_is_a_secret_still(course):
    """As when an author tries a solution below its cell, and forgets that line there."""
    notebooks = [course / folder / "one" / "one.ipynb" for folder in ("source", "release")]
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        notebook.cells.append(cell(new_code_cell, "tried", f"x = 2\n{ANSWER}"))
        nbformat.write(notebook, path)
    source, released = (nbformat.read(path, as_version=4) for path in notebooks)
    assert release.secrets_of(source, released)[ANSWER] == "double"
    assert proven(course) == 1


def test_what_is_generic_may_stand_there(course):
    PLACES["a cell"](course)
    (course / release.GENERIC).write_text(f"# such lines tell nothing\n{TEXT}\n")
    assert proven(course) == 0


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda course: shutil.rmtree(course / "release"), "run nbgrader generate_assignment one"),
        (lambda course: shutil.rmtree(course / "source"), "there is no notebook in"),
        (lambda course: shutil.copytree(course / "release", course / "source", dirs_exist_ok=True), "BEGIN SOLUTION"),
    ],
)
def test_where_nothing_can_be_proven_it_says_so(course, capsys, spoil, why):
    spoil(course)
    assert proven(course) == 1
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("assignment", sorted(path.name for path in (ROOT / "assignments" / "source").iterdir()))
def test_every_assignment_of_the_course_is_released_without_its_answers(generated, tmp_path, assignment):
    if assignment == ASSIGNMENT:
        root = generated.root
    else:
        made = Course(tmp_path)
        made.nbgrader("generate_assignment", assignment)
        root = made.root
    shutil.copy(ROOT / "assignments" / release.GENERIC, root)
    assert release.prove(root, assignment) > 300
