"""course_lib.lecture.show: the library's source as a lecture shows it, and the numbers that prose quotes."""

import ast

import numpy as np
import pytest

from course_lib import masks
from course_lib.lecture.show import claims, show
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


def test_claims_print_one_a_line(capsys):
    claims(n_heads=8, accuracy=0.8312345678, small=np.float32(1.5e-7), count=np.int64(12), third=1 / 3)
    assert capsys.readouterr().out == ("n_heads: 8\naccuracy: 0.831235\nsmall: 1.5e-07\ncount: 12\nthird: 0.333333\n")


def test_claims_are_numbers():
    with pytest.raises(TypeError, match="the claim 'accuracy' must be a number, got 'good'"):
        claims(accuracy="good")
