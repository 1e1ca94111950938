"""Every file of `variants/attacks/` is handed in, to nbgrader itself: it earns what it deserves, and harms nobody.

An attack is code that stands in the cell of `softmax`, the other answers being as they were released. Its docstring
says what it tries, has a line `class: files` with one of `CLASSES`, and may have lines of the form `earns: test-softmax
1` (more than nothing), `cell: attention` (where it stands), `others: solved` (the other answers are right), `loses:
test-attention 5` (then), and `on: attention-for-an-rnn` (another assignment, with its `cell`). `COURSE` is the path of
the course, `HOME` that of the instructor, `PORT` a server on this machine.
"""

import ast
import functools
import pkgutil
import time

import nbformat
import pytest

from tests.support.attack_outcomes import HELD, NO_MATTER, deserved
from tests.support.attack_table import read_record
from tests.support.attacks import ATTACKS, CLASSES, FIRST, LONGEST_S, assignment_of, points, said_of
from tests.support.attacks_on_ours import Batch, in_batches
from tests.support.course import ROOT, maximum, reference_answers
from tests.support.sandbox import NEEDS_SANDBOX

# Those that are tried: of each class one, which harms stock nbgrader where any of them does. With --all-attacks it is
# all of them. The record has what became of each, and test_attack_table.py asks for a new one where an attack changed.
SOME = [
    "accident_exit_in_a_cell", "answer_key", "at_exit", "close_is_true", "course_removed", "empties_its_arguments",
    "fills_the_disk", "formatter", "network", "session_patched", "start_up_file",
]  # fmt: skip
WITH_TENSORS = ["derivatives_of_another"]  # and of those on another assignment

pytestmark = NEEDS_SANDBOX


def batches(config) -> list[list[str]]:
    """The attacks that are tried, in batches."""
    if wanted := config.getoption("--attacks"):
        return in_batches([name.removesuffix(".py") for name in wanted.split(",")])
    return in_batches(list(ATTACKS) if config.getoption("--all-attacks") else SOME + WITH_TENSORS)


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", sorted(sum(batches(metafunc.config), [])))
    elif "batch" in metafunc.fixturenames:
        metafunc.parametrize("batch", range(len(batches(metafunc.config))), indirect=True)


@pytest.fixture(scope="module")
def made(request, tmp_path_factory):
    """Gives a batch by its number, graded once."""

    @functools.cache
    def batch(number: int) -> Batch:
        return Batch(tmp_path_factory.mktemp(f"attacks-{number}"), batches(request.config)[number])

    return batch


@pytest.fixture
def batch(request, made) -> Batch:
    return made(request.param)


@pytest.fixture
def batch_of(request, made):
    """Gives the batch in which an attack is."""
    return lambda name: made(next(n for n, names in enumerate(batches(request.config)) if name in names))


def test_every_attack_says_what_it_is_and_there_are_some_of_every_class():
    of = {attack: said_of(text).get("class") for attack, text in ATTACKS.items()}
    assert len(of) >= 100 and set(of.values()) == CLASSES, of
    known = {"class", "earns", "cell", "others", "loses", "on"}
    assert not {attack: found for attack, text in ATTACKS.items() if (found := set(said_of(text)) - known)}
    assert all(text.split('"""')[1].partition("\n")[0].endswith(".") for text in ATTACKS.values())


def test_some_work_with_tensors_and_stand_in_a_cell_that_their_assignment_has():
    others = {attack: said_of(text) for attack, text in ATTACKS.items() if assignment_of(text) != FIRST}
    assert len(others) >= 15 and set(WITH_TENSORS) <= set(others)
    assert {said["class"] for said in others.values()} == CLASSES
    for attack, said in others.items():
        source = nbformat.read(ROOT / "assignments" / "source" / said["on"] / f"{said['on']}.ipynb", as_version=4)
        assert said["cell"] in reference_answers(source), attack
        named = points(said.get("earns", "")) | points(said.get("loses", ""))
        assert named.keys() <= maximum(source).keys(), attack


def named_of_the_library(text: str) -> set[str]:
    """What a piece of code names of `course_lib`, in code that it writes into files, too: `grading.values.np`, say."""
    found, names = set(), {}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [each for each in node.names if each.name[:10] == "course_lib"]
            names |= {each.asname or "course_lib": each.name if each.asname else "course_lib" for each in ours}
        elif isinstance(node, ast.ImportFrom) and node.module[:10] == "course_lib":
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "import course_lib" in node.value:
            found |= named_of_the_library(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, point, rest = ast.unparse(node).partition(".")
            found |= {f"{names[root]}.{rest}"} if root in names else set()
    return found - {"course_lib.__file__"}


def test_what_an_attack_changes_of_the_library_is_there():
    named = {(attack, what) for attack, text in ATTACKS.items() for what in named_of_the_library(text)}
    assert len(named) > 20
    missing = set()
    for attack, what in named:
        try:
            pkgutil.resolve_name(what)
        except (AttributeError, ImportError):
            missing.add((attack, what))
    assert not missing, "it changes nothing, and holds for that reason"


def test_of_each_class_one_is_tried_that_harms_where_any_does():
    assert sorted(said_of(ATTACKS[name])["class"] for name in SOME) == sorted(CLASSES)
    harms = {
        name: set(entry["nbgrader"]) - {HELD, NO_MATTER}
        for name, entry in read_record()["attacks"].items()
        if "nbgrader" in entry  # the record may be under way
    }
    for name in SOME:
        others = [other for other in harms if said_of(ATTACKS[other])["class"] == said_of(ATTACKS[name])["class"]]
        assert harms.get(name, True) or not any(map(harms.get, others)), name


def test_an_attack_earns_what_its_values_deserve(batch_of, name):
    batch = batch_of(name)
    assert batch.earned(f"m-{name}") == deserved(ATTACKS[name], batch.source)


def test_an_attack_sees_nothing_that_it_must_not(batch_of, name):
    assert batch_of(name).leaked(name) == []


def test_an_attack_delays_nobody_beyond_its_limit(batch_of, name):
    batch = batch_of(name)
    assert batch.took[name] < LONGEST_S
    assert batch.executed(f"m-{name}").stat().st_size < 5_000_000


def test_those_who_did_the_work_have_their_marks(batch):
    assert batch.earned("a-good") == batch.earned("z-good") == maximum(batch.source)


def test_work_sources_home_and_library_are_what_they_were(batch):
    assert batch.changed == set()


def test_nobody_came_by_the_network(batch):
    assert batch.asked == []


def test_nothing_outlives_its_submission(batch):
    time.sleep(1)
    assert batch.left() == []
