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


class ExecuteToTheEnd(Execute):
    """Run a notebook; whatever happens to its kernel, the cells that ran keep their outputs, and so their points.

    nbgrader 0.9 drops a submission whose kernel dies or no longer answers, takes any text on standard error for a
    failure, gives every cell its own limit and the notebook none, and keeps all that is printed.
    """

    notebook_limit = Integer(300, help="Seconds for the whole notebook.").tag(config=True)
    most_output = Integer(1_000_000, help="Letters that are kept of what a cell prints.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict, km=None) -> tuple[NotebookNode, dict]:
        """Run all cells, as far as time and kernel go."""
        self._end = time.monotonic() + self.notebook_limit
        self._stopped, self._printed = "", 0
        nb, resources = super().preprocess(nb, resources, km)
        for cell in nb.cells:
            if cell.get("outputs"):
                cell.outputs = writable(cell.outputs)
        return nb, resources

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        """Run one cell, or say in its output why it did not run."""
        if cell.cell_type != "code" or not cell.source.strip():
            return cell, resources
        self._printed = 0
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
        cell.outputs = joined(cell.outputs)
        return cell, resources

    def output(self, outs, msg: dict, display_id, cell_index: int):
        """Keep an output, until too much is printed."""
        if msg["msg_type"] == "stream":
            room = self.most_output - self._printed
            self._printed += len(msg["content"]["text"])
            if room <= 0:
                return None
            msg["content"]["text"] = msg["content"]["text"][:room]
        return super().output(outs, msg, display_id, cell_index)

    def starved(self) -> float:
        """Seconds in which the kernel was ready to run, and the machine had no processor for it."""
        provisioner = self.km.provisioner if self.km is not None else None
        number = getattr(provisioner, "kernel_pid", None) or getattr(provisioner, "pid", None)
        return starved(number) if number else 0.0

    def _get_timeout(self, cell: NotebookNode | None) -> int | None:
        left = max(1, math.ceil(self._end - time.monotonic()))
        return min(super()._get_timeout(cell) or left, left)

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


def writable(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The same outputs, with a question mark for each half of a surrogate pair, which no file can hold."""
    text = json.dumps(outputs, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return nbformat.from_dict(json.loads(text.encode(errors="replace")))
    return outputs
