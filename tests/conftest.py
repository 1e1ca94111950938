"""What holds for every test: no window opens, and no model hub is asked."""

import os
import signal

os.environ["MPLBACKEND"] = "agg"
os.environ["HF_HUB_OFFLINE"] = "1"

# A suite that is started in the background ignores Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--configurations", type=int, default=2, help="random models of each kind to compile, export and save (2)"
    )
