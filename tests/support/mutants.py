"""Wrong solutions made by machine: each is the reference with one small change, in the syntax tree of one cell.

What changes: an operator, a constant (an axis among them), a sign, the order of two things, a name, or a step that is
missing. The changes of a cell are always the same, in the same order. Some are right all the same: a bank lists these,
each with its reason.
"""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

from tests.support.course import grade_id, maximum

OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
ORDERED = (ast.Sub, ast.Div, ast.MatMult, ast.Pow)
FUNCTIONS = {
    "max": ("min", "mean"), "min": ("max",), "sum": ("mean",), "exp": ("square",), "sqrt": ("square",),
    "tril": ("triu",), "ones": ("zeros",), "zeros": ("ones",), "argmax": ("argmin",), "any": ("all",), "all": ("any",),
    "tanh": ("sigmoid",), "ones_like": ("zeros_like",), "zeros_like": ("ones_like",),
}  # fmt: skip


class Mutant(NamedTuple):
    """One change of the reference."""

    cell: str  # the grade_id of the solution cell
    change: str  # the statement before and after
    source: str  # the cell as it is handed in


def mutants(answers: dict[str, str]) -> list[Mutant]:
    """All changes of these solution cells, in their order; cells that are no code are left out."""
    return [mutant for cell, source in answers.items() for mutant in _of_cell(cell, source)]


def own_part(notebook) -> dict[str, set[str]]:
    """For every solution cell, the graded cells between it and the next one: where its mistakes may cost points."""
    graded, parts, current = maximum(notebook), {}, None
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution"):
            current = parts.setdefault(grade_id(cell), set())
        elif grade_id(cell) in graded:
            current.add(grade_id(cell))
    return parts


def _of_cell(cell: str, source: str) -> Iterator[Mutant]:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a written answer
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            del node.body[0]
    seen = {ast.unparse(tree)}
    words = {id(part) for text in ast.walk(tree) if isinstance(text, ast.JoinedStr) for part in ast.walk(text)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in words:  # what an error says is not graded
            continue
        for change in range(len(list(_changed(node, _function(tree, node))))):
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[number]
            statement = _statement(changed, target)
            before = _head(statement)
            new = list(_changed(target, _function(changed, target)))[change]
            after = _put(changed, target, new, statement)
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text not in seen:
                seen.add(text)
                yield Mutant(cell, f"{before}  ->  {after}", text)


def _changed(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[ast.AST | list[ast.stmt]]:
    """What may stand in the place of a node."""
    match node:
        case ast.BinOp(left, op, right):
            if type(op) in OPERATORS:
                yield ast.BinOp(left, OPERATORS[type(op)](), right)
            if isinstance(op, ORDERED):
                yield ast.BinOp(right, op, left)
            yield from (left, right)
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.Compare(left, [op], rest):
            if type(op) in OPERATORS:
                yield ast.Compare(left, [OPERATORS[type(op)]()], rest)
            if isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                yield ast.UnaryOp(ast.Not(), node)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(OPERATORS[type(op)](), values)
            yield from values
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Call(function_called, arguments, keywords):
            yield from _other_calls(node, function_called, arguments, keywords)
        case ast.Subscript(value, _, ast.Load()):
            yield value
        case ast.Tuple(elements, ast.Load()) if len(elements) > 1:
            for i in range(len(elements) - 1):
                yield ast.Tuple([*elements[:i], elements[i + 1], elements[i], *elements[i + 2 :]], ast.Load())
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.Name(name, ast.Load()) if function is not None:
            names = [argument.arg for argument in function.args.args]
            if name in names and len(names) > 1:
                yield ast.Name(names[(names.index(name) + 1) % len(names)], ast.Load())
        case ast.If():
            yield from (ast.If(ast.Constant(value), node.body, node.orelse) for value in (True, False))
        case ast.Assign(targets, value) if not isinstance(value, (ast.Tuple, ast.Lambda)):
            yield ast.Assign(targets, ast.UnaryOp(ast.USub(), value))
            yield ast.Pass()
        case ast.AugAssign(target, op, value):
            if type(op) in OPERATORS:
                yield ast.AugAssign(target, OPERATORS[type(op)](), value)
            yield ast.Pass()
        case ast.Return(value) if value is not None and not isinstance(value, ast.Tuple):
            yield ast.Return(ast.UnaryOp(ast.USub(), value))
        case ast.Raise() | ast.For() | ast.Break() | ast.Expr():
            yield ast.Pass()


def _other_calls(node: ast.Call, called: ast.expr, arguments: list, keywords: list) -> Iterator[ast.expr]:
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    for other in FUNCTIONS.get(name, ()):
        attribute = isinstance(called, ast.Attribute)
        renamed = ast.Attribute(called.value, other, ast.Load()) if attribute else ast.Name(other, ast.Load())
        yield ast.Call(renamed, arguments, keywords)
    if isinstance(called, ast.Attribute) and not isinstance(called.value, ast.Name | ast.Attribute):
        yield called.value
    elif isinstance(called, ast.Attribute) and not arguments:
        yield called.value
    yield from (argument for argument in arguments if not isinstance(argument, ast.Constant | ast.Starred))
    for i in range(len(arguments) - 1):
        swapped = [*arguments[:i], arguments[i + 1], arguments[i], *arguments[i + 2 :]]
        yield ast.Call(called, swapped, keywords)
    for i in range(len(keywords)):
        yield ast.Call(called, arguments, keywords[:i] + keywords[i + 1 :])


def _function(tree: ast.Module, node: ast.AST) -> ast.FunctionDef | None:
    """The innermost function around a node."""
    around = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and node in ast.walk(f)]
    return around[-1] if around else None


def _statement(tree: ast.Module, node: ast.AST) -> ast.stmt:
    """The innermost statement that holds a node."""
    return [s for s in ast.walk(tree) if isinstance(s, ast.stmt) and node in ast.walk(s)][-1]


def _head(statement: ast.stmt) -> str:
    return ast.unparse(statement).splitlines()[0]


def _put(tree: ast.Module, old: ast.AST, new: ast.AST, statement: ast.stmt) -> str:
    """Put a node into the place of another; return the statement that then stands there."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(item is old for item in value):
                value[:] = [new if item is old else item for item in value]
    return _head(ast.fix_missing_locations(new if old is statement else statement))
