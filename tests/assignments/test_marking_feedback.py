"""Students' pages: what they show and to whom, and that they are made side by side, where nobody's stops another's."""

import contextlib
import copy
import html
import os
import re
import signal
import time
from types import SimpleNamespace

import jinja2
import nbconvert.exporters.html
import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup

from course_lib.grading.marking import feedback, markdown
from course_lib.grading.marking.batch import Batch
from tests.support.course import ASSIGNMENT, ROOT, Course
from tests.support.site_checker import open_browser

PLAIN = [
    nbformat.v4.new_markdown_cell("**Bold**, `code`, $a < b$ and <div>a part that is left open"),
    nbformat.v4.new_code_cell(
        "def f(x):\n    return '<b>' + x  # & more",
        outputs=[
            nbformat.v4.new_output("stream", name="stdout", text="1 < 2 & 3\n"),
            nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=["\x1b[31mValueError\x1b[0m"]),
            nbformat.v4.new_output("execute_result", data={"text/html": "<table><tr><td>4</table>"}),
        ],
    ),
]
IMAGE = nbformat.v4.new_output("display_data", data={"image/png": "iVBORw0KGgo="})


@pytest.fixture(scope="module")
def course(generated, tmp_path_factory):
    """A course in which anna and zoe have marks of nothing."""
    made = Course(tmp_path_factory.mktemp("feedback") / "course", copied_from=generated.root)
    with made.gradebook() as gradebook:
        for student in ("anna", "zoe"):
            gradebook.add_student(student)
            gradebook.add_submission(ASSIGNMENT, student)
    return made


@pytest.fixture
def page(course, monkeypatch):
    """Makes anna's feedback of some cells; the page."""
    for name, value in course._environment("instructor").items():
        monkeypatch.setenv(name, value)

    def made(cells, compiled=""):
        executed(course, "anna", cells)
        assert feedback.pages(course.root, ASSIGNMENT, ["anna"], compiled) == {"anna": ""}
        return (course.root / "feedback" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text()

    return made


def executed(course, student, cells):
    folder = course.root / "autograded" / student / ASSIGNMENT
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / f"{ASSIGNMENT}.ipynb")


def told(course, monkeypatch, make, jobs=2, **settings):
    """What `feedback` says of anna, ben and zoe, where `make` stands in for what makes the page of one of them."""

    def pages(root, assignment, students, compiled):
        return {student: make(student) for student in students}

    monkeypatch.setattr(feedback, "pages", pages)
    for name, value in settings.items():
        monkeypatch.setattr(feedback, name, value)
    return dict(feedback.feedback(course.root, ASSIGNMENT, ["anna", "ben", "zoe"], jobs))


def nbconverts(page, cells, monkeypatch):
    """The page as nbconvert leaves it, which reads each a second time."""
    with monkeypatch.context() as patch:
        patch.setattr(feedback, "IMAGES", ("",))
        return page(cells)


def test_a_page_is_as_nbconvert_leaves_it(page, monkeypatch):
    ours = page(PLAIN)
    assert "left open" in ours and "1 &lt; 2 &amp; 3" in ours and '<span class="k">return</span>' in ours
    assert str(BeautifulSoup(ours, features="html.parser")) == nbconverts(page, PLAIN, monkeypatch)


def test_a_page_without_images_is_read_no_second_time(page, monkeypatch):
    monkeypatch.setattr(nbconvert.exporters.html, "BeautifulSoup", None)
    assert "left open" in page(PLAIN)


def test_images_are_described_as_nbconvert_describes_them(page, monkeypatch):
    with_image = [*PLAIN, nbformat.v4.new_code_cell("plot()", outputs=[IMAGE])]
    ours = page(with_image)
    assert 'alt="No description has been provided for this image"' in ours
    assert ours == nbconverts(page, with_image, monkeypatch)


