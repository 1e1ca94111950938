"""What a student changed of that which only the course writes: it has no effect, but whoever grades is told."""

import ast
import functools
import html
import re
from collections.abc import Iterable

from course_lib._extras import needed
from course_lib.grading.marking.recognised import owners
from course_lib.grading.marking.record import KIND, POINTS, READ_ONLY, TEST, UNLOCKED
from course_lib.grading.marking.released import Release, Released, grade_id, listed
from course_lib.grading.marking.strays import at_top, bound_by, lines_of, parsed

with needed("lab"):
    from nbformat import NotebookNode

EARLIER = "a cell is that of another release, and the present one counts"
TYPESET = str.maketrans("‘’“”\u00a0", "''\"\" ")  # what a program for texts makes of code, and what it was
LETTER = re.compile(r"&#?\w+;")  # of HTML; without its end it is code, such as `a &lt`
QUOTES = re.compile("[\"'‘’“”]")  # in a text of code: a program that lays code out puts it between others
DAMAGE = re.compile(r"\\(?:x..|u....|[nt])|[^!-~]|\?")  # what a conversion may do to texts in code, and layout


def changes(cells: list[NotebookNode], release: Release) -> list[str]:
    """One sentence for each way in which what only the course writes was changed; nothing of it has an effect.

    It is no change where cells mean what the released one means, however they are laid out, commented, timed, cut in
    pieces or damaged in their letters. What was written into one besides is none either, unless it replaces what is the
    course's or takes the place of a score. A cell that has the checksum of another release is said to be that.
    """
    held: dict[str | None, list[NotebookNode]] = {}
    for cell in cells:
        held.setdefault(grade_id(cell), []).append(cell)
    if release.given.keys() - held:  # some have lost their names
        for i, name in owners(cells, release).items():
            held.setdefault(name, [cells[i]])
    found: dict[str, list[str]] = {}
    for name, known in release.named.items():
        given, own = release.given.get(name), held.get(name)
        if not given or not own:
            continue
        named = [cell for cell in own if grade_id(cell) == name]
        if any(_is_of_another_release(cell, given) for cell in named):
            found.setdefault(EARLIER, []).append(name)
            continue
        said = {sentence for cell in named for sentence in _other_marks(cell.metadata["nbgrader"], given)}
        if not known.answer and known.cell_type == "code" and _means_another(own, known, cells, release):
            said.add(READ_ONLY if known.points is None else TEST)
        for sentence in said:
            found.setdefault(sentence, []).append(name)
    return [f"{sentence}: {listed(names)!r}" for sentence, names in sorted(found.items())]


def _is_of_another_release(cell: NotebookNode, given: dict) -> bool:
    """Whether its metadata are those of a cell that students once got.

    Its text says nothing more: a program that lays code out, or a blank at an end, makes it another one.
    """
    checksum = cell.metadata["nbgrader"].get("checksum")
    return isinstance(checksum, str) and checksum != given.get("checksum")


def _other_marks(marks: dict, given: dict) -> Iterable[str]:
    """What is other in nbgrader's metadata. What is missing there, or of another type, was lost and not changed."""
    if type(marks.get("points")) in (int, float) and marks["points"] != given.get("points"):
        yield POINTS
    if marks.get("locked") is False and given.get("locked") is True:
        yield UNLOCKED
    if any(marks.get(key) is (not given.get(key)) for key in ("grade", "solution", "task")):
        yield KIND


