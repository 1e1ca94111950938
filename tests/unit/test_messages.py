"""What the lowest modules of the library say: which extra is missing, and a few of many names."""

import pytest

from course_lib._extras import needed
from course_lib.errors import few


def test_what_is_missing_is_named_with_the_extra_that_brings_it():
    words = r'^no_such_module is not installed, .* in the folder of the course, run pip install "\.\[lab\]"$'
    with pytest.raises(ModuleNotFoundError, match=words) as caught, needed("lab"):
        import no_such_module  # noqa: F401
    assert caught.value.name == "no_such_module"


def test_what_is_installed_and_broken_says_so_itself():
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"), needed("lab"):
        from course_lib import no_such_name  # noqa: F401


def test_a_few_of_many_names():
    names = ["a", "b", "c", "d"]
    assert (few(names), few(names, 4), few(names, 3)) == ("a, b, c, d", "a, b, c, d", "a, b, c and 1 more")
    assert few(names, 1) == "a and 3 more"