def test_a_page_with_an_image_is_made_once(page, monkeypatch):
    made, render = [], feedback.TemplateExporter.from_notebook_node

    def noted(self, *given, **more):
        made.append(self)
        return render(self, *given, **more)

    monkeypatch.setattr(feedback.TemplateExporter, "from_notebook_node", noted)
    page([*PLAIN, nbformat.v4.new_code_cell("plot()", outputs=[IMAGE])])
    assert len(made) == 1


def test_what_nbconvert_changes_is_looked_for_in_the_page_too():
    """A template of the course's own may add it."""
    for page in ("<img src='x'>", "<div class='jp-notebook'>", "<!-- open"):
        assert not feedback._is_left_as_it_is(page)
    assert feedback._is_left_as_it_is("<p> <!-- closed --> </p>")


@pytest.mark.parametrize("shown", ["<IMG src='x.png'>", "an <!-- open comment"])
def test_what_nbconvert_changes_is_changed(page, monkeypatch, shown):
    output = nbformat.v4.new_output("execute_result", data={"text/html": shown})
    cells = [*PLAIN, nbformat.v4.new_code_cell("show()", outputs=[output])]
    assert page(cells) == nbconverts(page, cells, monkeypatch)


def test_a_filter_of_the_courses_own_is_used(course, page):
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    config.write_text(before + 'c.TemplateExporter.filters = {"highlight_code": lambda source, **_: source.upper()}\n')
    try:
        assert "DEF F(X):" in page(PLAIN)
    finally:
        config.write_text(before)


def test_each_notebook_is_highlighted_in_its_own_language():
    exporter = feedback.FeedbackExporter()
    for language in ("python", "r"):
        about = {"language_info": {"name": language, "pygments_lexer": language}}
        shown, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=PLAIN, metadata=about))
        assert f"hl-{language}" in shown


def test_a_page_needs_no_place_for_templates(page, tmp_path):
    assert "left open" in page(PLAIN, str(tmp_path / "no" / "such" / "folder"))


def test_templates_are_compiled_once(page, tmp_path, monkeypatch):
    first = page(PLAIN, str(tmp_path))
    assert list(tmp_path.iterdir())
    monkeypatch.setattr("jinja2.environment.Environment.compile", None)
    assert page(PLAIN, str(tmp_path)) == first


def test_an_exporter_of_the_courses_own_is_used(course, page, monkeypatch):
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    own = "from nbconvert.exporters import MarkdownExporter\nc.GenerateFeedback.exporter_class = MarkdownExporter\n"
    config.write_text(before + own)
    try:
        executed(course, "zoe", PLAIN)
        assert feedback.pages(course.root, ASSIGNMENT, ["zoe"]) == {"zoe": ""}
    finally:
        config.write_text(before)
    assert (course.root / "feedback" / "zoe" / ASSIGNMENT / f"{ASSIGNMENT}.md").is_file()


def test_code_is_highlighted_once(page, course, monkeypatch):
    monkeypatch.setattr(feedback.Highlighted, "_known", {})
    first, asked = page(PLAIN), []
    monkeypatch.setattr(feedback.Highlight2HTML, "__call__", lambda self, source, *_: asked.append(source) or source)
    assert page(PLAIN) == first and not asked
    more = nbformat.v4.new_code_cell("y = 2")
    assert "y = 2" in page([*PLAIN, more]) and asked == ["y = 2"]
    more.metadata.magics_language = "html"
    page([*PLAIN, more])
    assert asked == ["y = 2", "y = 2"]


def cell(name, kind="code", source="", *, points=None, outputs=(), **about):
    """A cell of nbgrader's; with points, a graded one."""
    made = nbformat.v4.new_markdown_cell(source) if kind == "markdown" else nbformat.v4.new_code_cell(source)
    if kind == "code":
        made.outputs = list(outputs)
    about = {"grade": points is not None, "points": points, "solution": False, "locked": True, **about}
    made.metadata.nbgrader = {"grade_id": name, "schema_version": 3, "cell_type": kind, "task": False, **about}
    return made