def _means_another(own: list[NotebookNode], known: Released, cells: list[NotebookNode], release: Release) -> bool:
    """Whether the cells of one name lack what was released, or have what replaces something of the course's."""
    texts = [cell.source for cell in own]
    if all(_without_ends(text) == _without_ends(known.shown) for text in texts):
        return False
    wanted, *there = map(_statements, (known.shown, *texts))
    if wanted is None or None in there:
        return not _lines(known.shown) <= set().union(*(_lines(cell.source) for cell in cells))
    courses = [each for each in release.cells if not each.answer and each.cell_type == "code"]
    tools, released = _of_the_course(tuple(text for each in courses for text in (each.source, each.shown)))
    names = tools.union(*(bound_by(each) for text in (known.source, known.shown) for each in _body(text)))
    added = [statement for each in there for text, statement in each.items() if text not in released]
    if any(_replaced(statement) & names for statement in added):
        return True
    if known.points and any(_takes_the_score(each, wanted) for each in there):
        return True
    lost = wanted.keys() - set().union(*there)
    return bool(lost) and not lost <= set().union(*(_statements(cell.source) or {} for cell in cells))


def _replaced(statement: ast.stmt) -> set[str]:
    """The names that a statement binds or deletes, and those of which it sets an attribute or an element."""
    found = bound_by(statement)
    # `torch.backends.cudnn.deterministic = True`, and `plt.rcParams["x"] = 1`, replace nothing
    is_setting = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant | ast.UnaryOp)
    for node in at_top(statement):
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            whose = node.value if isinstance(node, ast.Subscript) else node
            if isinstance(node, ast.Attribute):  # as in `np.testing.x = f`
                whose = whose.value
                while isinstance(whose, ast.Attribute) and not is_setting:
                    whose = whose.value
            found |= {whose.id} if isinstance(whose, ast.Name) else set()
    return found


def _takes_the_score(written: dict[str, ast.stmt], wanted: dict[str, ast.stmt]) -> bool:
    """Whether a cell of a test ends with another value than the released one, which nbgrader would read as points."""
    text, end = next(reversed(written.items()), ("", None))
    if end is None or text in wanted:
        return False
    score, last = next(reversed(wanted.items()), ("", None))
    if isinstance(last, ast.Expr) and score in written:
        return True
    parts = list(ast.walk(end)) if isinstance(end, ast.Expr) else []  # `softmax(x)` is somebody's look at it
    is_number = any(isinstance(part, ast.Constant) and isinstance(part.value, int | float) for part in parts)
    return is_number and not any(isinstance(part, ast.Name) for part in parts)


@functools.lru_cache(maxsize=100)  # the same for every work
def _of_the_course(sources: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of a course's functions, classes and modules, and all its statements. Others have an `x`, too."""
    tools = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    made = [each for text in sources for each in _body(text) if isinstance(each, tools)]
    return frozenset().union(*map(bound_by, made)), frozenset().union(*(_statements(text) or () for text in sources))


def _body(source: str) -> list[ast.stmt]:
    return getattr(parsed(source), "body", [])


def _statements(source: str) -> dict[str, ast.stmt] | None:
    """The statements of a cell by what they mean, whatever their layout and damaged letters.

    None where nobody can tell. What imports several names is as many statements: programs that lay code out sort them.
    A quote that was one of a text, as in 'don’t', makes no code where it is taken for one of Python's.
    """
    tree = parsed(_mended(source)) or parsed(source)
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = QUOTES.sub("", _mended(node.value))
    found: dict[str, ast.stmt] = {}
    try:
        for statement in tree.body:
            several = isinstance(statement, ast.Import | ast.ImportFrom)
            for each in map(functools.partial(_one_import, statement), statement.names) if several else [statement]:
                text = DAMAGE.sub("", ast.dump(each))
                found.pop(text, None)  # the last counts as the last
                found[text] = each
    except RecursionError:  # it is nested too deeply
        return None
    return found


def _one_import(statement: ast.Import | ast.ImportFrom, name: ast.alias) -> ast.stmt:
    if isinstance(statement, ast.Import):
        return ast.Import([name])
    return ast.ImportFrom(statement.module, [name], statement.level)


def _lines(source: str) -> set[str]:
    return {DAMAGE.sub("", line) for line in lines_of(_mended(source))}


def _mended(source: str) -> str:
    return LETTER.sub(lambda found: html.unescape(found[0]), source).translate(TYPESET)


def _without_ends(source: str) -> list[str]:
    return [line.rstrip() for line in source.splitlines() if line.strip()]
