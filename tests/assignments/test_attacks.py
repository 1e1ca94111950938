"""Every file of `variants/attacks/` is handed in, to nbgrader itself: it earns what it deserves, and harms nobody.

An attack is code that stands in the cell of `softmax`, the other answers being as they were released. Its docstring
says what it tries, has a line `class: files` with one of `CLASSES`, and may have lines of the form `earns: test-softmax
1` (more than nothing), `cell: attention` (where it stands), `others: solved` (the other answers are right), `loses:
test-attention 5` (then). `COURSE` is the path of the course, `HOME` that of the instructor, `PORT` a server on this
machine.
"""

import contextlib
import functools
import hashlib
import os
import socket
import threading
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from tests.support.course import ASSIGNMENT, filled_in, generated_course, maximum, reference_answers
from tests.support.sandbox import NEEDS_SANDBOX

ATTACKS = {
    path.stem: path.read_text() for path in sorted((Path(__file__).with_name("variants") / "attacks").glob("*.py"))
}
CLASSES = {
    "accidents", "answer key and tests", "files", "gradebook and others", "interpreter and shell", "outliving",
    "patched libraries", "protocol", "resources", "surroundings", "values that lie",
}  # fmt: skip
EVERY = 9  # of the attacks, one in so many is tried; with --all-attacks all are
BATCH = 18  # of them are graded together
CELL_S, NOTEBOOK_S = 10, 60
LONGEST_S = 2 * NOTEBOOK_S  # from one student to the next, on a busy machine
CONFIG = f"""
c.Execute.timeout = {CELL_S}
c.ExecuteToTheEnd.notebook_limit = {NOTEBOOK_S}
c.ExecuteOutside.sandbox = "required"
c.ExecuteOutside.limits = {{"memory": 2**30, "processes": 32, "scratch": 2**26}}
"""

pytestmark = NEEDS_SANDBOX


def said_of(attack: str) -> dict[str, str]:
    """The lines of its docstring that say what is to be done with it."""
    docstring = attack.split('"""')[1]
    return dict(line.split(": ", 1) for line in docstring.splitlines()[1:] if ": " in line)


def points(text: str) -> dict[str, float]:
    return {name: float(of) for name, of in (part.split() for part in text.split(", ") if part)}


def deserved(attack: str, source) -> dict[str, float]:
    said, most = said_of(attack), maximum(source)
    if said.get("others") == "solved":
        return most | {name: most[name] - of for name, of in points(said.get("loses", "")).items()}
    return dict.fromkeys(most, 0.0) | points(said.get("earns", ""))


class Batch:
    """Some attacks and two who did the work, graded by one `nbgrader autograde`."""

    def __init__(self, folder: Path, names: list[str]):
        self.course = course = generated_course(folder)
        with (course.root / "nbgrader_config.py").open("a") as config:
            config.write(CONFIG)
        self.source, release = course.source, course.release
        solved = filled_in(release, reference_answers(self.source))
        course.submit("a-good", solved)
        course.submit("z-good", solved)
        self.asked = []
        with self.server() as port:
            known = f"COURSE, HOME, PORT = {str(course.root)!r}, {str(folder / 'home' / 'instructor')!r}, {port}\n"
            for name in names:
                said = said_of(ATTACKS[name])
                base = solved if said.get("others") == "solved" else release
                course.submit(f"m-{name}", filled_in(base, {said.get("cell", "softmax"): known + ATTACKS[name]}))
            before = self.files()
            self.said = course.nbgrader("autograde", ASSIGNMENT, ok=False)
            self.changed = {path for path, digest in self.files().items() if before.get(path) != digest}
        ended = [self.executed(student).stat().st_mtime for student in ["a-good", *(f"m-{n}" for n in names), "z-good"]]
        self.took = dict(zip(names, (b - a for a, b in zip(ended, ended[1:], strict=False)), strict=False))

    @contextlib.contextmanager
    def server(self):
        """A server of this machine that keeps who asks it."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(0.2)
            over = threading.Event()

            def listen():
                while not over.is_set():
                    with contextlib.suppress(TimeoutError):
                        self.asked.append(server.accept())

            thread = threading.Thread(target=listen)
            thread.start()
            yield server.getsockname()[1]
            over.set()
            thread.join()

    def files(self) -> dict[Path, str]:
        """All that grading must not change: work, sources, configuration, home, and the library."""
        library = Path(__file__).parents[2] / "course_lib"
        roots = [self.course.root / name for name in ("source", "submitted", "release")]
        found = [path for root in [*roots, self.course.folder / "home", library] for path in root.rglob("*")]
        return {
            path: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in [*found, self.course.root / "nbgrader_config.py"]
            if path.is_file() and path.suffix != ".pyc" and "nbsignatures" not in path.name
        }

    def executed(self, student: str) -> Path:
        return self.course.root / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"

    def earned(self, student: str) -> dict[str, float]:
        scores = self.course.scores(student)
        return {name: scores[name] for name in maximum(self.source)}


def batches(config) -> list[list[str]]:
    """The attacks that are tried, in batches."""
    if wanted := config.getoption("--attacks"):
        names = [name.removesuffix(".py") for name in wanted.split(",")]
    else:
        names = list(ATTACKS) if config.getoption("--all-attacks") else list(ATTACKS)[::EVERY]
    number = -(-len(names) // BATCH)
    return [names[first::number] for first in range(number)]


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
    known = {"class", "earns", "cell", "others", "loses"}
    assert not {attack: found for attack, text in ATTACKS.items() if (found := set(said_of(text)) - known)}
    assert all(text.split('"""')[1].partition("\n")[0].endswith(".") for text in ATTACKS.values())


def test_an_attack_earns_what_its_values_deserve(batch_of, name):
    batch = batch_of(name)
    assert batch.earned(f"m-{name}") == deserved(ATTACKS[name], batch.source)


def test_an_attack_sees_nothing_that_it_must_not(batch_of, name):
    notebook = nbformat.read(batch_of(name).executed(f"m-{name}"), as_version=4)
    shown = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [text[:300] for text in shown if text.startswith("leaked")]


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
    left = []  # bubblewrap is told where the connection file lies, and with it ends whatever it started
    for process in psutil.process_iter(["cmdline"]):
        if str(batch.course.folder) in " ".join(process.info["cmdline"] or []) and process.pid != os.getpid():
            left.append(process.info["cmdline"][:5])
    assert not left
    assert not list(batch.course.folder.rglob("outlived")) and not Path("/tmp/outlived").exists()
