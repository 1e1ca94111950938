"""Nothing that a student hands in acts in the browser of whoever marks it, and what should be seen is seen."""

import base64
import contextlib
import json
import time

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import strings
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell
from nbgrader.converters import GenerateFeedback
from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension
from traitlets.config import Config

from course_lib.grading.marking import feedback, harmless
from tests.assignments.test_in_jupyterlab import jupyterlab
from tests.assignments.variants import markup
from tests.support.course import ASSIGNMENT, ROOT, Course, filled_in, grade_id, reference_answers
from tests.support.site_checker import open_browser

WORKS = markup.works()
KEPT = {"class", "id", "style", "alt", "title", "src", "border", "start", "width", "height"}
# MathJax's, of attributes
SETTERS = ["href", "mmlToken", "style", "class", "cssId", "bbox", "fcolorbox", "require", "csname"]
OWN = {"button", "input", "textarea"}  # Formgrader's, with a graded cell
SOURCES = sorted((ROOT / "assignments" / "source").glob("*/*.ipynb"))
PLOT = f"data:image/png;base64,{markup.PIXEL}"
FRAME = """<div>
<style scoped>
    .dataframe tbody tr th { vertical-align: top; }
</style>
<table border="1" class="dataframe">
  <thead><tr style="text-align: right;"><th></th><th>a</th></tr></thead>
  <tbody><tr><th>0</th><td>1 &lt; 2 &amp; 3</td></tr></tbody>
</table>
</div>"""
NAMES = {"student": "anna", "last_name": "<b>Smith", "first_name": 'A"nn\'a', "notebook_path": 'x"><script>.ipynb'}
ABOUT = {"assignment_id": "a", "notebook_id": "n", "submission_id": "s", "index": 0, "total": 1, "base_url": ""}


@pytest.fixture(scope="module")
def exporter(generated):
    """Formgrader's, as Jupyter has it that was started in the course's folder."""
    app = FormgradeExtension()
    app.root_dir = str(generated.root)
    with contextlib.chdir(generated.root):
        app.initialize([])
    return HTMLExporter(config=app.config)


@pytest.fixture
def page(exporter):
    """Makes Formgrader's page of some cells: the part with the notebook."""

    def made(*cells, **names):
        notebook = nbformat.from_dict({**nbformat.v4.new_notebook(), "cells": cells})
        text, _ = exporter.from_notebook_node(notebook, ABOUT | NAMES | names)
        return cells_of(text)

    return made


def cells_of(page):
    """The part of a page that has the cells; in Formgrader's it is in another one of the same name."""
    return BeautifulSoup(page, "html.parser").select("#notebook-container")[-1]


def acting(tree):
    """What might act in a part of a page: elements and attributes that are in no list of harmless ones."""
    texts = [text for text in tree.find_all(string=True) if not text.find_parent(["pre", "code"])]  # MathJax's
    found = [f"{name} in {text}" for name in SETTERS for text in texts if f"\\{name}" in text.replace("\0", "")]
    for element in tree.find_all():
        if element.name in OWN and not element.find_parent(class_="text_cell_render"):
            continue
        if element.name not in harmless.TAGS:
            found.append(element.name)
        for name, value in element.attrs.items():
            if name not in KEPT:
                found.append(f"{element.name} {name}")
            if name == "src" and not value.startswith("data:image/") and not value.isalnum():
                found.append(f"src {value}")
            if name == "style" and ("position" in value or "url" in value):
                found.append(f"style {value}")
        if element.find_parent(class_="text_cell_render") and element.get("id"):
            found.append(f"id {element['id']}")
        if {"full-credit", "nbgrader_cell"} & set(element.get("class", ())) and element.name != "div":
            found.append("class")
    return found


@pytest.mark.parametrize("name", WORKS)
def test_nothing_acts_in_formgraders_page(page, name):
    cell = WORKS[name]
    tree = page(cell, new_markdown_cell("THE END"))
    assert acting(tree) == []
    assert markup.ASKED not in "".join(str(image.attrs) for image in tree.find_all(src=True))
    assert tree.text.strip().endswith("THE END")


