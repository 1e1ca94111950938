"""Packages that are not there when a notebook is graded: its release names those that are, its checks the others."""

import json
import re
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Config

from course_lib.grading.imports import _is_absent, needed_of
from course_lib.grading.named import NamePackages
from tests.support.course import ASSIGNMENT, ROOT, Course, filled_in, grade_id, reference_answers

ANSWER = "def f(x):\n    return x"


@pytest.mark.parametrize(("cells", "found"), [
    ([f"import far\n{ANSWER}"], ["far"]),
    ([f"{ANSWER}\nimport far"], []),  # it is defined by then
    (["import far.away as a", "def f(x):\n    return a.g(x)"], ["far.away"]),
    (["import far", "far.plot(1)"], []),
    (["from far import g", "h = g", "def f(x):\n    return g(x)"], ["far"]),
    (["import far\nx = far.y", "def f(x):\n    return x"], []),  # another x
    (["import far\ny = 1", "class F:\n    z = y"], ["far"]),
    (["def f(x):\n    import far\n    return far.g(x)"], ["far"]),
    (["def f(x):\n    return (lambda: __import__('far'))"], []),
    ([f"try:\n    import far\nexcept ImportError:\n    far = None\n{ANSWER}"], []),
    ([f"try:\n    import far\nfinally:\n    pass\n{ANSWER}"], ["far"]),
    ([f"with contextlib.suppress(ImportError):\n    import far\n{ANSWER}"], []),
    ([f"with far:\n    import far\n{ANSWER}"], ["far"]),
    ([f"if TYPE_CHECKING:\n    import far\n{ANSWER}"], []),
    ([f"get_ipython().run_line_magic('matplotlib', 'inline')\n{ANSWER}"], ["matplotlib"]),
    ([f"get_ipython().run_line_magic('timeit', 'f(1)')\n{ANSWER}"], []),
    ([f"if True:\n    import far, near, farther\n{ANSWER}"], ["far", "farther"]),
    ([f"import far\nimport farther\n{ANSWER}", "import far\ndef g(): ..."], ["far", "farther"]),
    (["from . import far\nfrom .far import g\nfrom near import far\n" + ANSWER], []),
    (["from course_lib import grading, far\n" + ANSWER], ["course_lib.far"]),
    (["if True:\n    import far\n    def f(x): ..."], ["far"]),
    (["import far\nthis is no code", "import far\n" + "-" * 100_000 + "1"], []),
])  # fmt: skip
def test_an_import_matters_where_a_function_needs_what_its_cell_defines(cells, found):
    absent = {"far", "farther", "far.away", "course_lib.far", "matplotlib"}
    assert needed_of(cells, absent.__contains__) == found


