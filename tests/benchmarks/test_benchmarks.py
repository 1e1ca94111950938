"""The benchmarks at tiny sizes: every process starts, the outputs are compared, the ratios come out. No timing."""

import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import compare
import grading
import long_inputs
import run
import thousand
from figures import (
    Figure,
    Subject,
    all_figures,
    attention_figures,
    bert_figures,
    model_figures,
    rnn_figures,
    translator_figures,
)
from problems import attention_flops, rnn_flops

TINY = {"B": 2, "d_model": 8, "n_heads": 2}


@pytest.fixture(scope="module")
def pool():
    """Of processes that serve all tests: tiny models need no room, and to load a framework takes seconds."""
    with compare.Pool(threads=1, keep=True) as pool:
        yield pool


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_ratios_come_out_of_tiny_sizes(pool, framework):
    every = [f for f in attention_figures(TINY, lengths=(4,)) if f.peer.framework == framework and f.job["masked"]]
    # one subject beside the peer is enough here
    figures = [replace(f, subjects=f.subjects[:1]) for f in every if f.job["task"] == "train"]
    results = [result for f in figures for result in compare.compare(f, pool, seconds=0.0, rounds=2)]
    assert len(results) == 2 * len(figures) > 0
    for result in results:
        assert 0 < result["low"] <= result["ratio"] <= result["high"] < math.inf
        assert result["share"] > 0
        assert result["verdict"] in (("met", "missed") if result["subject"] == "fused_attention" else ("",))
    assert "| fused_attention |" in run.markdown("a machine", json.loads(json.dumps(results)))


