"""The packages that are there when a notebook is graded, written into it when it is released."""

from course_lib._extras import needed
from course_lib.grading.outside.execute import ExecuteOutside

with needed("lab"):
    from nbformat import NotebookNode
    from nbgrader.preprocessors import NbGraderPreprocessor
    from nbgrader.utils import is_grade, is_locked

LINES = """{source}

from course_lib.grading import graded_with  # the packages that are there when this notebook is graded

graded_with({packages})"""


class NamePackages(NbGraderPreprocessor):
    """Name them in the first cell of code that is the course's own, so that public checks can say what is not there.

    Use it in nbgrader_config.py, as the first of `GenerateAssignment.preprocessors`.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """The notebook with these lines, if its assignment is marked from outside."""
        packages = ExecuteOutside(config=self.config).assignments.get(resources["nbgrader"]["assignment"])
        own = [cell for cell in nb.cells if cell.cell_type == "code" and is_locked(cell) and not is_grade(cell)]
        own = [cell for cell in own if not cell.source.lstrip().startswith("%%")]  # which would be the magic's
        said = any("graded_with(" in cell.source for cell in nb.cells)  # nbgrader may read a configuration twice
        if packages and own and not said:
            own[0].source = LINES.format(source=own[0].source, packages=", ".join(f'"{name}"' for name in packages))
        return nb, resources
