"""The published book, and the browser of a file of tests: Playwright cannot start a second while the first is open."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.built_site import built_site
from tests.support.live_page import PLAIN, write_page
from tests.support.plain_page import Visit
from tests.support.site_checker import open_browser, serve


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; fails with the way to install one where there is none.

    Of a file and not of the session: a book built in this process while it is open may keep it from closing.
    """
    with open_browser() as running:
        yield running


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the published book."""
    return built_site()


@pytest.fixture(scope="module")
def address(site):
    """Where the published book is served."""
    with serve(site) as base:
        yield base


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The folder of a page with all live figures that need no model."""
    return write_page(tmp_path_factory.mktemp("plain"), PLAIN).parent


@pytest.fixture(scope="module")
def tab(browser):
    """For one visit after the other: a new one starts a process, which takes longer than what most tests do in it."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def visit(tab, plain):
    """A reader's visit of that page, who may find no fault in the console."""
    opened = Visit(tab, plain)
    yield opened
    opened.leave()
    assert not opened.complaints


@pytest.fixture(scope="module")
def compute(browser, plain):
    """What a function body of JavaScript returns on that page; in it stand `use`, and its arguments as `given`."""
    page = browser.new_page()
    page.goto((plain / "index.html").as_uri())

    def call(body, **arguments):
        given = json.loads(json.dumps(arguments, default=lambda value: np.asarray(value).tolist()))
        return page.evaluate(f"(given) => {{ const use = live.use; {body} }}", given)

    yield call
    page.close()
