"""What holds for every test: no window opens, no model hub is asked, and each core has one test at a time."""

import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

os.environ["MPLBACKEND"] = "agg"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # what it compiles here runs once or twice
if "PYTEST_XDIST_WORKER" in os.environ:  # beside others: a second thread would only wait for the first of another one
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        os.environ[name] = "1"

import psutil
import pytest

# A suite that is started in the background ignores Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Absl, which TensorFlow brings, writes to what standard error was when it was imported: in a test, pytest's own file.
# And it closes that, for all tests to come, when nbgrader sets logging up while a test captures what is written.
with contextlib.suppress(ImportError):
    from absl import logging as absl_logging

    absl_logging.get_absl_handler().python_handler.stream = sys.__stderr__

HERE = Path(__file__).parent
SHARED = "COURSE_TESTS_SHARED"
LECTURES, BUGS = "test_execution.py", "test_planted_bugs.py"  # in whatever folder pytest counts from
AGAIN = f"{LECTURES}::test_a_lecture_comes_out_again["
ACCESS = "test_site_access.py"
STRICT = ("conformance", "training", "unit")  # folders in which a warning is an error, except for
OVERLOOKED = (
    "Guards may run slower",  # PyTorch of Python 3.13.0, wherever it compiles
    "CUDA initialization",  # PyTorch for CUDA where a driver is broken
    r"\w+\.__init__ got an unexpected keyword argument '___pyct_anno'",  # TensorFlow's AutoGraph on Python 3.13
)
EVERY = 60  # seconds between two lines that say how far a run in several processes is
MEMORY = 3.5e9  # bytes that the largest lecture takes
CHOSEN = pytest.StashKey[list[str]]()  # the tests of this run, by their names


def pytest_addoption(parser):
    parser.addoption(
        "--configurations", type=int, default=2, help="random models of each kind to compile, export and save (2)"
    )
    parser.addoption(
        "--sentences", type=int, default=40, help="held-out sentences that the page's translator translates (40)"
    )
    parser.addoption("--all-attacks", action="store_true", help="try all attacks on the grading, not a part of them")
    parser.addoption("--attacks", metavar="NAMES", help="try these attacks on the grading, with commas between")
    parser.addoption("--all-bugs", action="store_true", help="plant the bugs of all files, not of changed ones alone")
    parser.addoption(
        "--all-lectures",
        action="store_true",
        help="run all lectures; without it, those of which nothing has changed since they last came out again are "
        "skipped, even if they are named",
    )
    parser.addoption(
        "--record-lectures",
        action="store_true",
        help="record in tests/lectures/came_out.json which of the lectures that are run come out again",
    )


def pytest_configure(config):
    """The library beside this folder is the one that is tested, wherever another one is installed or pytest starts."""
    root = next(iter(config.getini("pythonpath")), HERE.parent)
    spec = find_spec("course_lib")
    found = Path(spec.origin).parents[1] if spec else None
    if found is None or not found.samefile(root):
        raise pytest.UsageError(
            f"these tests are of {root / 'course_lib'}, but Python would import course_lib from {found or 'nowhere'}; "
            f"start pytest with its settings in {HERE.parent / 'pyproject.toml'}, and without another course_lib "
            "in front of them"
        )
    others = os.environ.get("PYTHONPATH")  # for the processes that tests start
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), others)))
    if SHARED not in os.environ:  # one folder for the run, its workers, and the processes that plant bugs
        os.environ[SHARED] = tempfile.mkdtemp(prefix="course-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(SHARED)))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config), "course-progress")
    elif int(config.workerinput["workerid"].removeprefix("gw")) % 2 and len(config.args) == 1:
        config.pluginmanager.register(Backwards(), "course-backwards")


class Backwards:
    """Imports the files from the last to the first, in every second process of a run, and runs their tests in order.

    So a run of all tests shows that their files may be imported in any order; `test_any_order.py` reads what was done.
    """

    def __init__(self):
        self.imported = []

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        if isinstance(collector, pytest.Module):
            self.imported.append(str(collector.path))
        report = yield
        if isinstance(collector, pytest.Dir | pytest.Package):
            report.result.reverse()
        return report

    @pytest.hookimpl(tryfirst=True)  # then pytest puts the tests of one fixture together
    def pytest_collection_modifyitems(self, items):
        Path(os.environ[SHARED], "collected-backwards").write_text("\n".join(self.imported), encoding="utf-8")
        items.sort(key=lambda item: item.path.parts)  # as pytest sorts files; the tests of each are in order


class Progress:
    """Names each failure when it happens and, of a run in several processes, what is running: a log may end early."""

    def __init__(self, config):
        self.config, self.begun, self.over = config, time.monotonic(), threading.Event()
        self.running, self.ended, self.failed = {}, 0, 0

    def line(self, text):
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.write(f"\n{text}\n", flush=True)

    def pytest_sessionstart(self):
        if self.config.getoption("numprocesses", None):  # else what is printed belongs to the test that runs
            threading.Thread(target=self.keep_saying, daemon=True).start()

    def pytest_sessionfinish(self):
        self.over.set()

    def keep_saying(self):
        while not self.over.wait(EVERY):
            now = time.monotonic()
            running = [f"{nodeid} for {now - since:.0f} s" for nodeid, since in list(self.running.items())]
            count = f"{self.ended} tests ended, {self.failed} failed"
            self.line(f"After {now - self.begun:.0f} s: {count}; running: {', '.join(running) or 'none'}")

    def pytest_runtest_logstart(self, nodeid):
        self.running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid):
        self.running.pop(nodeid, None)
        self.ended += 1

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed += 1
            self.line(f"{'FAILED' if report.when == 'call' else 'ERROR'} {report.nodeid} - {_reason(report)}")

    def pytest_collectreport(self, report):
        if report.failed:
            self.line(f"ERROR {report.nodeid} - {_reason(report)}")


