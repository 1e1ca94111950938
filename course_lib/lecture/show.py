"""What a lecture shows: the library's own source, and the numbers that its prose quotes."""

import ast
import inspect
import sys
import textwrap

from tqdm import tqdm

from course_lib._extras import needed

with needed("lectures"):
    from IPython.display import Code, clear_output, display

CLAIM = "application/vnd.attention-course.claim+json"  # a kind of output that no page and no notebook shows


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


def claims(how: str = "", /, **values) -> None:
    """Keep the numbers that the prose of a lecture quotes with the cell that computed them; nothing is shown.

    Prose then says `0.83<!--name-->`. The test suite compares the two to the digits that the prose gives, and the book
    says on hover what is kept here.

    Parameters
    ----------
    how : what computed them, such as "python notebooks/experiments/ablations.py, seeds 0 to 2"; by default the cell
    values : a number each, or one with its interval, such as an `Estimate`

    Raises
    ------
    TypeError : a value that is not a number, nor a number with its two limits.
    """
    kept = []
    for name, value in values.items():
        parts = value if isinstance(value, tuple) else (value,)
        if len(parts) not in (1, 3):
            raise TypeError(f"the claim {name!r} must be a number, or (number, low, high), got {value!r}")
        numbers = [_number(name, part) for part in parts]
        claim = {"name": name, "value": numbers[0], "interval": numbers[1:], "how": how}
        kept.append({key: part for key, part in claim.items() if part})
    for claim in kept:
        display({CLAIM: claim}, raw=True)


def _number(name: str, value) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    try:
        return f"{float(value):.6g}"
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
