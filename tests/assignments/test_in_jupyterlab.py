"""An assignment in JupyterLab, in a browser: a student fetches, edits, validates and submits; an instructor marks.

With `PICTURES=book/_static/students` in front, this file makes the pictures of the page for students.
"""

import contextlib
import getpass
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.course import ASSIGNMENT, BIN, Course
from tests.support.site_checker import open_browser

WRONG = "def softmax(x):\n    return np.exp(x) / np.exp(x).sum(axis=0)"
RIGHT = (
    "def softmax(x):\n    e = np.exp(x - x.max(axis=-1, keepdims=True))\n    return e / e.sum(axis=-1, keepdims=True)"
)
ANSWER = "1. The mean is 0 and the variance d_k, as the variances of independent terms add."
PATIENCE = 600_000  # milliseconds for whatever should come: a busy machine is slow, not wrong
expect.set_options(timeout=PATIENCE)
UNHURRIED = """
c = get_config()
c.Execute.timeout = 1800
c.Execute.startup_timeout = 600
c.Execute.iopub_timeout = 600
"""


@contextlib.contextmanager
def jupyterlab(course, who, folder):
    """The address of a JupyterLab that runs in `folder` with the settings of `who`."""
    environment = course._environment(who)
    settings = course.folder / "home" / who / "settings"
    (settings / "@jupyterlab" / "apputils-extension").mkdir(parents=True)
    (settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings").write_text(
        json.dumps({"fetchNews": "false"})  # no question about news over what is to be clicked
    )
    (course.folder / "home" / who / ".jupyter" / "nbgrader_config.py").write_text(UNHURRIED)
    environment |= {"JUPYTERLAB_SETTINGS_DIR": str(settings), "JUPYTERLAB_WORKSPACES_DIR": str(settings / "w")}
    log = course.folder / f"{who}.log"
    command = [BIN / "jupyter-lab", "--allow-root", "--no-browser", "--port", "0", "--IdentityProvider.token="]
    with log.open("w") as said:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while not (address := re.search(r"http://127.0.0.1:\d+/lab", log.read_text())):
            assert server.poll() is None, log.read_text()
            time.sleep(0.2)
        yield address[0]
    finally:
        server.terminate()
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:  # how a server ends, which now and then waits for a kernel, is not ours
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def menu(page, entry):
    """Choose an entry of the menu Nbgrader."""
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.locator(".lm-Menu-item", has_text=re.compile(f"^{entry}$")).first.click()


def picture(page, name):
    """Keep what the page shows, where the pictures of the book are wanted."""
    if "PICTURES" in os.environ:
        page.screenshot(path=Path(os.environ["PICTURES"]) / f"{name}.png")


def write_cell(page, known_by, text):
    """Put a text into the first cell that shows `known_by`, as one types it."""
    cell = page.locator(".jp-Cell", has_text=known_by).first
    cell.scroll_into_view_if_needed()
    cell.click()
    page.keyboard.press("Enter")
    expect(cell.locator(".cm-content")).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def save(page):
    """Save, and wait for the server's answer: what the page says of it is gone after a moment."""
    with page.expect_response(lambda got: "/api/contents/" in got.url and got.request.method == "PUT") as saved:
        page.keyboard.press("ControlOrMeta+s")
    assert saved.value.ok


def validate(page):
    """What the button Validate says."""
    page.get_by_role("button", name="Validate").click()
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("Validation Results")
    return dialog


def as_student(page, address):
    """Fetch, write a wrong softmax, validate, mend it, answer the question, submit."""
    page.goto(f"{address}?reset")
    expect(page.locator(".jp-LauncherCard").first).to_be_visible()
    menu(page, r"Assignment List\s*")
    released, fetched = page.locator("#released_assignments_list"), page.locator("#fetched_assignments_list")
    expect(released).to_contain_text(ASSIGNMENT)
    picture(page, "fetch")
    released.get_by_role("button", name="Fetch").click()
    fetched.locator("a").first.click()
    expect(fetched.get_by_role("button", name="Validate")).to_be_visible()
    page.goto(f"{address}/tree/{ASSIGNMENT}/{ASSIGNMENT}.ipynb?reset")
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
    write_cell(page, "def softmax(x):", WRONG)
    picture(page, "edit")
    save(page)
    dialog = validate(page)
    expect(dialog).to_contain_text("your columns add up to one, not your rows")
    dialog.get_by_text("your columns add up to one, not your rows").last.scroll_into_view_if_needed()
    picture(page, "validate")
    page.keyboard.press("Escape")
    write_cell(page, "def softmax(x):", RIGHT)
    write_cell(page, "YOUR ANSWER HERE", ANSWER)
    page.keyboard.press("Shift+Enter")
    save(page)
    expect(validate(page)).not_to_contain_text("softmax: the example by hand, and a second row\nsoftmax")
    page.keyboard.press("Escape")
    menu(page, r"Assignment List\s*")
    fetched.get_by_role("button", name="Submit").click()
    expect(page.locator("#submitted_assignments_list")).to_contain_text("UTC")
    picture(page, "submit")


def as_instructor(page, address):
    """Collect, grade, and give three of four points to the written answer."""
    page.goto(f"{address}?reset")
    expect(page.locator(".jp-LauncherCard").first).to_be_visible()
    menu(page, r"Formgrader\s*")
    formgrader = page.frame_locator("iframe")
    row = formgrader.locator("tr", has_text=ASSIGNMENT)
    row.locator("td.collect a").click()
    acknowledge(formgrader, "Successfully collected")
    row.locator("td.num-submissions a").click()
    formgrader.locator("tr", has_text=getpass.getuser()).locator("td.autograde a").click()
    acknowledge(formgrader, "Successfully autograded")
    formgrader.get_by_role("link", name="Manual Grading").first.click()
    for to in (f"gradebook/{ASSIGNMENT}", f"gradebook/{ASSIGNMENT}/{ASSIGNMENT}"):  # both are called as the assignment
        formgrader.locator(f"tbody a[href$='/{to}']").click()
    formgrader.locator("tbody a", has_text="Submission #1").first.click()
    expect(formgrader.get_by_text("the variance d_k, as the variances of independent")).to_be_visible()
    points = formgrader.locator("input.score").last
    points.fill("3")
    with page.expect_response(lambda answer: "/api/grade" in answer.url and answer.request.method == "PUT"):
        points.press("Tab")
    picture(page, "mark")


def acknowledge(formgrader, said):
    dialog = formgrader.locator(".modal:visible")
    expect(dialog).to_contain_text(said)
    dialog.get_by_role("button", name="OK").click()
    expect(dialog).to_have_count(0)


@pytest.fixture(scope="module")
def course(generated, tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("lab"), copied_from=generated.root)
    course.nbgrader("release_assignment", ASSIGNMENT)
    return course


def test_a_student_and_an_instructor_do_all_of_it_in_the_browser(course):
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 700})
        page.set_default_timeout(PATIENCE)
        with jupyterlab(course, "student", course.student_folder("student")) as address:
            as_student(page, address)
        with jupyterlab(course, "instructor", course.root) as address:
            as_instructor(page, address)
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission(ASSIGNMENT, getpass.getuser())
        assert (submission.score, submission.written_score, submission.needs_manual_grade) == (7, 3, False)