TEXT = nbformat.v4.new_markdown_cell
MARKED = [
    TEXT("# The *assignment*\n\n## Part 1. `softmax` of $x$\n\n```\n# no heading\n```"),
    cell("softmax", source="def softmax(x): ...", solution=True, locked=False),
    cell("check-softmax", source="check()", points=0),
    cell(
        "test-softmax",
        source="hidden()",
        points=4,
        outputs=[
            nbformat.v4.new_output("stream", name="stdout", text="3 of 4 points: x < y"),
            nbformat.v4.new_output("execute_result", data={"text/plain": "3.0625"}),
        ],
    ),
    TEXT("Part 2 <b>&amp;</b> the\n[masks](https://example.org)\n---"),
    cell("test-padding-mask", points=2),
    cell("test-causal-mask", points=2),
    TEXT("### Written"),
    cell("explain", "markdown", "## My own heading\n\n| a | b |\n|---|---|\n| 1 | 2 |", points=4, solution=True),
    cell("test-attention", points=5),
]


@pytest.fixture
def marked(course, page):
    """anna's page of `MARKED`, with marks and a comment, as a tree."""
    with course.gradebook() as gradebook:
        notebook = gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, "anna")
        for grade in notebook.grades:
            grade.auto_score = {"test-softmax": 3.0625, "test-padding-mask": 2}.get(grade.name, 0)
            grade.needs_manual_grade = grade.name == "explain"
        for comment in notebook.comments:
            if comment.name in ("softmax", "explain"):
                comment.manual_comment = "Is $a < b$? **Well** done"
        gradebook.db.commit()
    return BeautifulSoup(page(MARKED), features="html.parser")


def words(element):
    return " ".join(element.get_text(" ").split())


def test_the_parts_that_carry_points_are_listed_by_the_headings_above_them(marked):
    rows = [[words(each) for each in row.find_all(["th", "td"])] for row in marked.select(".parts tbody tr")]
    assert rows == [
        ["Part 1. softmax of x: softmax comment", ""],  # no points, but a comment
        ["Part 1. softmax of x: test-softmax", "3.06 of 4"],
        ["Part 2 & the masks: test-padding-mask", "2 of 2"],
        ["Part 2 & the masks: test-causal-mask", "0 of 2"],
        ["Written: explain comment", "not marked yet, of 4"],
        ["Written: test-attention", "0 of 5"],  # a student's own heading names nothing
    ]
    assert words(marked.select_one(".total")) == "5.06 of 30 points; a part waits for a person to mark it"


def test_a_heading_may_have_braces(page, marked):
    tree = BeautifulSoup(page([TEXT("# `{}`"), cell("test-softmax", points=4)]), features="html.parser")
    assert words(tree.select_one(".parts tbody th")) == "{}"


def test_a_page_fetches_nothing_but_pictures(marked):
    rules = dict(rule.split(" ", 1) for rule in marked.find("meta", {"http-equiv": True})["content"].split("; "))
    assert rules["default-src"] == "'none'" and not {"script-src", "connect-src", "object-src"} & rules.keys()
    elsewhere = {name for name, sources in rules.items() if "http" in sources or "*" in sources}
    assert elsewhere == {"img-src"}


def test_a_part_without_a_heading_has_its_own_name(page, marked):
    tree = BeautifulSoup(page([cell("test-softmax", points=4)]), features="html.parser")
    assert words(tree.select_one(".parts tbody th")) == "test-softmax"


def test_every_link_in_the_page_leads_somewhere(marked):
    links = [link["href"][1:] for link in marked.select("a[href^='#']")]
    assert "part-test-softmax" in links and "comment-explain" in links
    assert all(marked.find(id=name) for name in links)


