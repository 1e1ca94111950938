"""What pytest captures stays open, whatever a test does."""

import logging.config
import sys

import pytest


def test_logging_that_is_set_up_anew_closes_no_stream(capsys):
    absl = pytest.importorskip("absl.logging")
    logging.config.dictConfig({"version": 1})  # as nbgrader does; it closes all handlers
    stream = absl.get_absl_handler().python_handler.stream
    assert stream is sys.__stderr__ and not stream.closed