@pytest.mark.parametrize(("module", "packages", "absent"), [
    ("matplotlib.pyplot", ("numpy",), True), ("tqdm", ("numpy",), True), ("scipy", ("numpy",), True),
    ("scipy.special", ("numpy", "scipy"), False), ("numpy", ("numpy",), False), ("numpy", ("no-such",), True),
    ("PIL", ("pillow",), False), ("PIL", ("numpy",), True),
    ("json", (), False), ("psutil", (), False), ("no_such", (), False), ("sympy", ("torch",), False),
    ("course_lib", (), False), ("course_lib.grading.score", (), False), ("course_lib.lecture.show", (), True),
    ("own", (), False),
])  # fmt: skip
def test_what_is_not_there_is_installed_here_and_not_shown(module, packages, absent, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert _is_absent(module, packages) == absent


IN_A_NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in json.loads(sys.argv[1]):
    shell.run_cell(cell, store_history=True)
"""
NAMED, CHECK = (
    "from course_lib.grading import graded_with\ngraded_with('numpy')",
    "from course_lib.grading import check\n@check('holds')\ndef _():\n    assert f(1) == 1\nprint('went on')",
)


def said_by(*cells):
    command = [sys.executable, "-c", IN_A_NOTEBOOK, json.dumps(cells)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_check_that_holds_fails_where_the_import_would(tmp_path):
    cell = f"from tqdm import tqdm\nimport matplotlib.pyplot as plt\n{ANSWER}"
    said = said_by(NAMED, cell, CHECK)
    assert "ok  holds" in said and "went on" not in said
    assert "CheckFailed: tqdm, matplotlib will not be there when this is graded." in said
    assert "there are numpy then, and what comes with Python" in said
    strange = "def g():\n    nonlocal x"
    drawn = "import matplotlib"
    for cells in ((NAMED, ANSWER), (cell,), (NAMED, cell, strange), (NAMED, drawn, ANSWER)):
        assert "went on" in said_by(*cells, CHECK)
    (tmp_path / "tests.py").write_text("# %% test-f, 1 points\nfloat(f(1))\n")
    run = f"from course_lib.grading.practice import run_tests\nrun_tests({str(tmp_path / 'tests.py')!r})"
    said = said_by(NAMED, cell, run)
    assert "tqdm, matplotlib will not be there when this is graded." in said and "1 of 1 points" in said
    assert "not be there" not in said_by(NAMED, ANSWER, run)


def test_a_release_says_once_which_packages_there_are_and_the_gradebook_knows(generated):
    (cell,) = [cell for cell in generated.release.cells if "graded_with(" in cell.source]
    assert grade_id(cell) == "setup" and cell.source.endswith('\n\ngraded_with("numpy")')
    with generated.gradebook() as gradebook:
        known = gradebook.find_source_cell("setup", ASSIGNMENT, ASSIGNMENT)
        assert (known.source, known.checksum) == (cell.source, cell.metadata.nbgrader.checksum)


@pytest.mark.parametrize(("assignment", "sources", "named"), [
    ("one", ["1"], ["1", 'graded_with("numpy", "torch")']), ("other", ["1"], ["1"]), ("one", ["%%time\n1"], ["1"]),
    ("one", ["graded_with('numpy')"], ["graded_with('numpy')"]), ("one", [], []),
])  # fmt: skip
def test_packages_are_named_in_the_first_locked_cell_of_what_is_marked_outside(assignment, sources, named):
    config = Config({"ExecuteOutside": {"assignments": {"one": ["numpy", "torch"]}, "as_nbgrader": ["other"]}})

    def cell(source, **about):
        return new_code_cell(source, metadata={"nbgrader": {"grade_id": "a", "schema_version": 3, **about}})

    locked = [cell(source, locked=True, grade=False, solution=False) for source in sources]
    others = [new_code_cell("0"), cell("2", locked=False, grade=False, solution=True)]
    tests = [cell("3", locked=True, grade=True, solution=False, points=1)]
    nb, _ = NamePackages(config=config).preprocess(
        new_notebook(cells=others + locked + tests), {"nbgrader": {"assignment": assignment}}
    )
    assert [each.source for each in others + tests] == ["0", "2", "3"]
    assert [each.source.splitlines()[-1] for each in locked] == named[-1:]


def test_validate_names_what_will_not_be_there(generated, tmp_path):
    course = Course(tmp_path, copied_from=generated.root)
    answers = reference_answers(course.source)
    folder = course.student_folder("anna")
    answers["softmax"] = f"import matplotlib.pyplot as plt\n{answers['softmax']}"
    nbformat.write(filled_in(course.release, answers), folder / f"{ASSIGNMENT}.ipynb")
    said = course.nbgrader("validate", f"{ASSIGNMENT}.ipynb", cwd=folder, ok=False)
    assert "matplotlib will not be there when this is graded." in said and "Success" not in said


def test_students_are_told_the_packages_of_every_assignment():
    page = (ROOT / "book" / "students.md").read_text(encoding="utf-8")
    told = re.search(r"only some packages are there.*?: (.*?)\. A cell", " ".join(page.split()))[1]
    config, words = Config(), {"NumPy": "numpy", "SciPy": "scipy", "PyTorch": "torch", "TensorFlow": "tensorflow"}
    path = ROOT / "assignments" / "nbgrader_config.py"
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), {"get_config": lambda: config, "__file__": str(path)})
    named = config.ExecuteOutside.assignments
    found = {name: set() for name in named}
    for clause in told.split("; "):
        for name in re.findall(r"`([\w-]+)`", clause) or named:
            found[name] |= {package for word, package in words.items() if word in clause}
    installed = {package for packages in named.values() for package in packages}
    assert {name: packages & installed for name, packages in found.items()} == {k: set(v) for k, v in named.items()}