def test_what_a_part_gave_stands_at_the_part(marked):
    part = marked.find(id="part-test-softmax")
    assert "3.06 of 4 points" in words(part) and "3 of 4 points: x < y" in words(part)
    assert "3.0625" not in words(part)  # what a test returns is its score
    assert part.select_one("details .code") and not marked.find(id="part-check-softmax")
    answer = marked.find(id="part-softmax")
    assert not answer.details and words(answer.select_one(".comment")) == "Comment Is a < b ? Well done"


def test_headings_stand_below_the_title(marked):
    assert [words(each) for each in marked.find_all("h1")] == [f"Feedback: {ASSIGNMENT}"]
    assert marked.find("h2", string="Where the points are") and "The assignment" in map(words, marked.find_all("h2"))
    assert marked.html["lang"] == "en" and marked.title.string == f"Feedback: {ASSIGNMENT}"


def test_a_late_penalty_is_a_line(course, page, marked):
    with course.gradebook() as gradebook:
        notebook = gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, "anna")
        notebook.late_submission_penalty = 1.5
        gradebook.db.commit()
        try:
            tree = BeautifulSoup(page(MARKED), features="html.parser")
        finally:
            notebook.late_submission_penalty = None
            gradebook.db.commit()
    assert words(tree.select(".parts tr")[-1]) == "Handed in late −1.5"
    assert words(tree.select_one(".total")).startswith("3.56 of 30")


def test_marks_are_nbgraders_and_asked_for_once(course, marked, monkeypatch):
    url = f"sqlite:///{course.root}/gradebook.db"
    nb = nbformat.v4.new_notebook(cells=MARKED)

    def asked(preprocessor, student):
        about = {"notebook": ASSIGNMENT, "assignment": ASSIGNMENT, "student": student, "db_url": url}
        filled, said = preprocessor.preprocess(copy.deepcopy(nb), {"nbgrader": about})
        for each in filled.cells:
            each.metadata.get("nbgrader", {}).pop("waiting", None)
        return filled, said

    theirs = [asked(feedback.GetGrades(), student) for student in ("zoe", "anna")]
    monkeypatch.setattr("nbgrader.api.Gradebook.find_grade", None)
    monkeypatch.setattr("nbgrader.api.Gradebook.find_comment", None)
    one = feedback.GetMarks()
    assert [asked(one, student) for student in ("zoe", "anna")] == theirs and theirs[0] != theirs[1]