@pytest.mark.parametrize("name", ["a script", "an image that fails", "a drawing", "shown: HTML", "about: a width"])
def test_in_the_page_as_nbconvert_makes_it_something_acts(name):
    text, _ = HTMLExporter(template_name="classic").from_notebook_node(nbformat.v4.new_notebook(cells=[WORKS[name]]))
    assert acting(cells_of(text))


def test_what_acts_is_seen_as_it_was_written(page):
    assert f"so <script>{markup.EVIL}</script> it is" in page(WORKS["a script in a line"]).text
    assert f"x (javascript:{markup.EVIL})" in page(WORKS["a link in Markdown"]).text
    assert r"\href{javascript" in page(WORKS["a link in a formula"]).select_one("pre").text
    assert r"\href{javascript" in page(WORKS["shown: LaTeX with a link"]).select_one(".output_text pre").text
    assert "(application/javascript: not shown here)" in page(WORKS["shown: a script"]).text
    assert page(WORKS["shown: a script and its name"]).select_one(".output_text").text.strip() == "a script"


def test_formulas_code_tables_lists_and_pictures_are_shown(page):
    source = "# So\n\n$a < b & c$ and $$\\frac{1}{2} > 0$$\n\n\\begin{align}x &= y\\end{align}\n\n"
    source += "- *one*\n- [ ] **two** & `a < b` ~~x~~\n\n3. three\n\n| a | b |\n|:-:|---|\n| 1 | $x_1$ |\n\n"
    source += "```python\nreturn '<b>' and 1 < 2\n```\n\nH<sub>2</sub>O<br>&alpha; <u>x</u> "
    source += "https://numpy.org [y](z) ![drawn](attachment:d.png) ![beside](plots/my%20plot.png) "
    source += "<img src='a b.svg' width=40>"
    tree = page(new_markdown_cell(source, attachments={"d.png": {"image/png": markup.PIXEL}}))
    for shown in ("$a < b & c$", "$$\\frac{1}{2} > 0$$", "\\begin{align}x &= y\\end{align}", "α", "https://numpy.org "):
        assert shown in tree.text
    assert [tree.h1.text, tree.em.text, tree.strong.text, tree.li.text.strip()] == ["So", "one", "two", "one"]
    assert "[ ] two & a < b x" in tree.text and tree.find("del").text == "x" and tree.ol["start"] == "3"
    assert [cell.text for cell in tree.find_all("td")] == ["1", "$x_1$"]
    assert tree.select_one(".highlight .k").text == "return" and "'<b>' and 1 < 2" in tree.select_one(".highlight").text
    assert tree.sub.text == "2" and tree.find("br") and tree.u and "y (z)" in tree.text
    sources = [(image["src"], image.get("alt")) for image in tree.find_all("img")]
    assert sources[:2] == [(PLOT, "drawn"), ("plots/my%20plot.png", "beside")] and sources[2][0] == "a b.svg"


def test_outputs_are_shown(page):
    shown = [
        new_output("execute_result", data={"text/html": FRAME, "text/plain": "   a"}),
        new_output("display_data", {"image/png": markup.PIXEL}, metadata={"image/png": {"width": 40, "height": 30.5}}),
        new_output("display_data", {"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg'/>"}),
        new_output("display_data", {"text/latex": "$$a < b$$"}),
        new_output("display_data", {"text/markdown": "*so* $a$"}),
        new_output("stream", text="1 < 2\n"),
        new_output("error", ename="E", evalue="no", traceback=["\x1b[31mE\x1b[0m: no"]),
    ]
    tree = page(new_code_cell("f(1) < 2", outputs=shown))
    table = tree.select_one("table.dataframe")
    assert [cell.text for cell in table.find_all(["th", "td"])] == ["", "a", "0", "1 < 2 & 3"]
    assert table.tr["style"].replace(" ", "") == "text-align:right;" and "dataframe tbody" not in tree.text
    plot, drawing = tree.find_all("img")
    assert (plot["src"], plot["width"], plot["height"]) == (PLOT, "40", "30.5")
    assert base64.b64decode(drawing["src"].partition(",")[2]).startswith(b"<svg")
    assert "$$a < b$$" in tree.text and tree.em.text == "so" and "1 < 2\n" in tree.text
    assert tree.select_one(".ansi-red-fg").text == "E"
    assert tree.select_one(".input_area .highlight").text.strip() == "f(1) < 2"


