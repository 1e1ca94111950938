"""What says what to install agrees: pyproject.toml, constraints.txt, the environment files and .ci/setup."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
INSTALLED_EXTRAS = ["torch", "tensorflow", "lectures", "lab", "book", "test"]  # what `make` and environment.yml install


def requirements(*extras):
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]
    return [Requirement(line) for line in lines]


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    for pin in found:
        assert [clause.operator for clause in pin.specifier] == ["=="], f"{pin} is no exact version"
    return {canonicalize_name(pin.name): Version(next(iter(pin.specifier)).version) for pin in found}


@pytest.mark.parametrize("requirement", requirements(*INSTALLED_EXTRAS, "ci", "gpu"), ids=str)
def test_every_dependency_is_pinned_within_its_range(requirement):
    name = canonicalize_name(requirement.name)
    assert name in pins(), f"add {name}==VERSION to constraints.txt"
    assert requirement.specifier.contains(pins()[name]), f"constraints.txt has {name} {pins()[name]}"


def test_the_range_of_every_dependency_has_a_floor():
    bare = [str(r) for r in requirements(*EXTRAS) if not any(s.operator == ">=" for s in r.specifier)]
    assert bare == []


def installed_closure():
    """Return the version of all that the project needs here, found by following the metadata."""
    todo, done = [(r, "") for r in requirements(*INSTALLED_EXTRAS)], {}
    while todo:
        requirement, extra = todo.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        distribution = metadata.distribution(requirement.name)
        name = canonicalize_name(requirement.name)
        for wanted in ["", *requirement.extras]:
            if (name, wanted) not in done:
                done[name, wanted] = Version(distribution.version)
                todo += [(Requirement(line), wanted) for line in distribution.requires or []]
    return {name: version for (name, _), version in done.items()}


def test_constraints_pin_everything_that_gets_installed():
    unpinned = installed_closure().keys() - pins().keys() - {"pip", "setuptools", "wheel"}
    # torch pins its own CUDA packages exactly, and they differ from platform to platform
    assert {name for name in unpinned if not re.match(r"nvidia-|cuda-|triton$", name)} == set()


def environment(name):
    return yaml.safe_load((ROOT / name).read_text())


@pytest.mark.parametrize(
    ("file", "extras"),
    [("environment.yml", INSTALLED_EXTRAS), ("environment-gpu.yml", [*INSTALLED_EXTRAS, "gpu"])],
)
def test_conda_installs_what_pyproject_says(file, extras):
    conda = environment(file)["dependencies"]
    python, *tools = [line for line in conda if isinstance(line, str)]
    assert Requirement(python).name == "python"
    assert Requirement(python).specifier == SpecifierSet(PROJECT["requires-python"])
    assert tools == ["pip", "git", "make"]  # no package of the course: those come by pip, from one list
    (pip,) = [line["pip"] for line in conda if isinstance(line, dict)]
    options = [line for line in pip if not line.startswith("--extra-index-url ")]
    assert options == ["--constraint constraints.txt", f"--editable .[{','.join(extras)}]"]


def test_both_conda_environments_are_known_to_setup():
    setup = (ROOT / ".ci" / "setup").read_text()
    names = {environment(file)["name"] for file in ("environment.yml", "environment-gpu.yml")}
    (pattern,) = re.findall(r"^ +(\S+ \| \S+)\) return 0 ;;", setup, flags=re.M)
    assert set(pattern.split(" | ")) == names


def test_setup_installs_the_same_extras_for_the_same_pythons():
    setup = (ROOT / ".ci" / "setup").read_text()
    assert re.findall(r"^extras=(\S+)$", setup, flags=re.M) == [",".join(INSTALLED_EXTRAS) + "${CI:+,ci}"]
    (bounds,) = re.findall(r"\((\d, \d+)\) <= sys.version_info\[:2\] < \((\d, \d+)\)", setup)
    low, high = (bound.replace(", ", ".") for bound in bounds)
    assert SpecifierSet(f">={low},<{high}") == SpecifierSet(PROJECT["requires-python"])


def test_the_workflow_tests_every_python_that_is_promised():
    workflow = environment(".github/workflows/course.yml")
    tested = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    allowed = SpecifierSet(PROJECT["requires-python"])
    promised = [f"3.{minor}" for minor in range(30) if f"3.{minor}" in allowed]
    assert tested == promised
    shown = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: Python :: 3\.\d+$", c)]
    assert shown == promised


def test_the_package_holds_what_ships_and_no_training_under_way():
    build, training = PYPROJECT["tool"]["hatch"]["build"], "/course_lib/pretrained/*/training/"
    assert build["targets"]["wheel"]["packages"] == ["course_lib"]  # with all files in it
    assert build["exclude"] == [training]
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert [line for line in ignored if "pretrained" in line] == [training]
    assert not any(line.endswith((".json", ".md", ".safetensors")) for line in ignored)