def test_each_student_has_their_own_marks(course, page, marked):
    executed(course, "zoe", MARKED)
    assert feedback.pages(course.root, ASSIGNMENT, ["anna", "zoe"]) == {"anna": "", "zoe": ""}
    zoe = (course.root / "feedback" / "zoe" / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text()
    assert "3.06" not in zoe and "Well" not in zoe


def test_a_mark_that_is_missing_is_said(course, page):
    executed(course, "anna", [cell("nothing", points=4)])
    assert "nothing" in feedback.pages(course.root, ASSIGNMENT, ["anna"])["anna"]


def test_formulas_need_no_network(page):
    ours = page([TEXT("$x_i$ and\n\n$$\\max_s x_s$$\n\n\\begin{align}a &= b\\end{align}\n\n## $y$"), LATEX])
    tree = BeautifulSoup(ours, features="html.parser")
    assert len(tree.find_all("math")) == 5 and len(tree.select(".formula math[display=block]")) == 3
    assert tree.find("munder") and tree.select_one("h3 math") and "ns0" not in ours
    assert "<script" not in ours and "://" not in ours and not tree.find("link")


SHOWN = nbformat.v4.new_output("display_data", data={"text/latex": "$$a$$"})
LATEX = nbformat.v4.new_code_cell("show()", outputs=[SHOWN])


SOURCES = sorted((ROOT / "assignments" / "source").glob("*/*.ipynb"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_formula_of_the_assignments_is_shown(source, monkeypatch):
    asked = []
    monkeypatch.setattr(markdown, "formula", lambda tex, display: asked.append((tex.strip(), display)) or "")
    for each in nbformat.read(source, as_version=4).cells:
        if each.cell_type == "markdown":
            markdown.MarkdownWithMath(renderer=markdown.Renderer(escape=False)).render(each.source)
    assert asked and [tex for tex, display in asked if not markdown.mathml(tex, display)] == []


REPEAT = [  # of which a computer's memory would be full, or which would never end
    r"\sideset{}{}{" * 60 + "x" + "}" * 60,
    "".join(rf"\def\a{x}{{\a{y}\a{y}\a{y}\a{y}}}" for x, y in zip("abcdefghijk", "bcdefghijkl", strict=True)) + r"\aa",
    r"\newcommand{\R}{\mathbb{R}}",
]


@pytest.mark.parametrize("tex", [r"\frac{", r"\foo{x} < 1", "{" * 1500, "x" * 5000, r"\left(", *REPEAT], ids=range(8))
def test_a_formula_that_cannot_be_converted_stays_as_it_is(page, tex):
    tree = BeautifulSoup(page([TEXT(f"Here ${tex}$ it is")]), features="html.parser")
    assert f"Here ${tex}$ it is" in tree.main.get_text() and not tree.find("math")


def test_names_in_formulas_are_set_as_in_tex():
    shown = markdown.mathml(r"\operatorname{softmax}(x) + \log p + \arg y + \text{max\_len}", False)
    names = {name.string: name["rspace"] for name in BeautifulSoup(shown, "html.parser").select("[rspace]")}
    assert names == {"softmax": "0", "log": ".167em", "arg": ".167em"} and "<mtext>max_len</mtext>" in shown


EVIL = "<script>evil()</script>"


@pytest.mark.parametrize(
    "tex", [rf"\text{{{EVIL}}}", EVIL, r"\href{javascript:evil()}{x}", r"\style{color:red}{x}", rf"\foo{{{EVIL}}}"]
)
def test_nothing_in_a_formula_becomes_markup(tex):
    for display in (True, False):
        tree = BeautifulSoup(markdown.formula(tex, display), features="html.parser")
        assert tree.get_text() and not tree.find("script")
        assert not any({"href", "style"} & set(element.attrs) for element in tree.find_all())


def test_names_are_no_markup(page, marked):
    source = f"## {EVIL} `{EVIL}` &lt;b&gt;"
    answer = cell("explain", "markdown", points=4, solution=True)
    ours = page([TEXT(source), cell("test-softmax", points=4), answer])
    assert f"<a href=\"#part-test-softmax\">evil() {html.escape(EVIL)} &lt;b&gt;: test-softmax</a>" in ours


def test_a_page_may_run_no_script(page, browser):
    """nbconvert leaves what students write as HTML as it is; the page itself keeps it from running."""
    shown = nbformat.v4.new_output("execute_result", data={"text/html": "<img src=x onerror='document.title = 1'>"})
    script = nbformat.v4.new_output("display_data", data={"application/javascript": "document.title = 2"})
    cells = [TEXT("<script>document.title = 3</script> end"), nbformat.v4.new_code_cell("", outputs=[shown, script])]
    with visit(browser, page(cells)) as opened:
        opened.wait_for_timeout(200)
        assert opened.title() == f"Feedback: {ASSIGNMENT}"


def test_where_html_is_to_be_sanitised_all_is(course, page):
    given = f"See {EVIL} and $a < b$, *so* [x](javascript:evil())\n\n<b onclick='evil()'>b</b>"
    given += "\n\n```mermaid\n</pre><b onclick=evil()>\n```"
    shown = nbformat.v4.new_output("execute_result", data={"text/markdown": given})
    more = nbformat.v4.new_output("execute_result", data={"text/html": EVIL})
    cells = [TEXT(given), nbformat.v4.new_code_cell("", outputs=[shown, more])]
    with setting(course, "c.HTMLExporter.sanitize_html = True"):
        tree = BeautifulSoup(page(cells), features="html.parser")
    assert not tree.find("script") and not tree.find(onclick=True) and not tree.find(href="javascript:evil()")
    assert words(tree.main).startswith(f"See {EVIL} and a < b , so x")
    assert len(tree.find_all("math")) == 2 and tree.main.p.em
    assert f"See {EVIL} and" in page(cells)  # as nbconvert has it


def test_an_attachment_is_shown(page):
    answer = TEXT("![a drawing](attachment:x.png)", attachments={"x.png": {"image/png": "iVBORw0KGgo="}})
    other = TEXT("![a drawing](attachment:x.png)", attachments={"x.png": {"image/png": "iVBORw0KGgp="}})
    shown = [image["src"] for image in BeautifulSoup(page([answer, other]), features="html.parser").find_all("img")]
    assert shown == ["data:image/png;base64,iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgp="]


def test_an_attachment_that_is_another_cells_costs_nobody_the_page(course, page, marked):
    with course.gradebook() as gradebook:
        (comment,) = gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, "anna").comments[:1]
        comment.manual_comment, name = "![mine](attachment:y.png)", comment.name
        gradebook.db.commit()
    tree = BeautifulSoup(page([TEXT("![a drawing](attachment:x.png) end"), cell(name, solution=True)]), "html.parser")
    assert [image["alt"] for image in tree.find_all("img")] == ["a drawing", "mine"] and "end" in tree.main.text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"application/javascript": "evil()", "text/plain": "what it is"}, "what it is"),
        ({"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "a slider"}, "a slider"),
        ({"text/latex": "$a$ and $b$", "text/plain": "both"}, "$a$ and $b$"),
        ({"text/latex": "\\begin{align}a\\end{align}", "text/plain": "align"}, "a"),
        ({"text/latex": "\\[ a \\]", "text/plain": "brackets"}, "a"),
    ],
    ids=["script", "widget", "several formulas", "environment", "brackets"],
)
def test_of_an_output_what_a_page_can_show_is_shown(page, data, shown):
    code = nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("display_data", data=data)])
    assert words(BeautifulSoup(page([code]), "html.parser").select_one(".shown")) == shown