def test_names_are_no_markup(exporter):
    text, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(), ABOUT | NAMES)
    tree = BeautifulSoup(text, "html.parser")
    assert tree.select_one("a.name-shown").text.strip() == "<b>Smith, A\"nn'a"
    assert tree.select_one("a.name-shown")["data-link"] == NAMES["notebook_path"]
    formula, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(), ABOUT | NAMES | {"last_name": r"$\href{x}y$"})
    assert "\\" not in BeautifulSoup(formula, "html.parser").select_one("a.name-shown").text
    unknown, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(), ABOUT | NAMES | {"last_name": None})
    assert BeautifulSoup(unknown, "html.parser").select_one("a.name-shown").text.strip() == "anna"


def test_fields_for_marks_are_there(page):
    tree = page(new_markdown_cell("my $a$", metadata={"nbgrader": markup.graded("explain")}))
    assert tree.select_one("input.score#explain") and tree.select_one("textarea#explain-comment")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_text_of_the_assignments_looks_as_it_did(page, source):
    """But for its links."""
    cells = nbformat.read(source, as_version=4).cells
    texts = [new_markdown_cell(cell.source) for cell in cells if cell.cell_type == "markdown"]
    plain, _ = HTMLExporter(template_name="classic", exclude_anchor_links=True).from_notebook_node(
        nbformat.v4.new_notebook(cells=texts)
    )
    before = cells_of(plain)
    for link in before.find_all("a"):
        link.replace_with(f"{link.text} ({link['href']})")
    assert " ".join(page(*texts).text.split()) == " ".join(before.text.split())


def test_what_takes_long_to_read_is_text_at_once():
    begun = time.process_time()
    never_closed = "".join(f"<p><b title={number}></p>" for number in range(1000))
    for text in (never_closed, *(sign * 100_000 for sign in ("<b>", "&lt;", "<style scoped>", "<!--"))):
        assert harmless.Harmless().sanitize_html_tags(text).startswith("<pre>")
    harmless.Harmless().sanitize_html_tags("data:image/png;base64," * 50_000)
    assert time.process_time() - begun < 20


def test_what_takes_long_to_be_made_html_is_text_at_once():
    """Neither mistune nor the page's `strip_files_prefix` reads on to the end behind each of them."""
    begun, shown = time.process_time(), harmless.Harmless().markdown2html
    for opening in ("[", "\\begin{a}", "\\\\(", "[a]("):
        assert shown({}, opening * 10_000) == harmless.as_text(opening * 10_000)
        made = shown({}, opening * harmless.MANY + "x" * 50_000)
        assert made.startswith("<p>") and "[" not in made
    assert "[" not in harmless.as_text("[") and strings.strip_files_prefix(harmless.as_text("[" * 100_000))
    names = "".join(f" a{number}" for number in range(50_000))
    assert harmless.Harmless().sanitize_html_tags(f"<p{names}>").startswith("<pre>")
    assert shown({}, "a b " * harmless.LONGEST).startswith("<pre>")
    assert time.process_time() - begun < 20


LONG = "if a[0] < b.c(1, 2): return 'x' & {1: 2}\n" * 260


@pytest.mark.parametrize("language", ["go", "http", "python", "", "\\"])
def test_code_whose_colours_may_take_long_is_shown_without_them(page, language):
    """Lexers read some texts again from each of their places, and IPython's even short ones."""
    code = {"go": "/* " * 30_000, "http": "a" * 40_000, "python": " \n" * 40_000 + "x"}.get(language, LONG)
    begun = time.process_time()
    block = page(new_markdown_cell(f"```{language}\n{code}\n```")).select_one(".text_cell_render pre")
    assert block.text.strip() == code.strip() and not block.select("span")
    cell = page(new_code_cell(code)).select_one(".input_area .highlight pre")
    assert cell.text.strip() == code.strip() and not cell.select("span")
    page(new_code_cell("x" + " \n" * 2400 + "x"), new_code_cell("%%perl\n" + "a " * 2400))
    assert time.process_time() - begun < 5


