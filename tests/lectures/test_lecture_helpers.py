"""The helpers that lectures use: pictures whose labels fit, a quiet import of TensorFlow, a bar that goes away."""

import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from course_lib.lecture import plotting
from course_lib.lecture.show import progress


def test_a_heatmap_has_a_row_for_each_query_and_a_column_for_each_key():
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    ax = plotting.heatmap(weights, ["a", "b"], ["x", "y", "z"], "Title")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y", "z"]
    assert (ax.get_title(loc="left") or ax.get_title()) == "Title" and ax.get_xlabel() and ax.get_ylabel()
    assert [text.get_text() for text in ax.texts] == ["0.10", "0.20", "0.70", "0.50", "0.25", "0.25"]
    np.testing.assert_allclose(ax.images[0].get_array(), weights)
    plt.close("all")


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"\(T, S\) = \(3, 2\)"):
        plotting.heatmap(np.ones((2, 3)), ["x", "y", "z"], ["a", "b"])


def test_a_grid_has_one_table_for_each_head():
    weights = np.random.default_rng(0).random((3, 2, 4))
    fig = plotting.head_grid(weights, ["a", "b"], list("wxyz"), columns=2)
    tables = [ax for ax in fig.axes if ax.images]
    assert len(tables) == 3
    for table, ax in zip(weights, tables, strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), table)
    plt.close("all")


def test_tensorflow_is_imported_without_a_word():
    code = "import course_lib.tensorflow, tensorflow as tf; tf.constant(1.0) + 1; print('ready')"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=600)
    assert (result.returncode, result.stdout, result.stderr) == (0, "ready\n", "")


def test_what_a_failed_import_wrote_is_not_lost(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        "import os\nos.write(2, b'no such library\\n')\nraise ImportError('broken')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", "import course_lib.tensorflow._quiet"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 1
    assert "no such library" in result.stderr and "ImportError: broken" in result.stderr


def test_progress_passes_every_item_on(capsys):
    assert list(progress([3, 1, 2], "items")) == [3, 1, 2]
    assert "items" in capsys.readouterr().out