def test_what_a_test_returns_is_shown_where_it_is_no_score(page, marked):
    returned = nbformat.v4.new_output("execute_result", data={"text/plain": "'why it failed'"})
    assert "why it failed" in page([cell("test-softmax", points=4, outputs=[returned])])


def test_points_that_a_person_is_to_look_at_again_are_shown_with_what_they_are(course, page, marked):
    with course.gradebook() as gradebook:
        notebook = gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, "anna")
        (grade,) = [each for each in notebook.grades if each.name == "explain"]
        grade.manual_score = 3
        gradebook.db.commit()
        try:
            tree = BeautifulSoup(page(MARKED), features="html.parser")
        finally:
            grade.manual_score = None
            gradebook.db.commit()
    assert words(tree.select(".parts tr")[5]) == "Written: explain comment 3 of 4, to be looked at"
    assert words(tree.select_one(".total")).startswith("8.06 of 30")


@pytest.mark.parametrize("change", ["a hand mark of nothing", "a comment on an answer without points"])
def test_what_changes_a_page_makes_it_anew(course, marked, change):
    def digest():
        with course.gradebook() as gradebook:
            folder = course.root / "autograded" / "anna" / ASSIGNMENT
            return Batch._shown(SimpleNamespace(assignment=ASSIGNMENT), gradebook, "anna", folder)

    before = digest()
    assert before == digest()
    with course.gradebook() as gradebook:
        notebook = gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, "anna")
        if change == "a hand mark of nothing":
            (grade,) = [each for each in notebook.grades if each.name == "explain"]
            grade.manual_score, grade.needs_manual_grade = 0, False
        else:
            (comment,) = [each for each in notebook.comments if each.name == "softmax"]
            comment.manual_comment = "another"
        gradebook.db.commit()
    assert digest() != before


