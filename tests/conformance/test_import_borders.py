"""Who may import whom: the neutral modules no framework, no framework another one; nobody asks which one it is."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import course_lib

ROOT = Path(course_lib.__file__).parent
FRAMEWORKS = {"torch", "tensorflow", "keras", "jax", "transformers"}
NEUTRAL = sorted(
    "course_lib." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if path.relative_to(ROOT).parts[0] not in ("numpy", "torch", "tensorflow")
    and path.name not in ("__init__.py", "__main__.py")
    and not (path.parent.name == "grading" and path.name == "restore.py")  # a part of nbgrader's, for an instructor
)


def loaded_after(*modules):
    """The packages in sys.modules of a new process that imports these modules."""
    command = f"import sys, {', '.join(modules)}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, cwd=ROOT.parent, check=False)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_neutral_modules_import_no_framework():
    assert {f"course_lib.{name}" for name in ("masks", "models.blocks", "data.cache", "grading.score")} < set(NEUTRAL)
    guilty = loaded_after("course_lib", *NEUTRAL) & FRAMEWORKS
    if guilty:  # say which of them it was
        raise AssertionError({module: sorted(loaded_after(module) & FRAMEWORKS) for module in NEUTRAL})


@pytest.mark.parametrize("name, allowed", [
    ("numpy", set()),
    ("torch", {"torch"}),
    ("tensorflow", {"tensorflow", "keras"}),
])  # fmt: skip
def test_a_framework_imports_itself_alone(name, allowed):
    paths = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / name).rglob("*.py")]
    modules = [".".join(("course_lib", *path.parts)).removesuffix(".__init__") for path in paths]
    assert f"course_lib.{name}.models.bert" in modules
    loaded = loaded_after(f"course_lib.{name}", *modules)
    assert allowed <= loaded
    assert loaded & FRAMEWORKS <= allowed


def test_numpys_models_need_numpy_alone():
    """Until somebody loads, saves, tokenizes or asks for the GELU: a page, a grader, a small machine has no more."""
    command = (
        "import sys, course_lib.numpy as lib, numpy as np;"
        "from course_lib.models.transformer import TransformerConfig;"
        "model = lib.Transformer(TransformerConfig(9, 9, 8, 1, 2, 8));"
        "model.next_logits(np.array([[3, 4]]))(np.array([[1]]));"
        "lib.set_state(model, lib.get_state(model));"
        "print(*sorted({m.split('.')[0] for m, module in sys.modules.items() if getattr(module, '__file__', None)}))"
    )
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, cwd=ROOT.parent, check=False)
    assert run.returncode == 0, run.stderr
    foreign = {name for name in run.stdout.split() if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert foreign <= {"course_lib", "numpy", "sitecustomize", "cython_runtime"}, foreign


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


def folders_imported():
    """Each folder and file at the top of the library -> those that it imports, also inside functions."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules = (module.split(".") for module in imports(path) if module.startswith("course_lib."))
        found.setdefault(parts[0], set()).update(module[1] for module in modules)
    return {name: others - {name} for name, others in found.items()}


def test_no_two_folders_import_each_other():
    """Not even by a third: what a folder needs can be read before it."""
    graph = folders_imported()
    assert {"checks", "models"} <= graph["torch"] and "data" in graph["text"], "the graph has lost its edges"
    TopologicalSorter(graph).prepare()  # CycleError names the folders


def test_models_know_no_folders():
    """What a model is does not depend on where its files lie."""
    assert not folders_imported()["models"] & {"data", "text", "decoding", "training"}


@pytest.mark.parametrize("name, foreign", [
    ("numpy", {"torch", "tensorflow", "keras"}),
    ("torch", {"tensorflow", "keras"}),
    ("tensorflow", {"torch"}),
])  # fmt: skip
def test_no_import_of_another_framework_is_written_down(name, foreign):
    """Also inside functions, where a new process would not meet it."""
    for path in (ROOT / name).rglob("*.py"):
        for module in imports(path):
            parts = module.split(".")
            assert parts[0] not in foreign, f"{path}: {module}"
            if parts[0] == "course_lib" and len(parts) > 1:
                assert parts[1] not in foreign | ({"numpy"} - {name}), f"{path}: {module}"


def test_nobody_asks_which_framework_it_is():
    words = {"numpy", "torch", "tensorflow", "keras", "np", "tf"}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                constants = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
                where = f"{path}:{node.lineno}"
                assert not names & {"framework", "backend"}, f"{where} asks for the framework"
                texts = {text for text in constants if isinstance(text, str)}
                asks = texts & words and "modules" not in names  # sys.modules may be asked what is loaded
                assert not asks, f"{where} compares with {texts & words}"
