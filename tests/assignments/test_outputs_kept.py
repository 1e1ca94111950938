"""What cells show is kept up to a limit, of each and of all: no work fills a disk, and what ran has its points."""

import nbformat
import pytest

from course_lib.grading.marking.execute import LEFT_OUT, ExecuteToTheEnd

PRINTS, RAISES = "print('x' * 30_000)\n1 + 1", "raise ValueError('x' * 30_000)"
LONG_NAME = "raise type('X' * 30_000, (Exception,), {})"
PICTURE = "print('x' * 100)\ndisplay({'text/html': 'y' * 30_000}, raw=True)"
SMALL = "print('x' * 100)\ndisplay({'text/html': 'y' * 15_000}, raw=True)"
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


def test_pictures_count_as_well_and_that_they_are_missing_is_said_once(tmp_path):
    """The second is too large for its cell, the third for what the notebook has left."""
    many, small, large = PICTURE + "\n" + PICTURE, SMALL + "\n1 + 1", PICTURE + "\n1 + 1"
    cells = shown(tmp_path, small, many, small, large, small, most_in_all=40_000)
    kinds = [[each.get("text") or [*each.data] for each in outputs] for outputs in cells]
    printed, picture, result = "x" * 100 + "\n", ["text/html"], ["text/plain"]
    assert kinds[0] == [printed, picture, result] == kinds[2]
    assert kinds[1] == [printed + LEFT_OUT]
    assert kinds[3] == [printed + LEFT_OUT, result]
    assert kinds[4] == [printed + LEFT_OUT, result], "what may be points is kept"


def test_a_display_that_is_updated_counts_as_it_is_then(tmp_path):
    """Nine times in place of itself is no more than once, nine of them are, and later cells have what is left."""
    begin = "print('a')\nshown = [display({'text/html': 'y'}, raw=True, display_id=str(i)) for i in range(9)]"
    update = "for i in range({0}): shown[i * {1}].update({{'text/html': str(i) * 9_000}}, raw=True)\nprint('b')"
    first, again, more, last = shown(
        tmp_path, begin, update.format(9, 0), update.format(9, 1), "print('x' * 15_000)", most_in_all=29_000
    )
    assert again[0].text == "b\n" and more[0].text == LEFT_OUT
    assert last[0].text.endswith(LEFT_OUT) and len(last[0].text) < 2_000
    sizes = [len(each.data["text/html"]) for each in first[1:]]
    assert sizes == [9_000, 9_000, 9_000, *[1] * 6] and first[1].data["text/html"][0] == "0"


def test_a_display_is_updated_where_it_stands_or_not_at_all(tmp_path):
    """Streams in pieces, which are one afterwards, and a display that the cell itself has cleared."""
    begin = "import sys, time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(.3)\n"
    begin += "    print(i, file=sys.stderr, flush=True)\n"
    begin += "shown = display({'text/html': 'old'}, raw=True, display_id='a')\nprint('end')"
    update = "shown.update({'text/html': 'new'}, raw=True)"
    cleared = "shown = display('one', display_id='b')\nfrom IPython.display import clear_output\nclear_output()"
    first, second, _, fourth = shown(tmp_path, begin, update, cleared, update)
    assert [each.data["text/html"] for each in first if "data" in each] == ["new"] and second == fourth == []


@pytest.mark.parametrize("code", [RAISES, LONG_NAME], ids=["what it says", "its name"])
def test_an_error_has_a_limit_too(tmp_path, code):
    first, *_, last = shown(tmp_path, *[code] * 4, "1 / 0", most_in_all=25_000)
    assert all(len(str(error)) < LETTERS * 1.1 for error in first)
    assert first[0].evalue.startswith("x") or first[0].ename.startswith("X")
    assert last[0].ename == "ZeroDivisionError" and last[0].evalue == "division by zero"


def test_a_usual_notebook_is_kept_as_it_is(tmp_path):
    printed, raised = shown(tmp_path, "print('x' * 15_000)", "1 / 0")
    assert printed[0].text == "x" * 15_000 + "\n" and len(raised[0].traceback) > 1


def test_no_display_is_looked_for_where_there_is_none():
    """As where a cell keeps but what it printed, in which an earlier part of it had shown something."""
    execute, cell = ExecuteToTheEnd(), nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("stream", text="a")])
    execute.nb, execute._display_id_map = nbformat.v4.new_notebook(cells=[cell]), {"a": {0: [0, 5]}}
    execute._place = execute._printed = execute._kept = 0
    content = {"data": {"text/plain": "x"}, "metadata": {}, "transient": {"display_id": "a"}}
    execute._update_display_id("a", {"header": {"msg_type": "update_display_data"}, "content": content})
    assert cell.outputs[0] == {"output_type": "stream", "name": "stdout", "text": "a"} and execute._printed == 0
