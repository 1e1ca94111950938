"""Works graded by the workers of a Dask cluster: each goes there as bytes, and what it came to comes back as bytes.

A worker has the course installed and the sandbox, and needs no disk in common with the course. It gets one student's
normalised work, the definitions of the assignments, the settings without the gradebook's address, and the secret that
inputs are drawn from. It knows no other student's work, and cannot reach the gradebook.

Whoever reaches a scheduler of Dask may run what he likes on its workers. So no work is sent whose code could: only
assignments that are marked from outside, in the sandbox, which has no network. An answer is an archive of JSON and
notebooks; it is never unpickled, and `checked` before anything is made of it. Dask does unpickle what a worker raises,
in a process of that work's own that is not the one which writes the gradebook: who owns a worker is trusted.

`python -m course_lib.grading.marking.cluster FOLDER` is the process on a worker that grades what was laid there.
"""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from asyncio import CancelledError
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from course_lib import __version__
from course_lib._extras import needed
from course_lib.grading.marking.alone import (
    DEFINITIONS,
    GRADING,
    NORMALISED,
    Marks,
    grade_alone,
    grading_limit,
    open_course,
)
from course_lib.grading.marking.answers import Asked, answer, archive_of, checked, short
from course_lib.grading.marking.apart import GRACE_S, Apart, Unfinished, apart, how_it_ended, wait_for_one
from course_lib.grading.marking.normalise import handed_in_at
from course_lib.grading.outside.configured import REQUIRED
from course_lib.grading.outside.execute import ExecuteOutside
from course_lib.grading.outside.seeds import SECRET, secret_of
from course_lib.grading.sandbox.view import SandboxMissing, bubblewrap
from course_lib.grading.score import SEED

with needed("lab"):
    from nbgrader.api import Gradebook
    from nbgrader.apps import AutogradeApp

CONNECTING_S, LONELY_S, EVERY_S = 30, 120, 1
ROUNDS, PAUSE_S = 3, 10
TRIES = 4  # Dask's own number of workers that may die of one work: distributed.scheduler.allowed-failures
NOT_OF_GRADING = ("Exchange", "GenerateAssignment")  # settings that begin so
JOB, ANSWER = "job.json", "answer.zip"
PLAIN = ["dask", "msgpack"]  # ways to write data that are not pickle
# Tests of notebooks in TensorFlow compute in PyTorch where it is installed: that must be so for all works.
VERSIONS = {
    "course_lib": __version__,
    "nbgrader": version("nbgrader"),
    "torch": "installed" if find_spec("torch") else "missing",
}


def places(address: str, course: AutogradeApp, assignment: str) -> int:
    """How many works the cluster grades at a time.

    Raises
    ------
    ValueError : the assignment's works may not be sent; the scheduler is not there; a worker cannot grade.
    """
    outside = ExecuteOutside(parent=course)
    if assignment not in outside.assignments or outside.sandbox != REQUIRED:
        raise ValueError(
            f"The works of {assignment} run with the rights of who grades them, and could reach the scheduler: they "
            "are graded without --scheduler, or marked from outside and in the sandbox (c.ExecuteOutside)."
        )
    _settings(course)
    with needed("cluster"):
        import distributed  # noqa: F401  before the processes that use it are forked: it takes a second
    try:
        number, unfit = apart(CONNECTING_S + LONELY_S, _looked_at, address)
    except Exception as error:
        raise ValueError(f"The cluster at {address} cannot be used: {short(error)}") from error
    if unfit:
        raise ValueError(f"A worker of the cluster cannot grade: {'; '.join(unfit)}")
    if not number:
        raise ValueError(f"The scheduler at {address} has no workers: start some with `dask worker {address}`.")
    return number


def sending_limit(course: AutogradeApp) -> float:
    """Seconds for one work on the cluster, in which as many workers may die of it as Dask lets."""
    return ROUNDS * (TRIES * (grading_limit(course) + GRACE_S) + PAUSE_S) + LONELY_S


def grade_elsewhere(address: str, root: Path, assignment: str, student: str, stood: dict, is_known: bool) -> Marks:
    """As `grade_alone`, by a worker of the cluster.

    Raises
    ------
    Unfinished : the cluster did not grade it, or its answer cannot be used; says why.
    """
    parcel = packed(root, assignment, student, stood, is_known)
    handed_in = handed_in_at(root / NORMALISED / student / assignment, notes=[])
    marks, files = checked(sent(address, parcel, grade_parcel), stood, _asked(root, assignment), handed_in)
    place = root / GRADING / student / assignment
    for path, content in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(content)
    return marks


