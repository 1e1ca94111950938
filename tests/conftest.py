"""What holds for every test: no window opens, no model hub is asked, and each core has one test at a time."""

import os
import signal
from collections import defaultdict

os.environ["MPLBACKEND"] = "agg"
os.environ["HF_HUB_OFFLINE"] = "1"
if "PYTEST_XDIST_WORKER" in os.environ:  # beside others: a second thread would only wait for the first of another one
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        os.environ[name] = "1"

import psutil
import pytest

# A suite that is started in the background ignores Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LECTURES, BUGS = "tests/lectures/test_execution.py", "tests/mutation/test_planted_bugs.py"
STRICT = ("conformance", "training", "unit")  # folders in which a warning is an error, except for
OVERLOOKED = (
    "Guards may run slower",  # PyTorch of Python 3.13.0, wherever it compiles
    "CUDA initialization",  # PyTorch for CUDA where a driver is broken
    r"\w+\.__init__ got an unexpected keyword argument '___pyct_anno'",  # TensorFlow's AutoGraph on Python 3.13
)
MEMORY = 3.5e9  # bytes that the largest lecture takes


def pytest_addoption(parser):
    parser.addoption(
        "--configurations", type=int, default=2, help="random models of each kind to compile, export and save (2)"
    )
    parser.addoption("--all-bugs", action="store_true", help="plant the bugs of all files, not of changed ones alone")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """As many processes as there are cores, and as there is memory for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(psutil.virtual_memory().available / MEMORY)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file go to one process, in order, and share what the file makes for them; not so these two's."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return nodeid if nodeid.startswith((LECTURES, BUGS)) else nodeid.split("::")[0]

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.nodeid.split("/")[1] in STRICT:
            # The marker that stands last counts most, so in the end those of the test itself.
            for filtered in (*(f"ignore:{said}" for said in OVERLOOKED), "error"):
                item.add_marker(pytest.mark.filterwarnings(filtered), append=False)
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(LECTURES))  # minutes each: they start first


def pytest_terminal_summary(terminalreporter):
    """How long each part took, so that the one to shorten can be seen, and whose bugs were planted."""
    reports = [report for report in sum(terminalreporter.stats.values(), []) if hasattr(report, "duration")]
    _write_seconds(terminalreporter, reports)
    bugs = [report.nodeid for report in reports if report.nodeid.startswith(f"{BUGS}::test_a_planted")]
    planted = {name.partition("[")[2].split(":")[0] for name in bugs}
    if planted and not terminalreporter.config.getoption("--all-bugs"):
        terminalreporter.line(
            f"{len(planted)} files of course_lib changed since every bug was caught: {', '.join(sorted(planted))}.\n"
            f"Their {len(set(bugs))} bugs were planted; `make mutation` plants all, and records that all were caught."
        )


def _write_seconds(terminalreporter, reports):
    seconds, longest = defaultdict(float), defaultdict(float)
    for report in reports:
        file = report.nodeid.split("::")[0]
        seconds[file.rpartition("/")[0]] += report.duration
        longest[report.nodeid if file == LECTURES else file] += report.duration
    if sum(seconds.values()) < 60:
        return
    terminalreporter.section("seconds by folder, and by the longest files")
    for table, most in ((seconds, None), (longest, 15)):
        for name, duration in sorted(table.items(), key=lambda item: -item[1])[:most]:
            terminalreporter.line(f"{duration:8.0f}  {name}")
        terminalreporter.line("")