@pytest.mark.parametrize(
    ("points", "written"), [(4, "4"), (100000.25, "100000.25"), (0.004, "0"), (-0.004, "0"), (-1.5, "−1.5"), (10, "10")]
)
def test_points_are_written_in_full(points, written):
    template = (feedback.TEMPLATES / feedback.TEMPLATE / "index.html.j2").read_text(encoding="utf-8")
    (macro,) = re.findall(r"(?s)\{%- macro number.*?endmacro -%\}", template)
    assert jinja2.Template(macro).module.number(points) == written


@contextlib.contextmanager
def setting(course, *lines):
    """A block in which the course's configuration has more lines."""
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    config.write_text("\n".join([before, *lines, ""]))
    try:
        yield
    finally:
        config.write_text(before)


@pytest.mark.parametrize("name", ["mine", "feedback"])
def test_a_template_of_the_courses_own_is_used(course, page, tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "conf.json").write_text('{"base_template": "classic", "mimetypes": {"text/html": true}}')
    text = "Mine: {% for cell in nb.cells %}{{ cell.source | markdown2html }}{% endfor %}"
    (tmp_path / name / "index.html.j2").write_text(text)
    own = [f"c.HTMLExporter.extra_template_basedirs = [{str(tmp_path)!r}]"]
    if name != "feedback":  # what nbgrader's is called
        own.append(f"c.HTMLExporter.template_name = {name!r}")
    with setting(course, *own):
        ours = page([TEXT("a formula $x$")])
    assert ours.startswith("Mine:") and "$x$" in ours  # which its own MathJax may show


def test_nbgraders_own_command_is_nbgraders(course, page):
    page(PLAIN)
    course.nbgrader("generate_feedback", ASSIGNMENT, "--student", "anna", "--force")
    theirs = (course.root / "feedback" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text()
    assert "MathJax" in theirs and "Where the points are" not in theirs


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    with open_browser() as running:
        yield running


@contextlib.contextmanager
def visit(browser, text, width=1200, scheme="light"):
    """The page in a browser without a network."""
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True) as context:
        opened = context.new_page()
        opened.set_content(text)
        yield opened


WIDE = nbformat.v4.new_output("execute_result", data={"text/html": f"<table><tr>{'<td>1234567</td>' * 40}</table>"})
LINES = [
    nbformat.v4.new_output("stream", name="stdout", text="a message " * 40 + "x" * 300),
    nbformat.v4.new_output("error", ename="E", evalue="", traceback=["\x1b[31mE \x1b[38;5;28mx\x1b[43my" + "-" * 80]),
]