def test_where_the_colours_of_a_page_have_taken_long_the_rest_of_it_has_none(page, monkeypatch):
    monkeypatch.setattr(harmless, "SECONDS", 0.0)
    for _ in range(2):  # the next page begins anew
        tree = page(new_code_cell("return 1"), new_code_cell("return 2"), new_markdown_cell("```python\nreturn 3\n```"))
        assert [code.text.strip() for code in tree.select(".highlight pre")] == ["return 1", "return 2", "return 3"]
        assert [code.text for code in tree.select(".highlight .k")] == ["return"]


@pytest.mark.parametrize("colours", ["\x1b[0m" * 250_000, "\x1b[" + "0;" * 499_000 + "m", "\x1b\x1b[0m[0m" * 150_000])
def test_colours_of_outputs_that_take_long_are_left_out(page, colours):
    text = f"one {colours}<two>"
    shown = [
        new_output("stream", text=text),
        new_output("execute_result", data={"text/plain": text}),
        new_output("display_data", data={"text/latex": rf"\href {text}"}),
        new_output("error", ename="E", evalue="no", traceback=[text, text]),
    ]
    begun = time.process_time()
    areas = page(new_code_cell("x", outputs=shown)).select(".output_subarea pre")
    assert all(area.text.strip().startswith(("one", r"\href one")) for area in areas)
    assert len(areas) == 4 and all(area.text.strip().endswith("<two>") and not area.select("span") for area in areas)
    assert time.process_time() - begun < 5


def test_a_large_picture_and_a_long_answer_are_shown():
    picture = "data:image/png;base64," + "A" * harmless.LONGEST
    assert f'src="{picture}"' in harmless.Harmless().markdown2html({}, f"so ![x]({picture})")
    written = " ".join(f"word{number % 2500} <i>x</i>" for number in range(2400))
    assert harmless.Harmless().markdown2html({}, written).startswith("<p>word0 <i>")


def test_where_markup_cannot_be_shown_the_answer_stands_as_it_was_written(page):
    long = "# So\n\n```python\n" + "a & b < c\n" * 2600 + "```\n\n*it* is"
    for source in (r"*so* $\href{javascript:1}{x}$ & [y](z)", long):
        tree = page(new_markdown_cell(source))
        assert tree.select_one(".text_cell_render pre").text == source
    shown = r"*so* $\href{javascript:1}{x}$"
    tree = page(new_code_cell("x", outputs=[new_output("display_data", {"text/markdown": shown})]))
    assert tree.select_one(".output_markdown pre").text == shown


def test_what_a_kernel_sends_in_the_place_of_a_text_is_shown_as_one(page):
    tree = page(WORKS["shown: a number for text/html"], WORKS["shown: a text in a list of other things"])
    assert tree.select_one(".output_html").text.strip() == "5"
    assert tree.select_one(".output_text").text.strip() == f"['{markup.IMAGE}', 5]"


def test_a_format_that_is_a_number_loses_no_page(page):
    assert page(new_raw_cell("so", metadata={"raw_mimetype": 5})).select_one("pre").text == "so"


def test_a_page_of_feedback_has_links_as_its_template_makes_them(exporter):
    """Under whatever name: what a course says of templates goes for Formgrader, too."""
    notebook = nbformat.v4.new_notebook(cells=[new_markdown_cell("[x](https://y.z)")])
    for maker, links in [(GenerateFeedback(), 1), (None, 0)]:
        for template in ("classic", exporter.template_name):
            config = Config({"HTMLExporter": exporter.config.HTMLExporter | {"template_name": template}})
            text, _ = HTMLExporter(parent=maker, config=config).from_notebook_node(notebook, ABOUT | NAMES)
            assert len(cells_of(text).select("a[href='https://y.z']")) == links, (maker, template)


def test_our_feedback_is_as_it_was():
    """It keeps scripts from running by itself, and has formulas and links of its own."""
    found = {}
    for template in (feedback.TEMPLATE, "classic"):
        exporter = feedback.FeedbackExporter(
            template_name=template, extra_template_basedirs=[str(feedback.TEMPLATES)],
            preprocessors=["course_lib.grading.marking.harmless.Harmless"],
        )  # fmt: skip
        found[template] = any(isinstance(each, harmless.Harmless) for each in exporter._preprocessors)
    assert found == {feedback.TEMPLATE: False, "classic": True}


