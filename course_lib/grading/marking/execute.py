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
OF_ITS_OWN = "notebook_stopped"  # that of an error which the notebook itself calls so
LEFT_OUT = "\n(Too much was shown. The rest is not kept.)\n"
SHORTEST = 1_000  # letters of an error, and of a cell's result, that are kept in any case: a result may be points
RICH = ("display_data", "execute_result")


class ExecuteToTheEnd(Execute):
    """Run a notebook; whatever happens to its kernel, the cells that ran keep their outputs, and so their points.

    nbgrader 0.9 drops a submission whose kernel dies or no longer answers, takes any text on standard error for a
    failure, gives every cell its own limit and the notebook none, and keeps all that is printed and raised.
    """

    notebook_limit = Integer(300, help="Seconds for the whole notebook.").tag(config=True)
    most_output = Integer(1_000_000, help="Letters that are kept of what a cell shows.").tag(config=True)
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
                if output.ename == STOPPED and output.evalue != self._stopped:
                    output.ename = OF_ITS_OWN
                shorten(output, max(SHORTEST, self.most_output - self._printed))
        shown = cell.outputs
        cell.outputs = joined(shown)
        self._find_again(index, shown, cell.outputs)
        self._kept += len(str(cell.outputs))
        return cell, resources

    def process_message(self, msg: dict, cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        """Deal with what a kernel sends while this cell runs."""
        self._place, self._outputs = cell_index, cell.outputs
        return super().process_message(msg, cell, cell_index)

    def output(self, outs, msg: dict, display_id, cell_index: int):
        """Keep an output, until too much is shown: pictures and pages count as well as what is printed."""
        if msg["msg_type"] in (*RICH, "error"):
            size = len(str(msg["content"]))
            self._printed += size
            if self._printed > self.most_output and msg["msg_type"] in RICH:
                if msg["msg_type"] == "display_data" or size > SHORTEST or self._has_result:
                    self._say_left_out(outs)
                    return None
                self._has_result = True
        elif msg["msg_type"] == "stream":
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
        """A cell has its own room for what it shows, or what the cells before it left of the notebook's."""
        self._printed = max(0, self.most_output + self._kept - self.most_in_all)
        self._told = self._has_result = False

    def _say_left_out(self, outputs: list[NotebookNode]) -> None:
        if not self._told:
            self._told = True
            outputs.append(nbformat.v4.new_output("stream", name="stdout", text=LEFT_OUT))

    def _find_again(self, index: int, before: list[NotebookNode], after: list[NotebookNode]) -> None:
        """Where the displays of a cell, which may still be updated, stand among its outputs now."""
        now = {id(each): place for place, each in enumerate(after)}
        for places in self._display_id_map.values():
            if index in places:
                there = [id(before[place]) for place in places[index] if place < len(before)]
                places[index] = [now[each] for each in there if each in now]

    def _update_display_id(self, display_id: str, msg: dict) -> None:
        """Give displays new data if these have room, where the old have made some.

        nbclient asks neither how large they are nor whether the display is still there.
        """
        size, more = _size(msg["content"]), {}
        for index, places in self._display_id_map.get(display_id, {}).items():
            outputs = self.nb.cells[index].get("outputs", [])
            places[:] = [place for place in places if place < len(outputs) and "data" in outputs[place]]
            more[index] = sum(size - _size(outputs[place]) for place in places)
        total = sum(more.values())
        self._printed += total
        if total > 0 and self._printed > self.most_output:
            self._say_left_out(self._outputs)
            return
        self._kept += total - more.get(self._place, 0)  # that of the cell itself is counted when it has run
        super()._update_display_id(display_id, msg)

    def _stop(self, why: str) -> None:
        self._stopped = f"Stopped: {why}. What was earned before that stays."
        run_sync(self.km.shutdown_kernel)(now=True)

    def _notice(self) -> NotebookNode:
        return nbformat.v4.new_output("error", ename=STOPPED, evalue=self._stopped, traceback=[self._stopped])


def _size(shown: dict) -> int:
    return len(str(shown.get("data"))) + len(str(shown.get("metadata")))


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
