"""``make notebooks``: a run that succeeds replaces the outputs, and nothing else changes the file."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError, DeadKernelError

SCRIPT = Path(__file__).parents[1] / "execute.py"
SPEC = importlib.util.spec_from_file_location("execute", SCRIPT)
execute = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(execute)


def write(path, *sources, **metadata):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells.insert(0, nbformat.v4.new_markdown_cell("# A lecture"))
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.write(notebook, path)
    return path


def test_what_jupyterlab_folds_is_folded_and_the_first_cell_asks_for_the_course(tmp_path, monkeypatch):
    without, tensorflow, _ = execute.GUARD.partition("\n\n# before TensorFlow")
    assert tensorflow, "which takes seconds to import, and is by another test"
    monkeypatch.setattr(execute, "GUARD", without)
    path = write(tmp_path / "01-first.ipynb", "import course_lib", "1 + 1", "2 + 2")
    lecture = nbformat.read(path, as_version=4)
    lecture.cells[2].metadata["tags"] = ["hide-input"]
    lecture.cells[3].metadata["tags"] = ["solution"]
    lecture.cells.insert(3, nbformat.v4.new_markdown_cell("##### Solution"))
    nbformat.write(lecture, path)
    for _ in range(2):  # the second run changes nothing
        execute.run(path)
        title, guard, use, folded, heading, solution = nbformat.read(path, as_version=4).cells
        assert "course_lib" in guard.source and guard.metadata.tags == ["remove-cell"]
        assert guard.metadata.jupyter.source_hidden and folded.metadata.jupyter.source_hidden
        assert heading.metadata["jp-MarkdownHeadingCollapsed"]
        assert "jupyter" not in use.metadata and "jupyter" not in solution.metadata


def test_a_kernel_without_the_course_is_told_what_to_do():
    alone = [sys.executable, "-I", "-S", "-c", execute.GUARD]  # without site-packages and the folder it runs in
    result = subprocess.run(alone, capture_output=True, text=True)
    assert result.returncode == 1 and "Change Kernel" in result.stderr and "pip install" in result.stderr
    here = subprocess.run([sys.executable, "-c", execute.GUARD], cwd=SCRIPT.parents[1], capture_output=True, text=True)
    assert (here.returncode, here.stdout, here.stderr) == (0, "", "")


def test_outputs_are_kept_and_what_varies_is_left_out(tmp_path):
    path = write(
        tmp_path / "01-first.ipynb",
        "import sys\nfor i in range(3):\n    print(i, flush=True)\nprint('noise', file=sys.stderr)",
        "6 * 7",
        kernelspec={"name": "course-gpu-0", "display_name": "Course (GPU 0)", "language": "python"},
        authors=[{"name": "kept"}],
    )
    before = nbformat.read(path, as_version=4)
    before.cells[2].metadata = {"tags": ["torch"], "mystnb": {"image": {"alt": "kept"}}}
    nbformat.write(before, path)
    path.chmod(0o640)

    assert execute.run(path) == ["noise\n"]

    after = nbformat.read(path, as_version=4)
    nbformat.validate(after)
    assert [cell.id for cell in after.cells] == [cell.id for cell in before.cells]
    assert after.cells[1].outputs == [{"output_type": "stream", "name": "stdout", "text": "0\n1\n2\n"}]
    assert after.cells[2].outputs[0].data["text/plain"] == "42"
    assert after.cells[2].metadata == before.cells[2].metadata
    assert after.metadata.authors == [{"name": "kept"}]
    assert after.metadata.kernelspec.name == "python3"
    assert after.metadata.language_info.pygments_lexer == "ipython3"
    assert "version" not in after.metadata.language_info
    assert path.stat().st_mode & 0o777 == 0o640

    content, stamp = path.read_bytes(), os.stat(path).st_mtime_ns
    execute.run(path)
    assert (path.read_bytes(), os.stat(path).st_mtime_ns) == (content, stamp)  # a second run leaves no diff
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("source", "error"),
    [("1 / 0", CellExecutionError), ("import os; os._exit(1)", DeadKernelError)],
)
def test_a_notebook_that_fails_is_left_as_it_was(tmp_path, source, error):
    path = write(tmp_path / "02-second.ipynb", "print('new output')", source)
    before = path.read_bytes()
    with pytest.raises(error):
        execute.run(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_the_command_goes_on_after_a_failure_and_reports_it(tmp_path, monkeypatch, capsys):
    write(tmp_path / "01-fails.ipynb", "raise RuntimeError('on purpose')")
    fine = write(tmp_path / "02-runs.ipynb", "print('ran')", "")
    monkeypatch.setattr(execute, "chosen", lambda names: sorted(tmp_path.glob("*.ipynb")))
    assert execute.main([]) == 1
    said = capsys.readouterr()
    assert "RuntimeError: on purpose" in said.out + said.err
    assert "\x1b" not in said.out
    assert "02-runs: 1 cells" in said.out
    assert said.err.strip().endswith("Failed: 01-fails")
    assert "ran" in fine.read_text()


def test_notebooks_are_chosen_by_name_or_its_beginning(tmp_path):
    for name in ("03-one", "04-two", "04-two-more", "10-three"):
        write(tmp_path / f"{name}.ipynb")
    stems = lambda *names: [path.stem for path in execute.chosen(list(names), tmp_path)]  # noqa: E731
    assert stems() == ["03-one", "04-two", "04-two-more", "10-three"]
    assert stems("10", "notebooks/03-one.ipynb", "10-three") == ["03-one", "10-three"]
    assert stems("04-two") == ["04-two"]
    with pytest.raises(ValueError, match="'04' names 2 notebooks; choose among: 04-two, 04-two-more"):
        stems("04")
    with pytest.raises(ValueError, match="'four' names 0 notebooks; choose among: 03-one, 04-two"):
        stems("four")


def test_a_name_that_fits_nothing_ends_in_one_sentence(capsys):
    assert execute.main(["no-such-lecture"]) == 2
    assert capsys.readouterr().err.startswith("'no-such-lecture' names 0 notebooks; choose among: ")


@pytest.mark.parametrize("moment", ["imports", "run"])
def test_an_interrupted_command_ends_in_one_line(tmp_path, moment):
    """While a library is imported, and while a cell runs: the notebook is as it was."""
    begun = tmp_path / "begun"
    for name in ("tests", "notebooks", "slow"):
        (tmp_path / name).mkdir()
    shutil.copy(SCRIPT, tmp_path / "tests")
    wait = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"
    path = write(tmp_path / "notebooks" / "01-first.ipynb", wait)
    before = path.read_bytes()
    if moment == "imports":
        (tmp_path / "slow" / "nbformat.py").write_text(wait)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "slow")}
    command = [sys.executable, tmp_path / "tests" / "execute.py"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    while not begun.exists():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[0].strip()
    assert process.returncode == 130
    assert said == ("Interrupted." if moment == "imports" else "01-first was interrupted and is left as it was.")
    assert path.read_bytes() == before
