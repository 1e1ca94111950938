"""The `backend` fixture."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is imported: no start-up notices

import numpy as np
import pytest

from tests.support.backends import BACKENDS
from tests.support.random_models import cases


def pytest_generate_tests(metafunc):
    """`random_case`: each random model in turn."""
    if "random_case" in metafunc.fixturenames:
        found = cases(metafunc.config.getoption("--configurations"))
        metafunc.parametrize("random_case", found, ids=map(repr, found))


@pytest.fixture(params=BACKENDS, ids=repr)
def backend(request):
    """Each framework in turn, seeded."""
    request.param.seed(0)
    return request.param


@pytest.fixture(params=[b for b in BACKENDS if b.has_training], ids=repr)
def training_backend(request):
    """The frameworks that train."""
    request.param.seed(0)
    return request.param


@pytest.fixture
def rng():
    """Random numbers of the test's own, the same in every run."""
    return np.random.default_rng(20170612)