ANSWER = f"1. The variance is $d_k$. <script>{markup.EVIL}</script> {markup.IMAGE} ![drawn](attachment:d.png)"


def handed_in(course):
    """The solved notebook, whose answer has a formula and a picture; all that might act is in cells of its own."""
    notebook = filled_in(course.release, reference_answers(course.source) | {"explain": ANSWER})
    answer = next(cell for cell in notebook.cells if grade_id(cell) == "explain")
    answer.attachments = {"d.png": {"image/png": markup.PIXEL}}
    for cell in WORKS.values():
        if not cell.get("attachments", {"x": "none is asked for"}).get("x"):
            continue  # nbconvert makes no page of it, on which nothing could act
        own = nbformat.from_dict(json.loads(json.dumps(cell)))
        own.metadata.pop("nbgrader", None)  # a name that it does not know, nbgrader does not grade
        if cell["cell_type"] == "code" and cell.outputs and "data" in cell.outputs[0]:
            if not all(isinstance(shown, str) for shown in cell.outputs[0].data.values()):
                continue  # our grader takes it from no kernel
            about = json.dumps([cell.outputs[0].data, cell.outputs[0].metadata])
            own.source = f"import json\ndata, about = json.loads({about!r})\ndisplay(data, metadata=about, raw=True)"
        notebook.cells.append(own)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"c{number}"
    return notebook


@pytest.fixture(scope="module")
def graded(generated, tmp_path_factory):
    """A course with such a work, of anna's by nbgrader's own command, and of ben's by ours."""
    course = Course(tmp_path_factory.mktemp("harmless"), copied_from=generated.root)
    course.submit("ben", handed_in(course))
    status, said = course.marking(ASSIGNMENT)
    assert status == 0, said
    course.submit("anna", handed_in(course))
    course.nbgrader("autograde", ASSIGNMENT, "--student", "anna")
    return course


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    with open_browser() as running:
        yield running


def acted(opened):
    """Whether a script ran in a page, given time to."""
    opened.wait_for_timeout(1000)
    return bool(opened.evaluate("window.acted"))


def test_in_the_browser_of_whoever_marks_no_script_runs(graded, browser):
    with graded.gradebook() as gradebook:
        names = {s: gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, s).id for s in ("anna", "ben")}
    with jupyterlab(graded, "instructor", graded.root) as address:
        for student, name in names.items():
            opened, asked = browser.new_page(), []
            opened.on("request", lambda request, asked=asked: asked.append(request.url))
            url = f"{address.removesuffix('/lab')}/formgrader/submissions/{name}/"
            opened.goto(url, timeout=600_000)
            assert not acted(opened) and opened.url == url, student
            assert [each for each in asked if markup.ASKED in each or "/submissions/x" in each] == []
            answer = opened.locator(".nbgrader_cell", has_text="The variance is $d_k$").first
            assert f"<script>{markup.EVIL}</script>" in answer.inner_text()
            drawn = answer.locator("img[alt=drawn]").first
            assert drawn.evaluate("picture => picture.complete && picture.naturalWidth") == 1
            assert opened.locator("input.score#explain").count() == 1
            opened.close()


@pytest.mark.parametrize("student", ["anna", "ben"])
def test_without_what_keeps_them_from_it_scripts_run(graded, browser, student, exporter):
    """So the test above shows something."""
    notebook = nbformat.read(graded.root / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "attachment:x" not in cell.source]  # some are lost on the way
    text, _ = HTMLExporter(config=exporter.config, preprocessors=[]).from_notebook_node(notebook, ABOUT | NAMES)
    opened = browser.new_page()
    opened.set_content(text.replace('http-equiv="refresh"', ""))
    assert acted(opened)
    opened.close()


def test_in_a_page_of_feedback_no_script_runs(graded, browser):
    text = (graded.root / "feedback" / "ben" / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text()
    opened = browser.new_page()
    opened.set_content(text.replace('http-equiv="refresh"', ""))  # by which students may lead themselves away
    assert not acted(opened) and opened.locator("img[alt=drawn]").count() == 1
    opened.close()