@pytest.mark.parametrize("width", [1200, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_for_everybody(browser, page, marked, width, scheme):
    long = "$" + " + ".join(f"x_{{{i}}}" for i in range(60)) + "$"
    source = "from x import y  # a comment\nf('text', 1.5)" + " + 1" * 100
    code = nbformat.v4.new_code_cell(source, outputs=[WIDE, *LINES])
    tables = TEXT("| a | b |\n|---|---|\n| " + "wide" * 60 + " | c |\n\n```\n" + "wide " * 60 + "\n```")
    with visit(browser, page([*MARKED, TEXT(f"{long}\n\n${long}$"), tables, code]), width, scheme) as opened:
        assert opened.evaluate("document.documentElement.scrollWidth") == width
        found = Axe().run(opened).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
        dark = opened.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark == (scheme == "dark")
        keyword, name = (f"getComputedStyle(document.querySelector('.{kind}')).color" for kind in ("kn", "n"))
        assert opened.evaluate(f"{keyword} != {name}")  # code is highlighted
        assert opened.evaluate("document.querySelector('.longer').clientHeight") < 60  # on one line


def test_who_has_no_marks_is_told_why(course, page):
    executed(course, "nobody", PLAIN)
    assert "nobody" in feedback.pages(course.root, ASSIGNMENT, ["nobody"])["nobody"]


def test_what_nbgrader_raises_is_said_and_stops_nobody(course, page, monkeypatch):
    def generate_feedback(self, assignment, student, force):
        if student == "anna":
            raise OSError(28, "No space left on device")
        if student == "ben":
            raise MemoryError  # which says nothing
        return {"success": True}

    monkeypatch.setattr(feedback.NbGraderAPI, "generate_feedback", generate_feedback)
    said = feedback.pages(course.root, ASSIGNMENT, ["anna", "ben", "zoe"])
    assert said == {"anna": "[Errno 28] No space left on device", "ben": "MemoryError", "zoe": ""}


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_page_that_never_ends_stops_no_others(course, monkeypatch, jobs):
    def make(student):
        time.sleep(3600 if student == "anna" else 0)
        return ""

    said = told(course, monkeypatch, make, jobs=jobs, STARTS_S=1, PAGE_S=1)
    assert said == {"anna": "it took more than 2 seconds", "ben": "", "zoe": ""}


def test_a_process_has_time_for_each_page(course, monkeypatch):
    def make(student):
        time.sleep(1)
        return str(os.getpid())

    said = told(course, monkeypatch, make, jobs=1, STARTS_S=2, PAGE_S=2)  # each would have time by itself
    assert len(set(said.values())) == 1 and said["anna"].isdecimal()


def test_a_process_that_is_killed_stops_no_others(course, monkeypatch):
    def make(student):
        if student == "ben":
            os.kill(os.getpid(), signal.SIGKILL)
        return ""

    said = told(course, monkeypatch, make, jobs=1)
    assert "SIGKILL" in said.pop("ben") and said == {"anna": "", "zoe": ""}


def test_pages_are_made_side_by_side(course, monkeypatch, tmp_path):
    def make(student):
        (tmp_path / student).touch()
        while len(list(tmp_path.iterdir())) < 2:  # until another one has begun
            time.sleep(0.01)
        return ""

    assert set(told(course, monkeypatch, make, SHARE=1).values()) == {""}


def test_no_more_are_made_at_a_time_than_told(course, monkeypatch, tmp_path):
    def make(student):
        (tmp_path / student).touch()
        time.sleep(0.3)
        alone = [path.name for path in tmp_path.iterdir()] == [student]
        (tmp_path / student).unlink()
        return "" if alone else "beside another"

    assert set(told(course, monkeypatch, make, jobs=1, SHARE=1).values()) == {""}


def test_a_process_makes_no_more_than_its_share(course, monkeypatch):
    said = told(course, monkeypatch, lambda student: str(os.getpid()), jobs=1, SHARE=2)
    assert said["anna"] == said["ben"] != said["zoe"]
    assert len(set(told(course, monkeypatch, lambda student: str(os.getpid()), jobs=1, SHARE=3).values())) == 1


def test_where_no_process_can_be_started_that_is_said_of_each(course, monkeypatch):
    def none(*_):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    said = told(course, monkeypatch, None, Apart=none)
    assert said == dict.fromkeys(("anna", "ben", "zoe"), "[Errno 11] Resource temporarily unavailable")


def test_where_a_process_cannot_be_started_just_now_it_is_tried_again(course, monkeypatch):
    made, apart = [], feedback.Apart

    def sometimes(*given):
        made.append(given)
        if len(made) == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return apart(*given)

    said = told(course, monkeypatch, lambda student: "", Apart=sometimes, SHARE=1)
    assert said == dict.fromkeys(("anna", "ben", "zoe"), "")


def test_nothing_is_left_beside_pages(course, monkeypatch):
    told(course, monkeypatch, lambda student: "")
    assert not (course.root / feedback.GRADING).exists()


def test_nobody_gets_none(course):
    assert list(feedback.feedback(course.root, ASSIGNMENT, [], 2)) == []
