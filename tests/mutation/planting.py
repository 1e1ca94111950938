"""Bugs, read from bugs/*.toml, and how one is planted: in the syntax tree of a module, while Python imports it.

A bug names its place by a qualified name ("MultiHeadAttention.forward"; "" is the module) and the expression or the
statements that stand there exactly once, however they are laid out. So it outlives every edit beside it.
"""

import ast
import hashlib
import importlib.machinery
import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TESTS, LIBRARY = HERE.parent, HERE.parents[1] / "course_lib"
BUGS, RECORD = HERE / "bugs", HERE / "passed.json"


class Bug(NamedTuple):
    file: str  # inside course_lib, such as "torch/attention.py"
    name: str
    where: str  # the qualified name of the function or class around it; "" for the module
    old: str  # an expression, or statements
    new: str  # what stands there instead; nothing at all removes statements
    tests: str  # files inside tests/ that must notice, with spaces between them
    only: str = ""  # pytest's -k
    copy: bool = False  # plant it in a copy of the library: for tests that read its files, or start processes

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"


def bugs_of(file: str) -> list[Bug]:
    """The bugs of one file of the library; ValueError for a name that is there twice."""
    path = (BUGS / file).with_suffix(".toml")
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["bug"] if path.is_file() else []
    found = [Bug(file, **entry) for entry in entries]
    names = [bug.name for bug in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path} has two bugs named {twice.pop()!r}")
    return found


def files() -> list[str]:
    """The files of the library that have bugs, whether they exist or not."""
    return sorted(path.relative_to(BUGS).with_suffix(".py").as_posix() for path in BUGS.rglob("*.toml"))


def with_bug(source: str, bug: Bug) -> ast.Module:
    """The tree of a module with the bug in it.

    Raises
    ------
    ValueError : no such place, or what should be replaced stands there not once.
    """
    tree = ast.parse(source, str(LIBRARY / bug.file))
    place = _place(tree, bug)
    old, new = (_parsed(code, f"{name} of {bug}") for name, code in (("old", bug.old), ("new", bug.new)))
    if isinstance(old, ast.expr) and isinstance(new, list):
        old = [ast.Expr(old)]
    hits = list(_expressions(place, old) if isinstance(old, ast.expr) else _statements(place, old))
    if len(hits) != 1:
        raise ValueError(f"{bug}: `{bug.old}` stands {len(hits)} times in {bug.where or 'the module'}, not once")
    (replace,) = hits
    replace(new)
    return ast.fix_missing_locations(tree)


def fingerprint(file: str) -> str:
    """Of a file's code and of its bugs; comments, docstrings and layout do not count."""
    path = LIBRARY / file
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else None
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            del node.body[0]
    text = f"{ast.unparse(tree) if tree else ''}\n{bugs_of(file)}"  # a dump would differ from Python to Python
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changed() -> list[str]:
    """The files whose code or bugs are not those of the last time that every bug was caught."""
    passed = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    return [file for file in files() if passed.get(file) != fingerprint(file)]


def record() -> None:
    """Write down that every bug of the library as it is has been caught."""
    found = {file: fingerprint(file) for file in files()}
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def plant(bug: Bug, folder: Path) -> Path:
    """From now on, whoever imports the module in this process gets it with the bug, from a file in the folder.

    A file, since TensorFlow's AutoGraph reads the source of what it compiles. Returns where the library lies.
    """
    text = ast.unparse(with_bug((LIBRARY / bug.file).read_text(encoding="utf-8"), bug))
    if bug.copy:
        shutil.copytree(LIBRARY, folder / LIBRARY.name, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / LIBRARY.name / bug.file).write_text(text, encoding="utf-8")
        sys.meta_path.insert(0, _CopyFinder(folder))
        return folder
    path = folder / bug.file.replace("/", "_")
    path.write_text(text, encoding="utf-8")
    parts = (LIBRARY.name, *Path(bug.file).with_suffix("").parts)
    sys.meta_path.insert(0, _Finder(".".join(parts).removesuffix(".__init__"), path))
    return LIBRARY.parent


class _CopyFinder:
    """Finds the library in a folder; on the path it would stand behind the one beside `tests`."""

    def __init__(self, folder: Path):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.PathFinder.find_spec(name, [str(self.folder)]) if name == LIBRARY.name else None


class _Finder:
    """Finds the one module, and compiles another file in place of its own."""

    def __init__(self, module: str, path: Path):
        self.module, self.path = module, path

    def find_spec(self, name, path=None, target=None):
        if name != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, other: Path):
        super().__init__(name, path)
        self.other = other

    def get_code(self, fullname):  # the inherited one would take what Python has compiled before
        return compile(self.other.read_text(encoding="utf-8"), str(self.other), "exec", dont_inherit=True)


def _place(tree: ast.Module, bug: Bug) -> ast.AST:
    place = tree
    for name in filter(None, bug.where.split(".")):
        inside = [n for n in ast.walk(place) if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and n.name == name]
        if not inside:
            raise ValueError(f"{bug}: there is no {bug.where}")
        place = inside[0]
    return place


def _parsed(code: str, name: str) -> ast.expr | list[ast.stmt]:
    body = ast.parse(code, name).body
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else body


def _same(a: ast.AST, b: ast.AST) -> bool:
    return _dump(a) == _dump(b)


def _dump(node: ast.AST) -> str:
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()")  # "x" is the same on both sides of an assignment


def _expressions(place: ast.AST, old: ast.expr):
    """For each place where the expression stands, a function that puts another there."""
    for node in ast.walk(place):
        for field, value in ast.iter_fields(node):
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.expr) and _same(child, old):
                    yield lambda new, n=node, f=field, i=index: _put(n, f, i, new)


def _put(node: ast.AST, field: str, index: int, new: ast.expr) -> None:
    if isinstance(getattr(node, field), list):
        getattr(node, field)[index] = new
    else:
        setattr(node, field, new)


def _statements(place: ast.AST, old: list[ast.stmt]):
    """For each place where the statements stand, a function that puts others there."""
    for node in ast.walk(place):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and all(isinstance(child, ast.stmt) for child in value):
                for first in range(len(value) - len(old) + 1):
                    if all(map(_same, value[first : first + len(old)], old)):
                        yield lambda new, body=value, i=first: _put_all(body, i, len(old), new)


def _put_all(body: list[ast.stmt], first: int, n_old: int, new: ast.expr | list[ast.stmt]) -> None:
    body[first : first + n_old] = [ast.Expr(new)] if isinstance(new, ast.expr) else new
    if not body:
        body.append(ast.Pass())
