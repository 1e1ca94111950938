"""The browser of a file of tests: Playwright cannot start a second while the first is open."""

import pytest

from tests.support.site_checker import open_browser


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; fails with the way to install one where there is none.

    Of a file and not of the session: a book built in this process while it is open may keep it from closing.
    """
    with open_browser() as running:
        yield running
