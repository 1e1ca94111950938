"""Where points are missing because a notebook imports a package that the sandbox does not show.

The cell ends at the import, and the tests would only say that a name is not defined. Here the report says why, and the
cell that imports it gets a notice, by which the student needs attention: on another machine the work may be right.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.frameworks import OWNERS
from course_lib.grading.marking.cells import imported
from course_lib.grading.marking.execute import STOPPED
from course_lib.grading.marking.strays import bound_by, parsed
from course_lib.grading.outside.tests import names_asked_for
from course_lib.grading.sandbox.view import modules_of

with needed("lab"):
    from nbformat import NotebookNode
    from nbformat.v4 import new_output

MODULE = re.compile(r"No module named '([\w.]+)'")
UNDEFINED = re.compile(r"name '(\w+)' is not defined")


class _End(NamedTuple):
    """A cell that ended where it imports what is not there."""

    place: int
    module: str
    names: frozenset[str]  # that it was to define, and modules that it was to import


class Absent:
    """What the cells of one notebook import that is not there.

    packages : that the sandbox shows
    cells : of the notebook, as it runs
    """

    def __init__(self, packages: Iterable[str], cells: list[NotebookNode]):
        self.packages, self.cells = list(packages), cells
        self._ends: list[_End] = []

    def look(self, place: int) -> None:
        """Look at a cell of the student's that has run."""
        cell = self.cells[place]
        errors = [output for output in cell.get("outputs", []) if output.output_type == "error"]
        if not errors and self._ends:  # what it defines is there, whatever ended before
            bound = _bound(cell.source)
            self._ends = [end._replace(names=end.names - bound) for end in self._ends]
        elif errors and errors[-1].ename == ModuleNotFoundError.__name__ and (module := self._in(errors[-1].evalue)):
            self._ends.append(_End(place, module, frozenset(_bound(cell.source) | imported([cell.source]))))

    def explain(self, place: int, source: str) -> None:
        """Say in the report of a cell of hidden tests, which have this source, if points are missing for it."""
        cell = self.cells[place]
        *_, last = cell.outputs
        if last.output_type == "execute_result" and float(last.data["text/plain"]) >= cell.metadata.nbgrader.points:
            return
        shown = [output for output in cell.outputs if output.output_type == "stream"]
        said = "\n".join([output.text for output in shown] + [o.evalue for o in cell.outputs if "evalue" in o])
        asked = {*names_asked_for(source), *UNDEFINED.findall(said)} | ({*OWNERS} if "Tensors" in source else set())
        found = {end.place: end.module for end in self._ends if end.names & asked}
        if not found and (module := self._in(said)):  # a function imports it
            top = module.partition(".")[0]
            own = [n for n, each in enumerate(self.cells[:place]) if each.cell_type == "code" and not _is_graded(each)]
            found = {n: module for n in own if top in imported([self.cells[n].source])}
            found = found or dict.fromkeys(own[-1:], module)
        for where, module in found.items():
            why = (
                f"cell {where + 1} imports {module!r}, which is not among the packages of this assignment "
                f"({', '.join(self.packages)}), so that it is not there when it is graded"
            )
            text = f"Points may be missing here because {why}.\n"
            cell.outputs.insert(0, new_output("stream", name="stdout", text=text))
            self._notice(self.cells[where], f"Stopped: {why}, and points may be missing for it.")

    def _in(self, said: str) -> str:
        """The module that an error says is missing; "" where there is none, or it is of a package that is shown."""
        for module in MODULE.findall(said):
            if module.partition(".")[0] not in modules_of(self.packages):
                return module if module.startswith("course_lib.") else module.partition(".")[0]
        return ""

    @staticmethod
    def _notice(cell: NotebookNode, text: str) -> None:
        notice = new_output("error", ename=STOPPED, evalue=text, traceback=[text])
        if notice not in cell.outputs:
            cell.outputs.append(notice)


def _bound(source: str) -> set[str]:
    """The names that a cell binds."""
    tree = parsed(source)  # to take a cell apart as IPython does takes milliseconds: so, where it is needed alone
    return set().union(*map(bound_by, tree.body)) if tree else set()


def _is_graded(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("grade", False)
