"""The library without its extras: all of it that needs no framework works, and the rest says what to install."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, HATCH = PYPROJECT["project"], PYPROJECT["tool"]["hatch"]["build"]["targets"]

# All that may be missing. What stands here and imports without its extra fails, as does the reverse.
NEEDS = {
    "course_lib.torch": ("torch", "torch"),
    "course_lib.torch.training.classifier": ("torch", "torch"),
    "course_lib.tensorflow": ("tensorflow", "tensorflow"),
    "course_lib.tensorflow.training.translation": ("tensorflow", "tensorflow"),
    "course_lib.lecture.plotting": ("lectures", "matplotlib"),
    "course_lib.lecture.show": ("lectures", "IPython"),
    "course_lib.evaluation.answer_baselines": ("lectures", "sklearn"),
    "course_lib.evaluation.baselines": ("lectures", "sklearn"),
    "course_lib.evaluation.image_baselines": ("lectures", "sklearn"),
    "course_lib.evaluation.retrieval_baselines": ("lectures", "sklearn"),
    **{
        f"course_lib.grading.marking.{name}": ("lab", "nbformat")
        for name in (
            "cells", "changed", "execute", "losses", "normalise", "reading", "recognised", "released", "strays",
        )  # fmt: skip
    },
    **{
        f"course_lib.grading.marking.{name}": ("lab", "psutil")
        for name in ("alone", "answers", "apart", "cluster", "feedback", "gradings", "solved", "trial")
    },
    **{
        f"course_lib.grading.marking.{name}": ("lab", "nbgrader")
        for name in ("batch", "dates", "overview", "report", "standing")
    },
    "course_lib.grading.marking.harmless": ("lab", "jinja2"),
    "course_lib.grading.marking.in_memory": ("lab", "nbgrader"),
    "course_lib.grading.marking.markdown": ("lab", "latex2mathml"),
    "course_lib.grading.named": ("lab", "psutil"),
    "course_lib.grading.outside.absent": ("lab", "nbformat"),
    "course_lib.grading.outside.borrowed": ("lab", "nbformat"),
    "course_lib.grading.outside.channel": ("lab", "zmq"),
    "course_lib.grading.outside.configured": ("lab", "psutil"),
    "course_lib.grading.outside.deadline": ("lab", "psutil"),
    "course_lib.grading.outside.examinee": ("lab", "zmq"),
    "course_lib.grading.outside.execute": ("lab", "psutil"),
    "course_lib.grading.outside.prepared": ("lab", "nbformat"),
    "course_lib.grading.outside.tests": ("lab", "zmq"),
    "course_lib.grading.release": ("lab", "nbformat"),
    "course_lib.grading.restore": ("lab", "nbformat"),
    "course_lib.grading.sandbox.provisioner": ("lab", "psutil"),
    "course_lib.grading.sandbox.warm": ("lab", "psutil"),
    "course_lib.grading.sandbox.watch": ("lab", "psutil"),
}


def dependencies():
    """The distributions that `pip install attention-course` brings, found by following the metadata."""
    todo, done = [(Requirement(line), "") for line in PROJECT["dependencies"]], {}
    while todo:
        requirement, extra = todo.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in ["", *requirement.extras]:
            if (name, wanted) not in done:
                done[name, wanted] = metadata.distribution(requirement.name)
                todo += [(Requirement(line), wanted) for line in done[name, wanted].requires or []]
    return {name: distribution for (name, _), distribution in done.items()}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A function that runs code in a Python that has those dependencies, and the course as its wheel does, as links."""
    site = tmp_path_factory.mktemp("site")
    for distribution in dependencies().values():
        for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            source = Path(distribution.locate_file(top))
            if not (site / top).exists() and source.exists():
                (site / top).symlink_to(source)
    moved = HATCH["wheel"]["force-include"]
    (site / "course_lib").mkdir()
    for source in (ROOT / "course_lib").iterdir():
        target = moved.get(source.relative_to(ROOT).as_posix(), f"course_lib/{source.name}")
        (site / target).symlink_to(source)  # hatchling moves those files; it does not copy them

    def run(code):
        start = f"import sys; sys.path.append({str(site)!r})\n"
        command = [sys.executable, "-I", "-S", "-B", "-c", start + code]
        return subprocess.run(command, cwd=site, capture_output=True, text=True, check=False)

    return run


def modules():
    """Every module outside the folders of PyTorch and TensorFlow."""
    moved = HATCH["wheel"]["force-include"]
    for path in sorted((ROOT / "course_lib").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        framework = parts[1] in ("torch", "tensorflow")
        if not framework and parts[-1] != "__main__" and path.relative_to(ROOT).as_posix() not in moved:
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_the_library_is_light():
    heavy = {"torch", "tensorflow", "keras", "matplotlib", "scikit-learn", "ipython", "threadpoolctl", "jupyterlab"}
    assert dependencies().keys() & heavy == set()


def test_every_module_imports_or_says_which_extra_it_needs(alone):
    names = [*modules(), *(name for name in NEEDS if name not in modules())]
    assert {"course_lib.numpy.models.transformer", "course_lib.data.cache", "course_lib.text.wordpiece"} < set(names)
    code = "import importlib\nfor name in %r:\n    try:\n        importlib.import_module(name)\n"
    code += "    except ImportError as error:\n        print(name, error, sep='|')\n"
    done = alone(code % names)
    assert done.returncode == 0, done.stderr
    said = dict(line.split("|", 1) for line in done.stdout.splitlines())
    sentence = (
        "{1} is not installed, and this part of the course needs it: "
        'in the folder of the course, run pip install ".[{0}]"'
    )
    assert said == {name: sentence.format(*need) for name, need in NEEDS.items()}


def test_the_extras_that_are_named_are_declared():
    declared = {
        extra: {canonicalize_name(Requirement(line).name) for line in lines}
        for extra, lines in PROJECT["optional-dependencies"].items()
    }
    distributions = {"sklearn": "scikit-learn", "IPython": "ipython", "zmq": "pyzmq"}
    missing = [
        (extra, package) for extra, package in NEEDS.values()
        if distributions.get(package, package) not in declared.get(extra, ())
    ]  # fmt: skip
    assert missing == []


def test_the_numpy_translator_speaks(alone):
    sentence = "este es un problema que tenemos que resolver."
    code = f"from course_lib.numpy import load_translator\nprint(load_translator()({sentence!r}))"
    done = alone(code)
    assert done.stdout == "This is a problem we have to solve.\n", done.stderr


def test_the_commands_run_or_say_what_they_need(alone):
    run = "import runpy; sys.argv = ['course', *{}]; runpy.run_module('course_lib.{}', run_name='__main__')"
    assert "minilm" in alone(run.format(["list"], "data")).stdout.lower()
    done = alone(run.format(["register", "--prefix", "/dev/null/nowhere"], "lecture.kernel"))
    assert done.returncode == 1
    advice = 'in the folder of the course, run pip install ".[lab]", then try again.'
    assert done.stderr == f"ipykernel is not installed: {advice}\n"
