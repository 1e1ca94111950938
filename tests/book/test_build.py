"""The book is built before the files that look at it run: its name stands first.

A process that comes to such a file while another one builds would wait for minutes.
"""

from tests.support.site_checker import pages_of


def test_the_book_builds_without_a_warning(site):
    """Warnings are errors in the build that the fixture asks for."""
    assert "book/index.html" in pages_of(site)
