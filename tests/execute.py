"""Run lectures again and keep their outputs: what `make notebooks` does.

    python tests/execute.py                          all of notebooks/, one after the other
    python tests/execute.py 21 33-fine-tuning-bert   some, by name or by the beginning of it
    python tests/execute.py --kernel course-gpu-0    on another registered kernel

A notebook is replaced only when it ran to its end, in one step, so an error or an interruption
leaves it as it was. What differs from run to run or from machine to machine is left out: stderr,
timings, widget state, the Python version and the kernel it happened to run on. What JupyterLab folds
is folded, and the first cell asks whether the kernel has the course.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":  # the imports take a second, and a traceback of them tells nobody anything
    signal.signal(signal.SIGINT, lambda *_: os.write(2, b"\nInterrupted.\n") and os._exit(130))

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from tqdm import tqdm

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
FOLDED = {"hide-input", "hide-cell", "remove-cell", "remove-input"}
COLLAPSED = re.compile(r"#+ (?:Solution|For the curious)\b")
GUARD = """\
# Has this kernel the course?
import sys
from importlib.util import find_spec

sys.path.append("..")  # a lecture reads its experiments from the folder of the course
if find_spec("course_lib") is None:
    raise ModuleNotFoundError(
        "this kernel lacks course_lib, the library of the course. In JupyterLab opened by `make lab`, choose the kernel"
        ' "Course (CPU)" (Kernel > Change Kernel); elsewhere, `pip install ".[torch,tensorflow,lectures]"` in the'
        " folder of the course, and restart the kernel"
    )

# before TensorFlow itself, whose start-up banner it holds back
import course_lib.tensorflow  # noqa: F401"""


def chosen(names: list[str], folder: Path = NOTEBOOKS) -> list[Path]:
    """Return the notebooks meant by ``names``, in lecture order; all of ``folder`` for no names.

    Raises ValueError for a name that no notebook, or more than one, begins with.
    """
    everything = sorted(folder.glob("*.ipynb"), key=lambda path: path.stem)
    if not names:
        return everything
    found = set()
    for name in names:
        stem = Path(name).name.removesuffix(".ipynb")
        matches = [path for path in everything if path.stem == stem]
        matches = matches or [path for path in everything if path.stem.startswith(stem)]
        if len(matches) != 1:
            fitting = ", ".join(path.stem for path in matches or everything) or "none"
            raise ValueError(f"{name!r} names {len(matches)} notebooks; choose among: {fitting}")
        found.update(matches)
    return [path for path in everything if path in found]


def run(path: Path, kernel: str = KERNELSPEC["name"], bar: tqdm | None = None) -> list[str]:
    """Execute one notebook, replace the file, and return what its cells wrote to stderr.

    Raises CellExecutionError if a cell fails, DeadKernelError if its kernel dies, KeyboardInterrupt for Ctrl-C.
    """
    notebook = dress(nbformat.read(path, as_version=4))
    advance = (lambda **_: bar.update()) if bar is not None else None
    client = NotebookClient(
        notebook,
        kernel_name=kernel,
        timeout=None,
        startup_timeout=600,  # where the machine is busy, a kernel takes more than the usual minute
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        on_cell_executed=advance,
    )
    with tempfile.TemporaryFile() as said:  # by the kernel itself, and its warnings need nobody's attention
        try:
            client.execute(stderr=said)
        except BaseException:
            # nbclient takes Ctrl-C for itself, stops the kernel, and then fails in one of several ways
            if hasattr(client, "_async_cleanup_kernel_future"):
                raise KeyboardInterrupt from None
            said.seek(0)
            os.write(2, said.read())
            raise
    complaints = tidy(notebook)
    replace(path, nbformat.writes(notebook) + "\n")
    return complaints


def dress(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Fold, in place, what JupyterLab is to fold, and put the question for the course before the first code.

    The code of cells whose tags fold it in the book is folded; headings of solutions, and of sections for the curious,
    are collapsed, so that what is under them stays out of sight after Run All.
    """
    for cell in notebook.cells:
        if cell.cell_type == "code" and FOLDED & set(cell.metadata.get("tags", [])):
            cell.metadata["jupyter"] = {"source_hidden": True}
        elif cell.cell_type == "markdown" and COLLAPSED.match(cell.source):
            cell.metadata["jp-MarkdownHeadingCollapsed"] = True
    first = next((i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"), None)
    if first is not None and "course_lib" in str([cell.source for cell in notebook.cells]):
        if notebook.cells[first].get("id") != "has-course":
            notebook.cells.insert(first, nbformat.v4.new_code_cell(id="has-course"))
        guard = notebook.cells[first]
        guard.source, guard.metadata = GUARD, {"tags": ["remove-cell"], "jupyter": {"source_hidden": True}}
    return notebook


def tidy(notebook: nbformat.NotebookNode) -> list[str]:
    """Take out what would differ on another machine, in place; return the text of stderr."""
    complaints = []
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            complaints += [output.text for output in cell.outputs if output.get("name") == "stderr"]
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.kernelspec = dict(KERNELSPEC)
    notebook.metadata.get("language_info", {}).pop("version", None)
    notebook.metadata.pop("widgets", None)
    return complaints


def replace(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in one step, unless it stands there already."""
    if path.read_text(encoding="utf-8") == text:
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.chmod(path.stat().st_mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def code_cells(path: Path) -> int:
    """Return how many cells the bar will count; nbclient skips empty ones."""
    cells = nbformat.read(path, as_version=4).cells
    return sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in cells)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 1 if a notebook failed, 2 for a name that fits none."""
    parser = argparse.ArgumentParser(description="Run lectures again in place.")
    parser.add_argument("names", nargs="*", help="names of notebooks, or how they begin (default: all)")
    parser.add_argument("--kernel", default="python3", help="a registered kernel (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        paths = chosen(options.names)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2

    failed = []
    for path in paths:
        start = time.monotonic()
        # disable=None: no bar where nobody watches, such as in a log
        with tqdm(total=code_cells(path), desc=path.stem, unit="cell", leave=False, disable=None) as bar:
            try:
                complaints = run(path, options.kernel, bar)
            except (CellExecutionError, DeadKernelError) as error:
                failed.append(path.stem)
                complaints = []
                bar.write(f"{path.stem} failed and is left as it was:\n{COLOURS.sub('', str(error))}")
                continue
            except KeyboardInterrupt:
                bar.write(f"{path.stem} was interrupted and is left as it was.")
                return 130
        print(f"{path.stem}: {code_cells(path)} cells in {time.monotonic() - start:.0f} s", flush=True)
        for text in filter(None, map(str.strip, complaints)):
            print(f"  stderr, left out: {text.splitlines()[0][:100]}")
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
