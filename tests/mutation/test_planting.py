"""Planting itself: one place, found whatever stands beside it, and a record that notices what has changed."""

import ast
import json

import planting
import pytest
from planting import Bug, bugs_of, changed, fingerprint, record, with_bug

SOURCE = '''
"""A module."""
FACTOR = 2

class Layer:
    def call(self, x):
        """Twice."""
        y = (FACTOR *
             x)  # laid out like this
        str(y)
        return y

def call(x):
    return FACTOR * x
'''


def run(bug):
    names = {}
    exec(compile(with_bug(SOURCE, bug), "a module", "exec"), names)
    return names


def bug(where="call", old="FACTOR * x", new="x", name="a bug"):
    return Bug("torch/layer.py", name, where, old, new, "unit/test_layer.py")


def test_an_expression_is_replaced_in_its_place_alone():
    names = run(bug("Layer.call"))
    assert names["Layer"]().call(5) == 5 and names["call"](5) == 10


def test_statements_are_replaced_or_removed():
    assert run(bug("Layer.call", "str(y)\nreturn y", "return -y"))["Layer"]().call(5) == -10
    assert run(bug("Layer.call", "str(y)", ""))["Layer"]().call(5) == 10
    assert run(bug("Layer.call", "str(y)", "pass\ny = 0"))["Layer"]().call(5) == 0
    assert run(bug("call", "return FACTOR * x", ""))["call"](5) is None
    assert run(bug("", "FACTOR = 2", "FACTOR = 3"))["call"](5) == 15


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (bug("", "FACTOR * x"), "stands 2 times in the module, not once"),
        (bug("call", "FACTOR + x"), "stands 0 times in call, not once"),
        (bug("Layer.forward"), "there is no Layer.forward"),
    ],
)
def test_a_place_that_is_none(wrong, message):
    with pytest.raises(ValueError, match=f"torch/layer.py: a bug: .*{message}"):
        with_bug(SOURCE, wrong)


@pytest.mark.parametrize(
    ("source", "wrong", "place"),
    [
        ("def call(x:", bug(), "course_lib/torch/layer.py, line 1"),
        (SOURCE, bug(old="FACTOR *"), "old of torch/layer.py: a bug, line 1"),
        (SOURCE, bug(new="return ("), "new of torch/layer.py: a bug, line 1"),
    ],
)
def test_a_syntax_error_names_its_place(source, wrong, place):
    with pytest.raises(SyntaxError) as error:
        with_bug(source, wrong)
    assert place in f"{error.value.filename}, line {error.value.lineno}"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library of one file with one bug; gives the file and the bugs' file."""
    for name, path in (("LIBRARY", tmp_path / "lib"), ("BUGS", tmp_path / "bugs"), ("RECORD", tmp_path / "record")):
        monkeypatch.setattr(planting, name, path)
    (tmp_path / "lib" / "torch").mkdir(parents=True)
    (tmp_path / "bugs" / "torch").mkdir(parents=True)
    (tmp_path / "lib" / "torch" / "layer.py").write_text(SOURCE)
    (tmp_path / "bugs" / "torch" / "layer.toml").write_text(entry())
    return tmp_path / "lib" / "torch" / "layer.py", tmp_path / "bugs" / "torch" / "layer.toml"


def entry(**changes):
    fields = bug()._asdict() | changes
    del fields["file"]
    return "[[bug]]\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items()) + "\n"


def test_bugs_are_read(library):
    assert bugs_of("torch/layer.py") == [bug()] and bugs_of("torch/other.py") == []
    library[1].write_text(entry() + entry(old="x"))
    with pytest.raises(ValueError, match="two bugs named 'a bug'"):
        bugs_of("torch/layer.py")


def test_what_changed_since_all_were_caught(library):
    code, bugs = library
    assert changed() == ["torch/layer.py"]  # nothing is recorded
    record()
    assert changed() == []
    code.write_text(ast.unparse(ast.parse(SOURCE)).replace("Twice.", "Two times."))
    assert changed() == []  # comments, docstrings and layout do not count
    code.write_text(SOURCE.replace("FACTOR = 2", "FACTOR = 2.0"))
    assert changed() == ["torch/layer.py"]
    code.write_text(SOURCE)
    bugs.write_text(entry(new="-x"))
    assert changed() == ["torch/layer.py"]
    bugs.write_text(entry())
    assert changed() == []
    code.write_text("def call(x:")
    with pytest.raises(SyntaxError) as error:
        changed()
    assert error.value.filename == str(code)
    code.unlink()
    assert changed() == ["torch/layer.py"] and fingerprint("torch/layer.py")
