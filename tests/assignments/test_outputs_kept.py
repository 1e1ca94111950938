"""What cells show is kept up to a limit, of each and of all: no work fills a disk, and what ran has its points."""

import nbformat
import pytest

from course_lib.grading.marking.execute import LEFT_OUT, ExecuteToTheEnd

PRINTS, RAISES = "print('x' * 30_000)\n1 + 1", "raise ValueError('x' * 30_000)"
LONG_NAME = "raise type('X' * 30_000, (Exception,), {})"
PICTURE = "print('x' * 100)\ndisplay({'text/html': 'y' * 30_000}, raw=True)"
LETTERS = 20_000


def shown(tmp_path, *sources, **limits):
    """The outputs of every cell, where one may have 20,000 letters."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    patience = {"startup_timeout": 600, "timeout": 1800, "iopub_timeout": 600, "notebook_limit": 3600}
    execute = ExecuteToTheEnd(kernel_name="python3", most_output=LETTERS, **patience, **limits)
    execute.preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    return [cell.outputs for cell in notebook.cells]


def test_the_cells_of_a_notebook_have_a_limit_together(tmp_path):
    """The first two have all that a cell may have, the third what is left, the others the notice, and all their end."""
    cells = shown(tmp_path, *[PRINTS] * 5, most_in_all=50_000)
    sizes = [len(printed.text) for printed, _ in cells]
    assert sizes[:2] == [LETTERS, LETTERS] and len(LEFT_OUT) < sizes[2] < LETTERS and sizes[3:] == [len(LEFT_OUT)] * 2
    assert all(printed.text.endswith(LEFT_OUT) for printed, _ in cells)
    assert [ended.data["text/plain"] for _, ended in cells] == ["2"] * 5


def test_pictures_count_as_well(tmp_path):
    cells = shown(tmp_path, PICTURE, PICTURE, most_in_all=30_000)
    assert [printed.text == LEFT_OUT for printed, _ in cells] == [False, True]


@pytest.mark.parametrize("code", [RAISES, LONG_NAME], ids=["what it says", "its name"])
def test_an_error_has_a_limit_too(tmp_path, code):
    first, *_, last = shown(tmp_path, *[code] * 4, "1 / 0", most_in_all=25_000)
    assert all(len(str(error)) < LETTERS * 1.1 for error in first)
    assert first[0].evalue.startswith("x") or first[0].ename.startswith("X")
    assert last[0].ename == "ZeroDivisionError" and last[0].evalue == "division by zero"


def test_a_usual_notebook_is_kept_as_it_is(tmp_path):
    printed, raised = shown(tmp_path, "print('x' * 15_000)", "1 / 0")
    assert printed[0].text == "x" * 15_000 + "\n" and len(raised[0].traceback) > 1
