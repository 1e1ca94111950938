"""The pages that tell students what they earned, and why: nbgrader's, made side by side."""

import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from course_lib._extras import needed
from course_lib.grading.marking.alone import Apart, open_course, reason, wait_for_one

with needed("lab"):
    from jinja2 import FileSystemBytecodeCache
    from nbconvert.exporters import HTMLExporter, TemplateExporter
    from nbconvert.filters import Highlight2HTML
    from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
    from nbgrader.apps.api import NbGraderAPI
    from traitlets import Unicode
    from traitlets.config import Config

PAGE_S = 120  # for one student's; they take less than one
LOOKED_AT = "<img", "jp-Notebook"  # where nbconvert changes a finished page


class FeedbackExporter(HTMLExporter):
    """nbconvert's, which reads no page a second time that it leaves as it is.

    nbconvert 7 parses each finished page, to describe images and to let the keyboard reach the cells of JupyterLab's
    templates. nbgrader's own has no such cells, and for a page without images that is three quarters of its time.
    """

    compiled = Unicode("", help="A folder in which compiled templates are kept.").tag(config=True)

    def from_notebook_node(self, nb, resources=None, **more):
        """The page, and the resources."""
        language = nb.metadata.get("language_info", {})
        lexer = language.get("pygments_lexer", language.get("name"))
        given = self._init_resources(resources)
        kinds = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=given)
        self.register_filter("highlight_code", Highlight2HTML(pygments_lexer=lexer, parent=self))
        self.register_filter("filter_data_type", kinds)
        page, found = TemplateExporter.from_notebook_node(self, nb, given, **more)
        if any(each in page for each in LOOKED_AT):
            return super().from_notebook_node(nb, resources, **more)
        return page, found

    def _create_environment(self):
        environment = super()._create_environment()
        if self.compiled:
            environment.bytecode_cache = FileSystemBytecodeCache(self.compiled)
        return environment


def feedback(root: Path, assignment: str, students: Iterable[str], jobs: int) -> Iterator[tuple[str, str]]:
    """Make these students' feedback, so many at a time, each in a process of its own: it can stop nobody else's.

    root : the folder of the course

    Yields
    ------
    A student, as soon as it is over, and "" or why there is none.
    """
    waiting, running = deque(students), {}
    with tempfile.TemporaryDirectory(prefix="templates-", ignore_cleanup_errors=True) as compiled:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    student = waiting.popleft()
                    try:
                        running[student] = Apart(PAGE_S, feedback_alone, root, assignment, student, compiled)
                    except OSError as error:  # there may be no more processes
                        yield student, str(error)
                if running:
                    wait_for_one(list(running.values()))
                for student in [student for student, work in running.items() if work.is_over]:
                    try:
                        yield student, running.pop(student).result()
                    except Exception as error:  # whatever it is, the next student gets feedback
                        yield student, str(error)
        finally:
            for work in running.values():
                work.stop()


def feedback_alone(root: Path, assignment: str, student: str, compiled: str = "") -> str:
    """Let nbgrader make one student's feedback, from what stands in autograded/; "" or why it did not.

    compiled : a folder in which templates are kept, for whoever comes next
    """
    course = open_course(root)
    settings = Config({"FeedbackExporter": {"compiled": compiled}})
    if "exporter_class" not in course.config.GenerateFeedback:
        settings.GenerateFeedback.exporter_class = FeedbackExporter
    course.update_config(settings)
    said = NbGraderAPI(course.coursedir, parent=course).generate_feedback(assignment, student, force=True)
    return "" if said["success"] else reason(said)
