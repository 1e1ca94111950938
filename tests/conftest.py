"""What holds for every test: no window opens, and no model hub is asked."""

import os

os.environ["MPLBACKEND"] = "agg"
os.environ["HF_HUB_OFFLINE"] = "1"


def pytest_addoption(parser):
    parser.addoption(
        "--configurations", type=int, default=2, help="random models of each kind to compile, export and save (2)"
    )
