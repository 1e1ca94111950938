"""The pages that tell students what they earned, and why: nbgrader's, made side by side, with a template of ours."""

import contextlib
import json
import math
import shutil
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.alone import GRADING, open_course, reason
from course_lib.grading.marking.apart import Apart, wait_for_one
from course_lib.grading.marking.harmless import Harmless
from course_lib.grading.marking.markdown import Renderer, headings, shown_latex

with needed("lab"):
    from jinja2 import FileSystemBytecodeCache, pass_context
    from nbconvert.exporters import HTMLExporter, TemplateExporter
    from nbconvert.filters import Highlight2HTML
    from nbconvert.filters.markdown_mistune import MarkdownWithMath
    from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
    from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
    from nbgrader.api import BaseCell, Comment, Grade
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.preprocessors import GetGrades
    from traitlets import Unicode
    from traitlets.config import Config

SHARE = 50  # so many students' a process makes
STARTS_S, PAGE_S = 100, 4  # seconds that it has, and those for each page, which takes a tenth of one
IMAGES = "image/", "<img", "!["  # of which a notebook has one where it has an image
LOOKED_AT = "<img", "jp-notebook"  # where nbconvert changes a finished page
PAGES = "1"  # another one where the same marks and notebook make another page: then all are made again
TEMPLATES, TEMPLATE = Path(__file__).with_name("templates"), "course-feedback"
# What is shown of an output, the first that it has: scripts and widgets do not run in a page.
SHOWN = ["text/html", "text/markdown", "image/svg+xml", "text/latex", "image/png", "image/jpeg", "text/plain"]
# What says which template a course has, one of which is enough for it to be the course's own.
EXPORTERS = "TemplateExporter", "HTMLExporter", "FeedbackExporter"
CHOICES = "template_name", "template_file", "template_paths", "extra_template_basedirs", "extra_template_paths"


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


class Part(NamedTuple):
    """A line of the table of points."""

    id: str  # of the cell
    name: str
    score: float
    points: float | None  # None: it carries none, but has a comment
    waiting: bool  # for a hand mark
    comment: bool


def parts(nb) -> list[Part]:
    """What carries points or has a comment. Each has the name of the last heading above it that is not in an answer."""
    above, found = "", []
    for cell in nb.cells:
        about = cell.metadata.get("nbgrader", {})
        counts = (about.get("grade") or about.get("task")) and (about.get("points") or about.get("score"))
        comment = bool(about.get("comment")) and bool(about.get("solution") or about.get("task"))
        if counts or comment:
            points = about["points"] if counts else None
            waiting = bool(counts and about.get("waiting"))
            found.append(Part(about["grade_id"], above, about.get("score", 0), points, waiting, comment))
        if cell.cell_type == "markdown" and not about.get("solution"):
            above = next((text for text in reversed(headings(cell.source)) if text), above)
    named = Counter(part.name for part in found)
    return [part._replace(name=_name(part, alone=named[part.name] == 1)) for part in found]


def _name(part: Part, alone: bool) -> str:
    if not part.name:
        return part.id
    return part.name if alone else f"{part.name}: {part.id}"


class GetMarks(GetGrades):
    """nbgrader's, which asks once for all the marks of a notebook, and tells what waits for a hand mark."""

    _asked = None, {}, {}  # the gradebook that was asked, what it said of scores, and of comments

    def _get_score(self, cell, resources):
        grade = self._marks()[1].get(cell.metadata.nbgrader["grade_id"])
        if grade is None:
            return super()._get_score(cell, resources)
        about = cell.metadata.nbgrader
        about["score"], about["points"], about["waiting"] = grade

    def _get_comment(self, cell, resources):
        comments = self._marks()[2]
        if cell.metadata.nbgrader["grade_id"] not in comments:
            return super()._get_comment(cell, resources)
        cell.metadata.nbgrader["comment"] = comments[cell.metadata.nbgrader["grade_id"]]

    def _marks(self) -> tuple:
        if self._asked[0] is not self.gradebook:  # which is opened for each notebook
            whose = self.gradebook.find_submission_notebook(self.notebook_id, self.assignment_id, self.student_id)

            def of(kind, *asked):
                cells = self.gradebook.db.query(BaseCell.name, *asked).join(kind, kind.cell_id == BaseCell.id)
                return cells.filter(kind.notebook_id == whose.id)

            grades = of(Grade, Grade.score, Grade.max_score, Grade.needs_manual_grade)
            scores = {name: tuple(marks) for name, *marks in grades}
            self._asked = self.gradebook, scores, dict(map(tuple, of(Comment, Comment.comment)))
        return self._asked


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
    _known: ClassVar[dict[tuple, str]] = {}

    def default_filters(self):
        """nbconvert's filters, and those of our template."""
        yield from super().default_filters()
        yield from {"markdown2html": self.markdown2html, "parts": parts, "formula": shown_latex}.items()

    def register_preprocessor(self, preprocessor, enabled=False):
        """Register one, but none that keeps a page by our template harmless: it runs nothing, and may have links."""
        if not (isinstance(preprocessor, Harmless) and self.template_name == TEMPLATE):
            return super().register_preprocessor(preprocessor, enabled)

    @pass_context
    def markdown2html(self, context, source):
        """Markdown as HTML: in a template of the course's own as nbconvert makes it.

        Where HTML is to be sanitised, what is written as HTML is shown as text. (nbconvert's sanitiser would show
        every paragraph's tags, and formulas'.)
        """
        if self.template_name != TEMPLATE:
            return super().markdown2html(context, source)
        attachments, clean = context.get("cell", {}).get("attachments", {}), self.sanitize_html
        key = source, clean, repr(self.lexer_options)
        if key in self._known:
            return self._known[key]
        renderer = Renderer(
            escape=clean,
            allow_harmful_protocols=not clean,
            embed_images=self.embed_images,
            attachments=attachments,
            path=context.get("resources", {}).get("metadata", {}).get("path", ""),
            **self.lexer_options,
        )
        made = MarkdownWithMath(renderer=renderer).render(source)
        if not attachments and not self.embed_images:  # works share most of their cells, but not their files
            self._known[key] = made
        return made

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
                    running.append(
                        (share, Apart(STARTS_S + PAGE_S * len(share), pages, root, assignment, share, str(compiled)))
                    )
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
    chosen = [course.config[kind] for kind in EXPORTERS if any(name in course.config[kind] for name in CHOICES)]
    if not chosen:
        settings.FeedbackExporter.template_name = TEMPLATE
        settings.FeedbackExporter.extra_template_basedirs = [str(TEMPLATES)]
        settings.NbConvertBase.display_data_priority = SHOWN
    for own in chosen:
        if "template_name" in own:  # which NbGraderAPI, unlike nbgrader's command, sets to nbgrader's for HTMLExporter
            settings.FeedbackExporter.template_name = own.template_name
    if "preprocessors" not in course.config.GenerateFeedback:
        settings.GenerateFeedback.preprocessors = [GetMarks, CSSHTMLHeaderPreprocessor]
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
