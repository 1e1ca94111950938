"""course_lib.lecture.show: the library's source as a lecture shows it, and the numbers that prose quotes."""

import ast

import numpy as np
import pytest

from course_lib import masks
from course_lib.evaluation.estimate import Estimate
from course_lib.lecture.show import CLAIM, claims, show
from course_lib.models.bert import BertConfig
from course_lib.numpy import MultiHeadAttention


def test_a_function_without_its_docstring():
    code = show(masks.causal_mask)
    assert code.language == "python"
    assert code.data.startswith("def causal_mask(") and "return (s <= t)[None, None]" in code.data
    assert '"""' not in code.data and "Parameters" not in code.data
    ast.parse(code.data)


def test_a_function_with_its_docstring():
    assert show(masks.causal_mask, docstring=True).data.count('"""') == 2


def test_a_class_loses_every_docstring_and_keeps_every_line_of_code():
    plain, full = show(MultiHeadAttention).data, show(MultiHeadAttention, docstring=True).data
    assert '"""' not in plain and "def split(self, x):" in plain and "def __call__" in plain
    assert ":\n\n" not in plain, "no empty line where a docstring was"
    kept = [line for line in plain.splitlines() if line.strip()]
    assert set(kept) <= set(full.splitlines())

    class WithoutDocstrings(ast.NodeTransformer):
        def visit(self, node):
            self.generic_visit(node)
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            return node

    assert ast.dump(ast.parse(plain)) == ast.dump(WithoutDocstrings().visit(ast.parse(full)))


def test_a_method_is_moved_to_the_margin():
    assert show(MultiHeadAttention.merge).data.startswith("def merge(self, x):")


def test_a_class_of_a_docstring_alone_still_parses():
    from course_lib.numpy.layers import Module

    ast.parse(show(Module).data)


def test_a_dataclass_keeps_its_decorator():
    assert show(BertConfig).data.startswith("@dataclass(frozen=True)")


@pytest.mark.parametrize("thing", [3, len, np.float64(2.0), "attention"], ids=repr)
def test_things_without_python_source(thing):
    with pytest.raises(TypeError, match="has no Python source to show; pass a class, a function or a method"):
        show(thing)


def kept(monkeypatch, *how, **values):
    """What a cell's outputs hold of these claims."""
    outputs = []
    monkeypatch.setattr("course_lib.lecture.show.display", lambda data, raw: outputs.append((data, raw)))
    claims(*how, **values)
    assert all(raw and list(data) == [CLAIM] for data, raw in outputs), "nothing that could be shown"
    return [data[CLAIM] for data, _ in outputs]


def test_claims_are_kept_and_not_shown(capsys, monkeypatch):
    numbers = {"n_heads": 8, "accuracy": 0.8312345678, "small": np.float32(1.5e-7), "count": np.int64(12)}
    shown = {"n_heads": "8", "accuracy": "0.831235", "small": "1.5e-07", "count": "12"}
    assert kept(monkeypatch, **numbers) == [{"name": name, "value": value} for name, value in shown.items()]
    (claim,) = kept(monkeypatch, "train.py, seeds 0 to 2", accuracy=Estimate(0.5, 0.25, 1.0))
    assert claim == {"name": "accuracy", "value": "0.5", "interval": ["0.25", "1"], "how": "train.py, seeds 0 to 2"}
    assert kept(monkeypatch, "by hand", how=3) == [{"name": "how", "value": "3", "how": "by hand"}]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", ["good", (1.0, 2.0), (1.0, "low", 2.0)], ids=str)
def test_claims_are_numbers(value):
    with pytest.raises(TypeError, match="the claim 'accuracy' must be a number"):
        claims(accuracy=value)


def test_of_claims_all_or_none_are_kept(monkeypatch):
    monkeypatch.setattr("course_lib.lecture.show.display", lambda *arguments, **options: pytest.fail("one was kept"))
    with pytest.raises(TypeError, match="the claim 'second' must be a number"):
        claims(first=1.0, second="good")