def test_translators_of_tiny_sizes(pool):
    """Outputs and gradients equal the peer's: torch.nn.Transformer's, PyTorch's, and those without a cache."""
    sizes = {"vocab_size": 11, "d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 10}
    for figure in translator_figures(sizes, length=4, tokens=3):
        results = compare.compare(replace(figure, subjects=figure.subjects[:1]), pool, seconds=0.0, rounds=1)
        assert all(0 < result["ratio"] < math.inf and result["share"] > 0 for result in results)


def test_heads_of_bert_on_tiny_batches(pool):
    """Loss and gradients equal those of transformers, and TensorFlow's PyTorch's."""
    sizes = {head: {"B": 3, "T": 6} for head in ("spans", "masked")}  # labels and classifiers are simpler ones
    figures = [figure for figure in bert_figures(sizes) if figure.job["task"] == "train"]
    assert len(figures) == 3
    for figure in figures:
        figure = replace(figure, subjects=figure.subjects[-1:], memory=False)
        results = compare.compare(figure, pool, seconds=0.0, rounds=1)
        assert all(0 < result["ratio"] < math.inf and result["share"] > 0 for result in results)


def test_models_of_tiny_sizes(pool):
    """Loss, norm of the gradient, and the tokens that are generated equal those of transformers."""
    text = {"B": 2, "T": 5, "vocab_size": 31, "d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 10}
    image = {"B": 2, "image_size": 4, "patch_size": 2, "d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 10}
    steps = {"B": 2, "T": 3, "d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 10}
    sizes = {"gpt": text, "t5": text, "vit": image, "whisper": {**text, "F": 8}, "decision": steps}
    every = model_figures(sizes, tokens=6)
    figures = [f for f in every if f.job["task"] == "train" or (f.job["task"], f.job["B"]) == ("generate", 1)]
    assert len(figures) == 8  # what a step computes includes what is inferred
    for figure in figures:
        results = compare.compare(figure, pool, seconds=0.0, rounds=1)
        assert all(0 < result["ratio"] < math.inf and result["share"] > 0 for result in results)


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_recurrent_networks_of_tiny_sizes(pool, framework):
    every = [f for f in rnn_figures({"B": 2, "T": 3, "d": 4}) if f.peer.framework == framework]
    figures = [replace(f, subjects=f.subjects[:1]) for f in every if f.job["task"] == "train"]
    results = [result for f in figures for result in compare.compare(f, pool, seconds=0.0, rounds=2)]
    assert len(results) == 2 * len(figures) > 0
    assert {result["verdict"] for result in results if result["subject"] == "fused"} <= {"met", "missed"}


def test_subjects_that_compute_something_else_are_not_timed(pool):
    # a subject that forgets the padding
    job = {**TINY, "T": 4, "task": "forward", "masked": True}
    peer = Subject("peer", "torch", "peer_attention")
    wrong = Subject("wrong", "torch", "our_attention", {"attention": "plain", "masked": False})
    with pytest.raises(AssertionError, match="output of wrong differs"):
        compare.compare(Figure("a wrong figure", job, peer, (wrong,), {}), pool, seconds=0.0, rounds=1)


HOARDING = """
import numpy as np

def set_threads(n):
    pass

def gemm(size):
    return lambda: np.ones((size, size)).sum()

def subject(job):
    hoard = []

    def outputs():
        hoard.append(np.ones(job["hoarded"]))
        return {"sum": np.ones(1)}

    return lambda: np.ones(2_000_000).sum(), outputs  # 16 MB
"""


def test_what_the_comparison_of_outputs_leaves_behind_is_no_peak_of_a_call(tmp_path, monkeypatch):
    (tmp_path / "hoarding_subjects.py").write_text(HOARDING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    peer, subject = (Subject(str(n), "hoarding", "subject", {"hoarded": n}) for n in (1, 25_000_000))  # 200 MB
    figure = Figure("a hoard", {**TINY, "T": 4, "task": "forward"}, peer, (subject,), {}, memory=True)
    with compare.Pool(threads=1) as pool:
        results = compare.compare(figure, pool, seconds=0.0, rounds=1)
    assert 0.5 < results[1]["memory"] < 2


def test_a_process_that_dies_says_why():
    with compare.Pool(threads=1) as pool:
        nonsense = Subject("nonsense", "torch", "no_such_function")
        with pytest.raises(RuntimeError, match="no_such_function"):
            compare.compare(Figure("a broken figure", TINY, nonsense, (), {}), pool, seconds=0.0, rounds=1)


def test_the_verdict_goes_by_what_the_table_shows():
    assert compare.verdict(0.954, 0.95) == "met"
    assert compare.verdict(0.956, 0.95) == "missed"
    assert compare.verdict(0.5, None) == compare.verdict(None, 0.95) == ""


def test_operations_of_one_attention_counted_by_hand():
    # B=2 sequences of T=4 tokens: 4 projections of 8 x 8, q k^T and weights v over 2 x 4 features; 2 per product
    projections = 4 * 2 * (8 * 8 * 8)
    pairs = 2 * 2 * (2 * 4 * 4 * 8)
    assert attention_flops({**TINY, "T": 4, "task": "forward"}) == projections + pairs
    assert attention_flops({**TINY, "T": 4, "task": "train"}) == 3 * (projections + pairs)


def test_operations_of_one_recurrent_network_counted_by_hand():
    # B=2 sequences of T=3 steps, 4 gates of 5 units, each a product with 5 inputs and one with 5 units; 2 per product
    job = {"B": 2, "T": 3, "d": 5, "cell": "lstm", "task": "forward"}
    assert rnn_flops(job) == 2 * (2 * 3) * (4 * 5) * (5 + 5)
    assert rnn_flops({**job, "task": "train"}) == 3 * rnn_flops(job)
    assert rnn_flops({**job, "cell": "gru"}) == 0.75 * rnn_flops(job)


def test_every_mark_is_a_figure():
    marks = [(figure.name, label) for figure in all_figures() for label in figure.targets]
    assert len(marks) == len(set(marks)) == 69
    for figure in all_figures():
        assert set(figure.targets) <= {subject.label for subject in figure.subjects}
        assert set(figure.memory_targets) == (set(figure.targets) if figure.memory else set())


def test_the_processor_time_of_grading_is_that_of_its_kernels_too(tmp_path):
    burn = "import time; start = time.process_time()\nwhile time.process_time() < start + 0.5: pass"
    command = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"]
    assert 0.5 < grading.run(tmp_path, dict(os.environ), [command]).processor < 5
    with pytest.raises(RuntimeError, match="ended with 3:\nwhy"):
        grading.run(tmp_path, dict(os.environ), [[sys.executable, "-c", "print('why'); raise SystemExit(3)"]])


@pytest.mark.parametrize("stock, ratio", [([], "2.0"), (["--stock", "5"], "4.0")])
def test_grading_is_compared_by_the_work_however_many_each_has(monkeypatch, capsys, stock, ratio):
    seconds = {grading.STOCK: 40.0, "warm": 20.0}
    took = []

    def measured(name, folder, assignment, students, tensorflow):
        took.append((name, students))
        return [grading.Took(seconds[name], 1.0)] * 2, {"a": 1.0}

    monkeypatch.setattr(grading, "measured", measured)
    assert grading.main(["--students", "10", "--rounds", "1", "--arms", "warm", *stock]) == 0
    assert dict(took) == {grading.STOCK: 5 if stock else 10, "warm": 10}
    assert f"warm is {ratio} times" in capsys.readouterr().out


@pytest.mark.parametrize("arm", list(long_inputs.ARMS))
@pytest.mark.parametrize("sets", [1, 2])
def test_every_arm_of_long_inputs_runs(arm, sets):
    sizes = {"n_heads": 2, "d_head": 4, "window": 3, "sets": sets}
    for task in ("forward", "train", "write"):
        found = long_inputs.measured("torch", arm, 9, task, 2, sizes)
        assert 0 < found["seconds"] < 60 and found["bytes"] >= 0


def test_the_table_of_long_inputs_leaves_out_what_would_not_fit(capsys):
    command = ["--lengths", "16", "--arms", "formula", "linear", "--calls", "1", "--memory", "1e-6"]
    assert long_inputs.main(command) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.split()[0] == "16" and "would not fit" in row and "MiB" in row


NAME = f"{thousand.ASSIGNMENT}.ipynb"
GOOD, LEFT = "s0001", "s0000"  # all of it, and without the first answer


@pytest.fixture(scope="module")
def works(tmp_path_factory):
    """Two hundred works of a thousand students' course, not graded: the course, and what each is."""
    source = nbformat.read(thousand.ROOT / "assignments" / "source" / thousand.ASSIGNMENT / NAME, as_version=4)
    course = SimpleNamespace(root=tmp_path_factory.mktemp("thousand"), source=source, release=source)
    return course, thousand.hand_in(course, 200, sorted(thousand.ATTACKS)[::-1])


def marked(course, kinds, **others):
    """The marks that everybody deserves, as `thousand.marks` finds them; `others` has those of some students."""
    most, tests = thousand.maximum(course.source), thousand.tests_of(course.source)
    found = {}
    for number, student in enumerate(kinds):
        lost = tests.get(thousand.left_out(number, list(tests)), [])
        scores = {name: (0.0 if name in lost else points, None) for name, points in most.items()}
        found[student] = {"scores": scores, "comments": {}, "penalty": 0.0, "trouble": ""} | others.get(student, {})
    return found


def test_attacks_of_a_thousand_come_by_turns_in_the_order_that_was_drawn(works):
    _, kinds = works
    hostile = [kind for kind in kinds.values() if kind.startswith("attack")]
    assert hostile == [f"attack {name}" for name in sorted(thousand.ATTACKS)[::-1][:10]]
    assert sum(kind == "good" for kind in kinds.values()) == 180


def test_all_parts_are_left_out_in_turn(works):
    course, _ = works
    tests = thousand.tests_of(course.source)
    assert tests["attention"] == ["test-attention", "test-masked-attention"] and "explain" not in tests
    assert sorted(sum(tests.values(), [])) == sorted(thousand.maximum(course.source))
    assert {thousand.left_out(number, list(tests)) for number in range(200)} == {"", *tests}


@pytest.mark.parametrize(("first", "second", "code"), [
    ({}, {}, 0),
    ({}, {GOOD: {"comments": {"explain": "no response"}}}, 1),
    ({}, {GOOD: {"penalty": 1.0}}, 1),
    ({}, {GOOD: {"trouble": "it took longer"}}, 0),
    ({GOOD: {"scores": {}}}, {GOOD: {"scores": {}}}, 1),
    ({LEFT: {"scores": "all"}}, {LEFT: {"scores": "all"}}, 1),
    ({LEFT: {"scores": "another"}}, {LEFT: {"scores": "another"}}, 1),
], ids=["the same", "comments", "penalty", "trouble", "no points", "for nothing", "another part lost"])  # fmt: skip
def test_two_gradings_of_a_thousand_differ_by_any_mark_or_by_what_was_earned(works, monkeypatch, first, second, code):
    course, kinds = works
    most = thousand.maximum(course.source)
    scores = {"all": {name: (points, None) for name, points in most.items()}}
    scores["another"] = scores["all"] | {"test-softmax": (0.0, None), "test-merge-heads": (0.0, None)}
    found = []
    for others in (first, second):
        known = {name: {key: scores.get(str(value), value) for key, value in of.items()} for name, of in others.items()}
        found.append(marked(course, kinds, **known))
    monkeypatch.setattr(thousand, "marks", lambda course: found.pop(0))
    assert thousand.compare(course, course, kinds) == code
