"""The one browser of the session: Playwright cannot start a second while the first is open."""

import pytest

from tests.support.site_checker import open_browser


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium; fails with the way to install one where there is none."""
    with open_browser() as running:
        yield running