def _reason(report):
    """The first line of what went wrong."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else str(report.longrepr)).strip().splitlines()
    return (lines[0] if crash else lines[-1]) if lines else ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """As many processes as there are cores, and as there is memory for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(psutil.virtual_memory().available / MEMORY)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file go to one process, in order, and share what the file makes for them; not so these three's.

    Those of an assignment's solutions go to one process, from whatever file: they share the graded notebooks.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if _file(nodeid).endswith((LECTURES, BUGS, ACCESS)):
                return nodeid
            bank = next((name for name in assignments if f"[{name}" in nodeid), None)
            return bank or _file(nodeid)

    assignments = [path.name for path in (HERE.parent / "assignments" / "source").glob("*")]

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if any(HERE / name in item.path.parents for name in STRICT):
            # The marker that stands last counts most, so in the end those of the test itself.
            for filtered in (*(f"ignore:{said}" for said in OVERLOOKED), "error"):
                item.add_marker(pytest.mark.filterwarnings(filtered), append=False)
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.name != LECTURES)  # minutes each: they start first


def pytest_collection_finish(session):
    session.config.stash[CHOSEN] = [item.nodeid for item in session.items]
    gc.collect()
    gc.freeze()  # what the imports made stays to the end: looking for garbage there again and again takes seconds
    gc.set_threshold(20_000, 10, 10)
    if "tensorflow" in sys.modules:
        # A graph runs a few times here, and takes longer to be made faster than to run. The lectures, in processes of
        # their own, have the graphs that a reader has.
        sys.modules["tensorflow"].config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids):
    node.config.stash[CHOSEN] = ids


def pytest_terminal_summary(terminalreporter, config):
    """How long each part took, so that the one to shorten can be seen, and what was run of bugs and lectures."""
    reports = [report for report in sum(terminalreporter.stats.values(), []) if hasattr(report, "duration")]
    _write_seconds(terminalreporter, reports)
    if config.getoption("--collect-only"):
        return
    _write_lectures(terminalreporter, config, [report for report in reports if AGAIN in report.nodeid])
    if not config.getoption("--all-bugs"):
        _write_bugs(terminalreporter, config, reports)


def _write_lectures(terminalreporter, config, reports):
    left = {report.nodeid for report in reports if report.skipped}
    run = {report.nodeid for report in reports if report.failed or report.when == "call"}
    if run | left:
        terminalreporter.line(f"{len(run)} of {len(run | left)} lectures ran.")
    if left:
        terminalreporter.line(
            "Nothing on which the outputs of the others depend has changed since they last came out again; "
            "`make test ARGS=--all-lectures` runs them, too."
        )
    failed = {_lecture(report.nodeid) for report in reports if report.failed}
    if not (run | left):
        return
    from tests.support import came_out  # here, since who needs no record may have no such folder

    if config.getoption("--record-lectures"):
        found = {_lecture(report.nodeid): dict(report.user_properties) for report in reports if report.when == "call"}
        passed = {name: properties.get(came_out.PROPERTY) for name, properties in found.items() if name not in failed}
        proven = {name: fingerprint for name, fingerprint in passed.items() if fingerprint}
        came_out.record(proven, failed)
        terminalreporter.line(f"{came_out.RECORD} now has the {len(proven)} that came out again.")
        if unproven := sorted(passed.keys() - proven.keys()):
            terminalreporter.line(f"Not {', '.join(unproven)}: files changed meanwhile, or git did not list them.")
        return
    if forgotten := sorted(failed & came_out.recorded().keys()):  # else the next run would pass over them
        came_out.record({}, failed)
        terminalreporter.line(f"{came_out.RECORD} has {', '.join(forgotten)} no longer.")
    if run:
        terminalreporter.line("`make test ARGS=--record-lectures` records which of these come out again.")


def _write_bugs(terminalreporter, config, reports):
    chosen = _bugs(config.stash.get(CHOSEN, []))
    planted = _bugs(report.nodeid for report in reports if report.when == "call")
    if chosen:
        changed = sorted({name.partition("[")[2].split(":")[0] for name in chosen})
        count = f"Their {len(chosen)}" if planted == chosen else f"{len(planted)} of their {len(chosen)}"
        terminalreporter.line(
            f"{len(changed)} files of course_lib changed since every bug was caught: {', '.join(changed)}.\n"
            f"{count} bugs were planted; `make mutation` plants all, and records that all were caught."
        )


def _file(nodeid):
    return nodeid.split("::")[0]


def _lecture(nodeid):
    return nodeid.partition("[")[2].removesuffix("]")


def _bugs(nodeids):
    return {nodeid for nodeid in nodeids if f"{BUGS}::test_a_planted" in nodeid}


def _write_seconds(terminalreporter, reports):
    seconds, longest = defaultdict(float), defaultdict(float)
    for report in reports:
        file = _file(report.nodeid)
        seconds[file.rpartition("/")[0]] += report.duration
        longest[report.nodeid if file.endswith(LECTURES) else file] += report.duration
    if sum(seconds.values()) < 60:
        return
    terminalreporter.section("seconds by folder, and by the longest files")
    for table, most in ((seconds, None), (longest, 15)):
        for name, duration in sorted(table.items(), key=lambda item: -item[1])[:most]:
            terminalreporter.line(f"{duration:8.0f}  {name}")
        terminalreporter.line("")