def packed(root: Path, assignment: str, student: str, stood: dict, is_known: bool) -> bytes:
    """All that a worker needs for the work in normalised/STUDENT/ASSIGNMENT, as an archive."""
    course = open_course(root)
    secret_of(root)  # drawn here where there is none yet, or each worker would draw its own
    job = {
        "assignment": assignment, "student": student, "stood": stood, "is_known": is_known,
        "settings": _settings(course), "limit_s": grading_limit(course), "seed": os.environ.get(SEED),
        "versions": VERSIONS,
    }  # fmt: skip
    source = root / course.coursedir.source_directory / assignment
    work = root / NORMALISED / student / assignment
    files = {
        f"{GRADING}/{DEFINITIONS}": root / GRADING / DEFINITIONS,
        SECRET: root / SECRET,
        **{f"{NORMALISED}/{student}/{assignment}/{path.relative_to(work).as_posix()}": path for path in _files(work)},
        **{
            f"source/{assignment}/{path.relative_to(source).as_posix()}": path
            for path in _files(source)
            if path.suffix != ".ipynb"  # which has the answers, and is of no use there
        },
    }
    return archive_of({JOB: json.dumps(job).encode(), **{name: path.read_bytes() for name, path in files.items()}})


def sent(address: str, parcel: bytes, work: Callable[[bytes], bytes], rounds: int = ROUNDS) -> bytes:
    """What `work` makes of a parcel on a worker. A worker that dies costs another try, on another one.

    Dask counts a death against all that its worker had, so one that dies of one work is held against others too. So
    each work is given to the cluster `rounds` times, after a while that is not the same for all.

    Raises
    ------
    Unfinished : too many workers died of it, there is none any more, or the answer is no bytes.
    """
    from distributed import KilledWorker

    try:
        for number in range(rounds):
            try:
                found = _sent_once(address, parcel, work)
                break
            except KilledWorker:
                time.sleep(random.uniform(0, PAUSE_S * number))
        else:
            raise Unfinished("each worker of the cluster that it was given to died")
    except Unfinished:
        raise
    except (Exception, CancelledError) as error:
        raise Unfinished(f"the cluster at {address} did not grade it: {short(error)}") from None
    if not isinstance(found, bytes):
        raise Unfinished("the cluster's answer is no bytes")
    return found


def grade_parcel(parcel: bytes) -> bytes:
    """On a worker: grade what `packed` made, in a folder of its own that goes at the end; an archive for `checked`."""
    folder = Path(tempfile.mkdtemp(prefix="grading-"))
    try:
        with zipfile.ZipFile(io.BytesIO(parcel)) as archive:
            archive.extractall(folder)
        job = json.loads((folder / JOB).read_bytes())
        if why := unfit(job["versions"]):
            return answer({}, why)
        environment = {key: value for key, value in os.environ.items() if key != SEED}
        environment |= {SEED: job["seed"]} if job["seed"] else {}
        # A process of Dask's has threads and may have no children of multiprocessing's; this one has neither trouble.
        how = _run([sys.executable, "-m", __name__, str(folder)], folder, environment, job["limit_s"] + GRACE_S)
        if (folder / ANSWER).is_file():
            return (folder / ANSWER).read_bytes()
        return answer({}, f"on the worker: its process {how}")
    except Exception as error:
        return answer({}, f"on the worker: {short(error)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], folder: Path, environment: dict[str, str], limit_s: float) -> str:
    """Run a command in a folder; how it ended, and the last line of what it said of an error.

    The process that it forked ends with it, whatever happened, and the kernel with that: the sandbox sees to it.
    """
    with tempfile.TemporaryFile(dir=folder) as said:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            start_new_session=True,
        )  # fmt: skip
        try:
            how = how_it_ended(process.wait(limit_s))
        except subprocess.TimeoutExpired:
            how = f"took more than {limit_s:g} seconds"
        finally:
            with contextlib.suppress(ProcessLookupError):  # nobody is left in its group
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - 10_000))
        lines = said.read().decode(errors="replace").split("\n")
    return ": ".join([how, *[line.strip()[:200] for line in lines if line.strip()][-1:]])


