"""nbgrader's Execute, with a limit for the whole notebook and points that outlive their kernel."""

import json
import math
import time

from course_lib._extras import needed
from course_lib.grading.clock import starved

with needed("lab"):
    import nbformat
    from jupyter_core.utils import run_sync
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from nbformat import NotebookNode
    from nbgrader.preprocessors import Execute
    from traitlets import Integer

STOPPED = "NotebookStopped"  # the name of the error in every cell that did not run
LEFT_OUT = "\n(Too much was printed. What came after this is not kept.)\n"
SHORTEST = 1_000  # letters of an error that are kept in any case


class ExecuteToTheEnd(Execute):
    """Run a notebook; whatever happens to its kernel, the cells that ran keep their outputs, and so their points.

    nbgrader 0.9 drops a submission whose kernel dies or no longer answers, takes any text on standard error for a
    failure, gives every cell its own limit and the notebook none, and keeps all that is printed and raised.
    """

    notebook_limit = Integer(300, help="Seconds for the whole notebook.").tag(config=True)
    most_output = Integer(1_000_000, help="Letters that are kept of what a cell prints.").tag(config=True)
    most_in_all = Integer(10_000_000, help="Letters that are kept of what a notebook's cells show.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict, km=None) -> tuple[NotebookNode, dict]:
        """Run all cells, as far as time and kernel go."""
        self._end = time.monotonic() + self.notebook_limit
        self._stopped, self._kept = "", 0
        self._begin()
        nb, resources = super().preprocess(nb, resources, km)
        for cell in nb.cells:
            if cell.get("outputs"):
                cell.outputs = writable(cell.outputs)
        return nb, resources

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        """Run one cell, or say in its output why it did not run."""
        if cell.cell_type != "code" or not cell.source.strip():
            return cell, resources
        self._begin()
        if not self._stopped and time.monotonic() > self._end:
            self._stop(f"the notebook's {self.notebook_limit} seconds were over")
        if self._stopped:
            cell.outputs = [self._notice()]
            return cell, resources
        try:
            cell, resources = super().preprocess_cell(cell, resources, index)
        except DeadKernelError:
            self._stop(f"the code ended its own kernel in cell {index + 1}")
            cell.outputs.append(self._notice())
        except CellTimeoutError:
            self._stop(f"cell {index + 1} ran on, and could not be interrupted")
            cell.outputs.append(self._notice())
        for output in cell.outputs:  # a warning, or a thread of an earlier part, is no failure: an error has a type
            if output.output_type == "stream":
                output.name = "stdout"
            elif output.output_type == "error":
                shorten(output, max(SHORTEST, self.most_output - self._printed))
        cell.outputs = joined(cell.outputs)
        self._kept += len(str(cell.outputs))
        return cell, resources

    def output(self, outs, msg: dict, display_id, cell_index: int):
        """Keep an output, until too much is printed."""
        if msg["msg_type"] == "stream":
            text = msg["content"]["text"]
            room = max(0, self.most_output - len(LEFT_OUT) - self._printed)
            self._printed += len(text)
            if len(text) > room:
                if self._told:
                    return None
                self._told = True
                msg["content"]["text"] = text[:room] + LEFT_OUT
        return super().output(outs, msg, display_id, cell_index)

    def starved(self) -> float:
        """Seconds in which the kernel was ready to run, and the machine had no processor for it."""
        provisioner = self.km.provisioner if self.km is not None else None
        number = getattr(provisioner, "kernel_pid", None) or getattr(provisioner, "pid", None)
        return starved(number) if number else 0.0

    def _get_timeout(self, cell: NotebookNode | None) -> int | None:
        left = max(1, math.ceil(self._end - time.monotonic()))
        return min(super()._get_timeout(cell) or left, left)

    def _begin(self) -> None:
        """A cell has its own room for what it prints, or what the cells before it left of the notebook's."""
        self._printed, self._told = max(0, self.most_output + self._kept - self.most_in_all), False

    def _stop(self, why: str) -> None:
        self._stopped = f"Stopped: {why}. What was earned before that stays."
        run_sync(self.km.shutdown_kernel)(now=True)

    def _notice(self) -> NotebookNode:
        return nbformat.v4.new_output("error", ename=STOPPED, evalue=self._stopped, traceback=[self._stopped])


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The same outputs, where each stream has in one piece what a kernel, as time went on, sent in several.

    So a notebook that is graded again shows the same, and its feedback need not be made again.
    """
    found: list[NotebookNode] = []
    for output in outputs:
        if found and output.output_type == "stream" == found[-1].output_type and output.name == found[-1].name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def shorten(error: NotebookNode, most: int) -> None:
    """Cut what an error says where it has more letters than `most`: its text may be of any size."""
    trace = "\n".join(map(str, error.traceback))
    if len(error.ename) + len(error.evalue) + len(trace) > most:
        error.ename, error.evalue, error.traceback = error.ename[:100], error.evalue[: most // 2], [trace[: most // 2]]


def writable(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The same outputs, with a question mark for each half of a surrogate pair, which no file can hold."""
    text = json.dumps(outputs, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return nbformat.from_dict(json.loads(text.encode(errors="replace")))
    return outputs
