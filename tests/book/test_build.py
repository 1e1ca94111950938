"""The first file of its folder: one process begins to build the book while the other has files that need none.

A process that comes to such a file while another one builds would wait for minutes.
"""

from tests.support.site_checker import pages_of


def test_the_book_builds_without_a_warning(site):
    """Warnings are errors in the build that the fixture asks for."""
    assert "book/index.html" in pages_of(site)
