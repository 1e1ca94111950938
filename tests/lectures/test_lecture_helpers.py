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
    assert [text.get_position() for text in ax.texts] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    assert [text.get_color() for text in ax.texts] == ["white", "white", "black", *["white"] * 3]
    assert ax.images[0].get_clim() == (0.0, 1.0), "whatever the weights are: 0 is the darkest, 1 the brightest"
    np.testing.assert_allclose(ax.images[0].get_array(), weights)
    plt.close("all")


@pytest.mark.parametrize(("shape", "numbers"), [((8, 8), True), ((9, 2), False), ((2, 9), False)])
def test_there_are_no_numbers_in_a_large_table_unless_asked_for(shape, numbers):
    labels = [list(map(str, range(n))) for n in shape]
    assert bool(plotting.heatmap(np.ones(shape), *labels).texts) == numbers
    assert plotting.heatmap(np.ones(shape), *labels, numbers=True).texts
    plt.close("all")


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"\(T, S\) = \(3, 2\)"):
        plotting.heatmap(np.ones((2, 3)), ["x", "y", "z"], ["a", "b"])


def test_a_grid_has_one_table_for_each_head():
    weights = np.random.default_rng(0).random((3, 2, 4))
    fig = plotting.head_grid(weights, ["a", "b"], list("wxyz"), columns=2)
    tables = [ax for ax in fig.axes if ax.images]
    assert len(tables) == 3
    assert [ax.get_title(loc="left") or ax.get_title() for ax in tables] == ["head 0", "head 1", "head 2"]
    for table, ax in zip(weights, tables, strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), table)
    assert [ax.axison for ax in fig.axes[:4]] == [True, True, True, False], "the fourth place is empty"
    plt.close("all")


def test_both_axes_are_logarithmic_with_ticks_at_what_was_measured():
    ax = plt.figure().add_subplot()
    plotting.log_log(ax, [3, 12, 48], "tokens", "seconds")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xticks().tolist() == [3, 12, 48]
    plt.close("all")


def test_tensorflow_is_imported_without_a_word():
    code = "import course_lib.tensorflow, tensorflow as tf; tf.constant(1.0) + 1; print('ready')"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=1800)
    assert (result.returncode, result.stdout, result.stderr) == (0, "ready\n", "")


def run(code, folder):
    """Run code in a process that finds modules in the folder first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), os.environ["PYTHONPATH"]))}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=1800)


def test_a_tensorflow_that_says_something_is_not_heard_and_what_is_said_after_it_is(tmp_path):
    """A stand-in for TensorFlow, whose banner not every machine sees."""
    (tmp_path / "tensorflow.py").write_text("import os\nos.write(2, b'a banner\\n')\n")
    code = "import os, runpy, course_lib; runpy.run_path(course_lib.__path__[0] + '/tensorflow/_quiet.py')"
    result = run(f"{code}; os.write(2, b'afterwards')", tmp_path)
    assert (result.returncode, result.stderr) == (0, "afterwards")


def test_what_a_failed_import_wrote_is_not_lost(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        "import os\nos.write(2, b'no such library\\n')\nraise ImportError('broken')\n"
    )
    result = run("import course_lib.tensorflow._quiet", tmp_path)
    assert result.returncode == 1
    assert "no such library" in result.stderr and "ImportError: broken" in result.stderr


def test_progress_passes_every_item_on_and_goes_away(capsys, monkeypatch):
    cleared = []
    monkeypatch.setattr("course_lib.lecture.show.clear_output", lambda: cleared.append(capsys.readouterr().out))
    assert list(progress([3, 1, 2], "items")) == [3, 1, 2]
    assert len(cleared) == 1 and "items" in cleared[0], "when all that the bar wrote is there"
