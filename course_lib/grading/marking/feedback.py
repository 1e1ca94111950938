"""The pages that tell students what they earned, and why: nbgrader's, made side by side."""

import contextlib
import json
import math
import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from course_lib._extras import needed
from course_lib.grading.marking.alone import GRADING, Apart, open_course, reason, wait_for_one

with needed("lab"):
    from jinja2 import FileSystemBytecodeCache
    from nbconvert.exporters import HTMLExporter, TemplateExporter
    from nbconvert.filters import Highlight2HTML
    from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
    from nbgrader.apps.api import NbGraderAPI
    from traitlets import Unicode
    from traitlets.config import Config

SHARE, SHARE_S = 10, 120  # how many students' a process makes, and the seconds it has; each takes less than one
IMAGES = "image/", "<img", "!["  # of which a notebook has one where it has an image
LOOKED_AT = "<img", "jp-notebook"  # where nbconvert changes a finished page


class Highlighted(Highlight2HTML):
    """nbconvert's, which remembers: it takes half of a page's time, and works share most of their cells."""

    _known: ClassVar[dict[tuple, str]] = {}

    def __call__(self, source, language=None, metadata=None):
        """Code as HTML."""
        magic = (metadata or {}).get("magics_language")  # the language of a cell that begins with %%
        key = source, language or self.pygments_lexer, magic, repr(self.extra_formatter_options)
        if key not in self._known:
            self._known[key] = super().__call__(source, language, metadata)
        return self._known[key]


class Compiled(FileSystemBytecodeCache):
    """A folder of compiled templates, which may be full."""

    def dump_bytecode(self, bucket) -> None:
        """Keep one, if that can be."""
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


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
        if isinstance(self.filters.get("highlight_code"), Highlighted | None):  # of the notebook before, or nobody's
            self.filters = {**self.filters, "highlight_code": Highlighted(pygments_lexer=lexer, parent=self)}
        if not any(each in json.dumps(nb).lower() for each in IMAGES):
            given = self._init_resources(resources)
            kinds = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=given)
            self.register_filter("filter_data_type", kinds)
            self.register_filter("highlight_code", self.filters["highlight_code"])
            page, found = TemplateExporter.from_notebook_node(self, nb, given, **more)
            if _is_left_as_it_is(page.lower()):
                return page, found
        return super().from_notebook_node(nb, resources, **more)

    def _create_environment(self):
        environment = super()._create_environment()
        if self.compiled:
            environment.bytecode_cache = Compiled(self.compiled)
        return environment


def _is_left_as_it_is(page: str) -> bool:
    """Whether nbconvert would change nothing. What becomes of a comment without an end is left to it."""
    return not any(each in page for each in LOOKED_AT) and page.count("<!--") == page.count("-->")


def feedback(root: Path, assignment: str, students: Iterable[str], jobs: int) -> Iterator[tuple[str, str]]:
    """Make these students' feedback, in so many processes at a time.

    A process makes several students', which have most cells in common. If it ends, or takes too long, each of them gets
    one of their own, so that nobody's page stops another's.

    root : the folder of the course

    Yields
    ------
    A student, when it is over, and "" or why there is none.
    """
    students = list(students)
    size = min(SHARE, math.ceil(len(students) / jobs)) or 1
    waiting = deque(students[first : first + size] for first in range(0, len(students), size))
    running: list[tuple[list[str], Apart]] = []
    compiled = root / GRADING / "templates"
    with contextlib.suppress(OSError):
        compiled.mkdir(parents=True, exist_ok=True)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                share = waiting.popleft()
                try:
                    running.append((share, Apart(SHARE_S, pages, root, assignment, share, str(compiled))))
                except OSError as error:  # there may be no more processes
                    if running:
                        waiting.appendleft(share)
                        break
                    yield from ((student, _why(error)) for student in share)
            if running:
                wait_for_one([work for _, work in running])
            for share, work in [each for each in running if each[1].is_over]:
                running.remove((share, work))
                try:
                    yield from work.result().items()
                except Exception as error:  # whatever it is, the next student gets feedback
                    if len(share) == 1:
                        yield share[0], _why(error)
                    else:
                        waiting.extend([student] for student in share)
    finally:
        for _, work in running:
            work.stop()
        shutil.rmtree(root / GRADING, ignore_errors=True)


def pages(root: Path, assignment: str, students: Iterable[str], compiled: str = "") -> dict[str, str]:
    """Let nbgrader make students' feedback, from what stands in autograded/: for each "" or why it did not.

    compiled : a folder in which templates are kept, for whoever comes next
    """
    course = open_course(root)
    settings = Config({"FeedbackExporter": {"compiled": compiled}})
    if "exporter_class" not in course.config.GenerateFeedback:
        settings.GenerateFeedback.exporter_class = FeedbackExporter
    course.update_config(settings)
    api, found = NbGraderAPI(course.coursedir, parent=course), {}
    for student in students:
        try:
            said = api.generate_feedback(assignment, student, force=True)
            found[student] = "" if said["success"] else reason(said)
        except Exception as error:  # whatever it is, the next student gets feedback
            found[student] = _why(error)
    return found


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