def unfit(versions: dict[str, str]) -> str:
    """Why this machine cannot grade for a course with these versions; empty where it can."""
    if versions != VERSIONS:
        return f"the worker has {_listed(VERSIONS)}, and the course {_listed(versions)}: install the same there"
    try:
        bubblewrap()
    except SandboxMissing as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    """Grade the work that `grade_parcel` laid into this folder. If the worker dies, this ends, and takes it along."""
    worker, job = os.getppid(), json.loads((folder / JOB).read_bytes())
    settings = json.dumps(job["settings"])
    (folder / "nbgrader_config.py").write_text(
        f"import json\nc = get_config()\nfor section, values in json.loads({settings!r}).items():\n"
        f"    c[section].update(values)\nc.CourseDirectory.root = {str(folder)!r}\n",
        encoding="utf-8",
    )
    assignment, student = job["assignment"], job["student"]
    work = Apart(job["limit_s"], grade_alone, folder, assignment, student, job["stood"], job["is_known"])
    while not work.is_over:
        wait_for_one([work], EVERY_S)
        if os.getppid() != worker:
            work.stop()
            shutil.rmtree(folder)
            return
    try:
        marks = work.result()
    except Exception as error:
        marks = Marks({}, str(error) if isinstance(error, Unfinished) else f"on the worker: {short(error)}")
    if not marks.are_there:
        marks = marks._replace(stands={})
    place = folder / GRADING / student / assignment
    files = {path.relative_to(place).as_posix(): path.read_bytes() for path in _files(place)}
    part = folder / f"{ANSWER}.part"
    part.write_bytes(answer(marks.stands, marks.why, files))
    part.rename(folder / ANSWER)


def _sent_once(address: str, parcel: bytes, work: Callable[[bytes], bytes]):
    """By a client that takes no pickle for an answer. Certificates for tls:// come from Dask's own configuration."""
    from distributed import Client

    options = {"timeout": CONNECTING_S, "set_as_default": False, "serializers": PLAIN, "deserializers": PLAIN}
    with Client(address, **options) as client:
        future = client.submit(work, parcel, pure=False)
        seen = time.monotonic()
        while True:
            try:
                return future.result(timeout=EVERY_S)
            except TimeoutError:
                if client.scheduler_info()["workers"]:
                    seen = time.monotonic()
                elif time.monotonic() > seen + LONELY_S:
                    raise Unfinished(f"the cluster has had no worker for {LONELY_S} seconds") from None


def _looked_at(address: str) -> tuple[int, list[str]]:
    """How many works the workers of a cluster grade at a time, and why any cannot."""
    from distributed import Client

    with Client(address, timeout=CONNECTING_S, set_as_default=False) as client:
        unfit_ones = {why for why in client.run(unfit, VERSIONS).values() if why}
        return sum(client.nthreads().values()), sorted(unfit_ones)


def _settings(course: AutogradeApp) -> dict:
    """The course's settings for grading, as JSON has them, without those that say where gradebook and folders are."""
    kept = {name: dict(values) for name, values in course.config.items() if not name.startswith(NOT_OF_GRADING)}
    own = kept.get("CourseDirectory", {})
    left_out = {name for name in own if name in ("db_url", "root") or name.endswith("_directory")}
    kept["CourseDirectory"] = {name: value for name, value in own.items() if name not in left_out}
    kept.get("ExecuteOutside", {}).pop("warm", None)  # a process there grades one work: it would import as much
    for section, values in kept.items():
        for name, value in values.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                raise ValueError(f"c.{section}.{name} is no plain value, and cannot be sent to a cluster") from None
    return kept


def _asked(root: Path, assignment: str) -> dict[str, Asked]:
    with Gradebook(f"sqlite:///{root / GRADING / DEFINITIONS}") as gradebook:
        asked = {}
        for notebook in gradebook.find_assignment(assignment).notebooks:
            points = {cell.name: cell.max_score for cell in (*notebook.grade_cells, *notebook.task_cells)}
            commented = {cell.name for cell in (*notebook.solution_cells, *notebook.task_cells)}
            texts = {cell.name for cell in notebook.grade_cells if cell.cell_type != "code"}
            asked[notebook.name] = Asked(points, commented | texts, commented)
        return asked


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
