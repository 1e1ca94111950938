"""TensorFlow and the registry's own PyTorch live in one process, in whatever order they are imported."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import course_lib

ROOT = Path(course_lib.__file__).parents[1]
OPTIMIZE = "weights = [torch.nn.Parameter(torch.zeros(2))]; torch.optim.SGD(weights, lr=0.1); print('alive')"


def python(code, *flags, path=()):
    """Run code in a new process that finds modules in the folders of `path` first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, *flags, "-c", code]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)


@pytest.fixture
def stand_ins(tmp_path):
    """A folder with a triton and a tensorflow that say when they are imported."""
    for name in ("triton", "tensorflow"):
        (tmp_path / f"{name}.py").write_text(f"print({name!r})\n")
    return tmp_path


def test_continuous_integration_has_the_triton_that_kills_tensorflow():
    if sys.platform == "linux" and os.environ.get("CI"):
        assert importlib.util.find_spec("triton"), "install the extra `ci`, or the next test proves nothing"


def test_an_optimizer_of_pytorch_can_be_made_beside_tensorflow():
    """In the order that is fatal without Triton before both; the tests themselves run in others."""
    run = python(f"import tensorflow, torch; {OPTIMIZE}")
    assert (run.returncode, run.stdout[-6:]) == (0, "alive\n"), run.stderr[-2000:]


def test_the_environment_imports_triton_first_though_the_course_is_never_imported(stand_ins):
    run = python("import tensorflow, sys; assert 'course_lib' not in sys.modules", path=[stand_ins])
    assert (run.stdout, run.stderr) == ("triton\ntensorflow\n", "")


def test_the_library_imports_triton_first_where_it_is_not_installed(stand_ins):
    run = python("import course_lib, tensorflow", "-S", path=[stand_ins, ROOT])
    assert (run.stdout, run.stderr) == ("triton\ntensorflow\n", "")


@pytest.mark.parametrize("triton", [None, "raise OSError('libcuda.so is missing')"])
def test_tensorflow_needs_no_triton(stand_ins, triton):
    (stand_ins / "triton.py").unlink()
    if triton:
        (stand_ins / "triton.py").write_text(triton)
    run = python("import course_lib, tensorflow", "-S", path=[stand_ins, ROOT])
    assert (run.stdout, run.stderr) == ("tensorflow\n", "")


def test_a_triton_that_would_come_too_late_stays_out_and_the_user_is_told(stand_ins):
    late = "import tensorflow, course_lib\ntry:\n    import triton\nexcept ImportError:\n    print('hidden')"
    run = python(late, "-S", path=[stand_ins, ROOT])
    assert run.stdout == "tensorflow\nhidden\n"
    assert "RuntimeWarning: TensorFlow was imported before Triton" in run.stderr and "Restart Python" in run.stderr


def test_nothing_is_said_where_tensorflow_came_first_but_no_triton_is_there(stand_ins):
    (stand_ins / "triton.py").unlink()
    run = python("import tensorflow, course_lib", "-S", path=[stand_ins, ROOT])
    assert (run.stdout, run.stderr) == ("tensorflow\n", "")
