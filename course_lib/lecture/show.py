"""What a lecture shows: the library's own source, and the numbers that its prose quotes."""

import ast
import inspect
import sys
import textwrap

from tqdm import tqdm

from course_lib._extras import needed

with needed("lectures"):
    from IPython.display import Code, clear_output


def show(obj, docstring: bool = False) -> Code:
    """The source of a class, function or method as the library has it, highlighted; never a copy of it.

    Parameters
    ----------
    obj : a class, function or method written in Python
    docstring : whether to keep the docstrings; the API reference has them

    Raises
    ------
    TypeError : `obj` has no Python source to show.
    """
    try:
        source = textwrap.dedent(inspect.getsource(obj))
    except (TypeError, OSError) as error:
        raise TypeError(f"{obj!r} has no Python source to show; pass a class, a function or a method") from error
    return Code(source if docstring else _without_docstrings(source), language="python")


def claims(**values) -> None:
    """Print the numbers that the prose of a lecture quotes, one `name: value` a line.

    Prose then says `0.83<!--name-->`, and the test suite compares the two to the digits that the prose gives.

    Raises
    ------
    TypeError : a value that is not a number.
    """
    for name, value in values.items():
        if isinstance(value, int) and not isinstance(value, bool):
            print(f"{name}: {value}")
        else:
            try:
                print(f"{name}: {float(value):.6g}")
            except (TypeError, ValueError) as error:
                raise TypeError(f"the claim {name!r} must be a number, got {value!r}") from error


def progress(items, label: str = ""):
    """Iterate with a bar that says how far it is, and that is gone from the cell's output when it is done.

    Print results after the loop: what the cell has printed before its end goes with the bar.
    """
    yield from tqdm(items, desc=label, file=sys.stdout, leave=False)
    clear_output()


def _without_docstrings(source: str) -> str:
    lines = source.splitlines()
    drop = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            string = node.body[0]
            if len(node.body) > 1:  # a body of a docstring alone stays: without it the code would not parse
                drop.update(range(string.lineno, string.end_lineno + 1))
                following = string.end_lineno + 1
                if following <= len(lines) and not lines[following - 1].strip():
                    drop.add(following)
    return "\n".join(line for i, line in enumerate(lines, start=1) if i not in drop)
