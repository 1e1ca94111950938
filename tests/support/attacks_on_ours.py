"""Attacks that are graded together by our own grader, and what is seen of them."""

import contextlib
import hashlib
import os
import socket
import threading
from pathlib import Path

import nbformat
import psutil

from tests.support.attacks import ATTACKS, CELL_S, NOTEBOOK_S, answers, assignment_of
from tests.support.course import ROOT, filled_in, generated_course, maximum, reference_answers

BATCH = 18  # of them are graded together
LIMITS = {"memory": 2**30, "processes": 32, "scratch": 2**26}
OWN_FILES = {".keras", ".cache"}  # what Keras and Matplotlib write where they are imported for the first time
CONFIG = f"""
c.Execute.timeout = {CELL_S}
c.ExecuteToTheEnd.notebook_limit = {NOTEBOOK_S}
c.ExecuteOutside.sandbox = "required"
c.ExecuteOutside.limits = {LIMITS}
"""


def in_batches(names: list[str]) -> list[list[str]]:
    """These attacks in as few batches as there may be, each of one assignment."""
    found = []
    for assignment in sorted({assignment_of(ATTACKS[name]) for name in names}):
        own = [name for name in names if assignment_of(ATTACKS[name]) == assignment]
        number = -(-len(own) // BATCH)
        found += [own[first::number] for first in range(number)]
    return found


class Batch:
    """Some attacks on one assignment and two who did the work, graded by one `nbgrader autograde`."""

    def __init__(self, folder: Path, names: list[str]):
        (self.assignment,) = {assignment_of(ATTACKS[name]) for name in names}
        self.course = course = generated_course(folder, self.assignment)
        with (course.root / "nbgrader_config.py").open("a") as config:
            config.write(CONFIG)
        self.source, release = course.source, course.release
        solutions = reference_answers(self.source)
        course.submit("a-good", filled_in(release, solutions))
        course.submit("z-good", filled_in(release, solutions))
        self.asked = []
        with self.server() as port:
            known = f"COURSE, HOME, PORT = {str(course.root)!r}, {str(folder / 'home' / 'instructor')!r}, {port}\n"
            for name in names:
                course.submit(f"m-{name}", filled_in(release, answers(ATTACKS[name], known, solutions)))
            before = self.files()
            self.said = course.nbgrader("autograde", self.assignment, ok=False)
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
        """All that grading must not change: work, sources, configuration, home, and the library as a kernel sees it."""
        roots = [self.course.root / name for name in ("source", "submitted", "release")]
        roots += [self.course.folder / "home", ROOT / "course_lib" / "grading"]
        found = [path for root in roots for path in root.rglob("*")] + list((ROOT / "course_lib").glob("*.py"))
        return {
            path: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in [*found, self.course.root / "nbgrader_config.py"]
            if path.is_file() and path.suffix != ".pyc" and "nbsignatures" not in path.name
            and not OWN_FILES & set(path.parts)
        }

    def executed(self, student: str) -> Path:
        """The notebook of a student, after grading."""
        return self.course.root / "autograded" / student / self.assignment / f"{self.assignment}.ipynb"

    def earned(self, student: str) -> dict[str, float]:
        """The points of every graded cell."""
        scores = self.course.scores(student)
        return {name: scores[name] for name in maximum(self.source)}

    def leaked(self, name: str) -> list[str]:
        """The beginnings of what an attack printed that it should not have seen."""
        notebook = nbformat.read(self.executed(f"m-{name}"), as_version=4)
        shown = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
        return [text[:300] for text in shown if text.startswith("leaked")]

    def left(self) -> list:
        """What outlived its submission: processes, and files that such a one writes."""
        found = []  # bubblewrap is told where the connection file lies, and with it ends whatever it started
        for process in psutil.process_iter(["cmdline"]):
            if str(self.course.folder) in " ".join(process.info["cmdline"] or []) and process.pid != os.getpid():
                found.append(process.info["cmdline"][:5])
        return [*found, *self.course.folder.rglob("outlived"), *filter(Path.exists, [Path("/tmp/outlived")])]
