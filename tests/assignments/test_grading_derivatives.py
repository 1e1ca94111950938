"""Tensors outside the student's process: their values, and derivatives through its functions and those of the tests."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
import torch

from course_lib.grading import answering, expect_kept, followed, frameworks
from course_lib.grading.compare import CheckFailed
from course_lib.grading.frameworks import ALIKE, Pair
from course_lib.grading.outside import memory, prepared
from course_lib.grading.outside.tests import HiddenTests
from course_lib.grading.values import Budget, Malformed, read, write
from tests.support.course import ROOT
from tests.support.examinees import InThisProcess


@pytest.fixture(autouse=True)
def graphs_again():
    """In a student's kernel functions stay eager to the end; here other tests come after these."""
    yield
    tf.config.run_functions_eagerly(False)


IMPORTS = {"torch": "import torch\n", "tensorflow": "import tensorflow as tf\n"}
each_framework = pytest.mark.parametrize("framework", IMPORTS)


@pytest.fixture
def no_torch(monkeypatch):
    """Where PyTorch is not installed tests compute in the notebook's own framework."""
    find = frameworks.importlib.util.find_spec
    monkeypatch.setattr(frameworks.importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))


@pytest.fixture(params=[*IMPORTS, "tensorflow alone"])
def framework(request):
    """Of the notebook; alone: the tests compute in it, too."""
    name, _, alone = request.param.partition(" ")
    if alone:
        request.getfixturevalue("no_torch")
    return name

# Values that pass

TENSORS = {
    "floats": torch.arange(6.0).reshape(2, 3),
    "turned": torch.arange(6.0).reshape(2, 3).T,
    "expanded": torch.ones(1, 3).expand(4, 3),
    "integers": torch.tensor([1, 2]),
    "truth values": torch.tensor([True, False]),
    "one number": torch.tensor(2.5, dtype=torch.float64),
    "none": torch.zeros(0, 3),
    "of complex numbers": torch.tensor([1 + 2j]),
    "a leaf": torch.ones(2, requires_grad=True),
    "a parameter": torch.nn.Parameter(torch.ones(2)),
    "a result": torch.ones(2, requires_grad=True) * 2,
    "of TensorFlow": tf.constant([[1.0, 2.0]]),
    "integers of TensorFlow": tf.constant(3, tf.int64),
    "a variable": tf.Variable([1.0]),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_a_tensor_is_the_same_on_the_other_side(tensor):
    found = read(json.loads(json.dumps(write(tensor))))
    kind = next(kind for kind in (torch.Tensor, tf.Variable, tf.Tensor) if isinstance(tensor, kind))
    assert isinstance(found, kind) and found.dtype == tensor.dtype and found.shape == tensor.shape
    assert getattr(found, "requires_grad", None) == getattr(tensor, "requires_grad", None)
    plain = [each.detach() if kind is torch.Tensor else each for each in (found, tensor)]
    assert np.array_equal(*(each.numpy() for each in plain))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(2, 2).to_sparse(), torch.empty(2**40, device="meta"), torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, dtype=torch.float8_e5m2), tf.constant(["text"]),
        tf.sparse.from_dense([1.0]), torch.tensor([1j]).conj(),
    ],
    ids=["sparse", "meta", "bfloat16", "of eight bits", "text", "sparse of TensorFlow", "conjugate"],
)  # fmt: skip
def test_what_numpy_cannot_hold_passes_as_a_name(tensor):
    assert write(tensor) == ["other", type(tensor).__name__]


def form(framework="torch", mark="constant", array=None):
    return ["tensor", framework, mark, *write(np.ones(2, np.float32) if array is None else array)[1:]]


REFUSED = {
    "a framework that does not exist": form("jax"),
    "a module that is none": form("sys"),
    "a framework that is a list": form([]),
    "another mark": form(mark="wanted"),
    "no mark": form(mark=None),
    "numbers in another order of bytes": form(array=np.ones(2, ">f4")),
    "integers that are differentiated": form("tensorflow", "leaf", np.ones(2, int)),
    "complex numbers that are differentiated": form(mark="leaf", array=np.ones(2, complex)),
    "floats that PyTorch has not": form(array=np.ones(2, np.longdouble)),
    "floats that TensorFlow has not": form("tensorflow", array=np.ones(2, np.longdouble)),
    "a shape without numbers": [*form()[:4], [2**23, 2**23], ""],
    "sizes that overflow": [*form()[:4], [2**24, 2**24, 2**24, 0], ""],
    "no dtype": ["tensor", "torch", "constant"],
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_what_is_no_tensor_is_refused(given):
    with pytest.raises(Malformed):
        read(given)


@pytest.mark.parametrize("framework", ["jax", "sys"])
def test_a_tensor_of_a_framework_that_does_not_exist_is_none_of_ours(framework):
    with pytest.raises(Malformed, match="in use"):
        read(form(framework), Budget(frameworks=Pair("torch", "tensorflow")))


def test_a_tensor_of_a_framework_that_is_not_in_use_is_refused(monkeypatch):
    written = write(tf.constant([1.0]))
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(Malformed, match="in use"):
        read(written)


def test_an_error_of_a_framework_is_no_more_than_a_refusal(monkeypatch):
    def fails(*given):
        raise RuntimeError

    monkeypatch.setattr(torch, "from_numpy", fails)
    with pytest.raises(Malformed, match="RuntimeError"):
        read(form())


@each_framework
def test_tensors_are_kept_where_every_number_and_every_name_is(framework):
    made = {"torch": torch.tensor, "tensorflow": tf.constant}[framework]
    arrays = {"a": np.array([0.1, 0.2]), "b": np.array([1, 2]), "c": np.array([True])}
    tensors = {"a": made([0.1, 0.2]), "b": made([1, 2]), "c": made([True])}
    expect_kept(tensors, arrays, "x")
    expect_kept(tensors["a"], arrays["a"], "x")
    for other in ({"a": made([0.1, 0.3])}, {"d": made([1])}, {"c": None}, {"b": made([1, 2, 2])}):
        with pytest.raises(CheckFailed, match="changed its argument `x`"):
            expect_kept(tensors | other, arrays, "x")
    for left in ({"a": tensors["a"]}, [*tensors.values()], None):
        with pytest.raises(CheckFailed, match="changed its argument `x`"):
            expect_kept(left, arrays, "x")


# Derivatives

TESTS = """
def hidden_tests():
    import contextlib

    from course_lib.grading import Score, Tensors, expect, expect_array, expect_differentiable, expect_kept
    import numpy as np

    score = Score(7)
    x, y = np.array([1.1, 2.0]), np.array([3.0, 4.0])

    @score.check(1, "values")
    def _():
        found = f(*map(Tensors(globals()), (x, y)))
        expect(isinstance(found, type(Tensors(globals())(x))), "no tensor")
        expect_array(found, x * y)

    @score.check(1, "gradients")
    def _():
        Tensors(globals()).expect_gradients(f, x=x, y=y)

    @score.check(1, "through ours, and by what ours depend on")
    def _():
        def of(x, y):
            def squared(a):
                return a * a * y

            def held(a):
                return y + 0

            return g(squared, held, x + 1), g(held, squared, x)[:1]

        Tensors(globals()).expect_gradients(of, x=x, y=y)

    @score.check(1, "by what ours depend on alone")
    def _():
        constant = Tensors(globals())([0.5, 0.7])
        Tensors(globals()).expect_gradients(lambda y: g(lambda a: a * y, lambda a: y + 0, constant), y=y)

    @score.check(1, "through calls in calls")
    def _():
        def of(x, y):
            def cell(a):
                return f(a, y) * f(y, x)

            return g(cell, cell, x)

        Tensors(globals()).expect_gradients(of, x=x, y=y)

    @score.check(1, "left alone")
    def _():
        given = Tensors(globals())(x)
        f(given, given)
        expect_kept(given, x, "x")

    @score.check(1, "left in its graph")
    def _():
        def of(x, y):
            found = f(x, y)
            expect_differentiable(x, "x")
            return found + 0 * x

        with contextlib.suppress(RuntimeError):  # PyTorch's, charged above
            Tensors(globals()).gradients(of, x, y)

    return score.total()


hidden_tests()
"""
RIGHT = """
def f(x, y):
    return x * y

def g(one, two, x):
    z = one(x)
    for _ in range(2):
        z = one(0.1 * z) + two(x)
    return z
"""
CUT = {"torch": "(CUT).detach()", "tensorflow": "tf.stop_gradient(CUT)"}


def lost(code: str) -> list[str]:
    """The tests that fail."""
    outputs = HiddenTests(TESTS, InThisProcess(code), 1).outputs()
    return [line.partition("of 1  ")[2] for line in outputs[0]["text"].splitlines() if line.startswith("  0 of")]


def test_derivatives_go_through_calls_in_both_directions(framework):
    assert lost(IMPORTS[framework] + RIGHT) == []


def test_a_derivative_that_is_cut_is_missed_where_it_is_cut(framework):
    def cut(step):
        return IMPORTS[framework] + RIGHT.replace(step, CUT[framework].replace("CUT", step))

    assert {"gradients", "through calls in calls"} <= set(lost(cut("x * y")))
    missed = ["through ours, and by what ours depend on", "by what ours depend on alone", "through calls in calls"]
    assert lost(cut("two(x)")) == missed


PYTORCH_ALONE = {
    "changes what it is given": ("x.data += 1\n    return (x - 1) * y", ["left alone"]),
    "changes a leaf": ("x += 1\n    return (x - 1) * y", ["gradients", "left alone"]),
    "takes it out of its graph": (
        "x.requires_grad_(False)\n    return x * y",
        ["gradients", "left in its graph"],
    ),
    "leaves PyTorch": ("return torch.tensor(x.numpy()) * y", ["gradients"]),
    "returns an array": ("return (x * y).detach().numpy()", ["values", "gradients", "left in its graph"]),
}


@pytest.mark.parametrize(("body", "wrong"), PYTORCH_ALONE.values(), ids=PYTORCH_ALONE)
def test_what_a_function_does_to_its_tensors_is_seen(body, wrong):
    found = lost("import torch\n" + RIGHT.replace("return x * y", body))
    assert [each for each in found if "through" not in each] == wrong


def test_a_notebook_without_a_framework_is_told_so():
    outputs = HiddenTests(TESTS, InThisProcess(RIGHT), 1).outputs()
    assert "Not written yet: neither `import torch` nor" in " ".join(outputs[0]["text"].split())


def examinee_of(code: str, framework: str = "torch") -> InThisProcess:
    examinee = InThisProcess(IMPORTS[framework] + code)
    examinee.look_for_a_framework()
    return examinee


def test_pytorch_s_own_backward_reaches_what_was_given_and_no_result_that_does_not_depend():
    code = "def f(x, k):\n    y = x * x\n    return {'a': (y, k), 'b': x.detach() + 1, 'c': [y.sum()]}"
    examinee = examinee_of(code)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found = examinee.call("f", (x * 3, torch.tensor([1, 2])), {}, {})
    assert not found["b"].requires_grad and not found["a"][1].requires_grad
    (found["a"][0].sum() + 5 * found["c"][0]).backward()
    assert x.grad.tolist() == [6 * 9 * 2 * 1, 6 * 9 * 2 * 2]
    with torch.no_grad():
        assert not examinee.call("f", (x.detach(), 1), {}, {})["c"][0].requires_grad


def test_what_was_computed_may_be_changed_and_a_leaf_may_not():
    examinee = examinee_of("def f(x):\n    x += 1\n    return x * x")
    leaf = torch.tensor([1.0], requires_grad=True)
    examinee.call("f", (2 * leaf,), {}, {}).sum().backward()
    assert leaf.grad.tolist() == [2 * 3 * 2] and examinee.changed[0][1].tolist() == [3.0]
    with pytest.raises(RuntimeError, match="in-place"):
        examinee.call("f", (leaf,), {}, {})


def test_derivatives_of_picked_rows_in_tensorflow(no_torch):
    """They come apart, as places and numbers, on either side."""
    examinee = examinee_of("def f(x):\n    return tf.gather(x, [0, 0, 1])", "tensorflow")
    x = tf.constant([[1.0], [2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with examinee.derivatives.of([x]):
            found = tf.gather(examinee.call("f", (x,), {}, {}), [0, 2, 2])
    assert tape.gradient(found, x).numpy().tolist() == [[1.0], [2.0]]


def test_tests_of_a_notebook_in_tensorflow_compute_in_pytorch():
    examinee = examinee_of("def f(step, x):\n    return step(tf.gather(x, [0, 0, 1]))", "tensorflow")
    x, seen = torch.tensor([[1.0], [2.0]], requires_grad=True), []

    def step(rows):
        seen.append(rows)
        return rows * rows * x[0]

    with examinee.derivatives.of([x]):
        found = examinee.call("f", (step, x), {}, {})
    (found * torch.tensor([[1.0], [0.0], [2.0]])).sum().backward()  # a³ + 2ab²
    assert isinstance(seen[0], torch.Tensor) and x.grad.tolist() == [[3 + 2 * 4], [4 * 2]]


def test_where_pytorch_is_missing_tests_compute_in_tensorflow_alone(no_torch):
    examinee = examinee_of("made = tf.constant([1, 2])", "tensorflow")
    assert examinee.derivatives.frameworks.tests == "tensorflow" and tf.is_tensor(examinee.values(["made"])[0]["made"])


def test_only_what_the_tests_compute_in_is_imported_for_a_notebook_in_tensorflow(monkeypatch):
    imported = []
    monkeypatch.setattr("importlib.import_module", lambda name: imported.append(name))
    examinee_of("import torch", "tensorflow")
    assert imported == ["torch"]
    imported.clear()
    monkeypatch.setattr(prepared.asyncio, "run", lambda preparing: preparing.close() or "")
    monkeypatch.setattr(prepared.SandboxProvisioner, "begin", lambda *_: None)
    settings = types.SimpleNamespace(
        sandbox=prepared.REQUIRED,
        assignments=["a"],
        warm={"a": ["numpy", "tensorflow"]},
        sandbox_settings=lambda *_: {},
    )
    prepared._have.cache_clear()
    prepared.prepare_sandbox(settings, "a", "/")
    prepared._have.cache_clear()
    assert imported == ["torch"]


def test_where_pytorch_cannot_be_imported_the_notebook_s_own_framework_is(monkeypatch):
    monkeypatch.setattr("course_lib.grading.outside.examinee.loaded", lambda name: name == "tensorflow" or None)
    monkeypatch.setattr("importlib.import_module", lambda name: imported.append(name))
    imported = []
    assert examinee_of("", "tensorflow").derivatives.frameworks.tests == "tensorflow"
    assert imported[0] == "torch" and imported[-1] == "tensorflow"
    monkeypatch.setattr(prepared.asyncio, "run", lambda preparing: preparing.close() or "")
    monkeypatch.setattr(prepared.SandboxProvisioner, "begin", lambda *_: None)
    monkeypatch.setitem(sys.modules, "torch", None)
    imported.clear()
    prepared._have.cache_clear()
    assert not prepared._have("torch") and prepared._have("tensorflow")
    prepared._have.cache_clear()


def test_a_notebook_that_no_longer_says_its_framework_has_none():
    examinee = examinee_of("", "tensorflow")
    examinee.namespace.clear()
    examinee.look_for_a_framework()
    assert examinee.derivatives.frameworks is ALIKE


def test_functions_of_the_tests_take_arrays_of_a_notebook_in_tensorflow_as_that_does():
    code, seen = "def f(step, x):\n    return step(x.numpy()), x.numpy()", []
    for framework in IMPORTS:
        _, array = examinee_of(code, framework).call("f", (lambda x: seen.append(x), torch.ones(2)), {}, {})
        assert isinstance(array, np.ndarray)
    assert [type(each) for each in seen] == [np.ndarray, torch.Tensor]


@each_framework
def test_who_leaves_the_framework_is_told_of_gradients_and_not_of_operands(framework):
    left = {"torch": "(x * y).detach().numpy()", "tensorflow": "(x * y).numpy()"}[framework]
    outputs = HiddenTests(TESTS, InThisProcess(IMPORTS[framework] + RIGHT.replace("x * y", left)), 1).outputs()
    said = outputs[0]["text"].partition("0 of 1  gradients")[2].partition(" of 1  ")[0]
    assert "the gradient by x is not that of the result" in said and "operand" not in said


def test_a_variable_that_goes_through_the_tests_comes_back_as_one():
    code = "def f(step):\n    x = step(tf.Variable([1.0]))\n    return x.assign(x + 1) * 1, step(x)"
    seen = []
    found, variable = examinee_of(code, "tensorflow").call("f", (lambda x: seen.append(x) or x,), {}, {})
    assert found.tolist() == [2.0] and variable.tolist() == [2.0]
    assert all(isinstance(each, torch.nn.Parameter) and not each.requires_grad for each in [*seen, variable])


def test_what_a_notebook_in_tensorflow_changes_of_its_arguments_is_seen():
    examinee = examinee_of("def f(given):\n    given['a'] = given['a'] + 1", "tensorflow")
    given = {"a": torch.ones(2)}
    examinee.call("f", (given,), {}, {})
    assert any(own is given["a"] and after.tolist() == [2, 2] for own, after in examinee.changed)


def test_a_notebook_s_own_tensors_are_values_of_the_framework_in_which_the_tests_compute():
    examinee = examinee_of("made = tf.constant([1, 2])", "tensorflow")
    values, _ = examinee.values(["made"])
    assert isinstance(values["made"], torch.Tensor) and values["made"].tolist() == [1, 2]


def test_calls_of_earlier_tests_are_forgotten(monkeypatch):
    sides, start = [], answering._Answers.__init__
    monkeypatch.setattr(answering._Answers, "__init__", lambda self, *given: sides.append(start(self, *given) or self))
    monkeypatch.setattr(followed, "MOST_KEPT", 3)
    examinee = examinee_of("def f(x):\n    return 2 * x")
    x = torch.ones(1, requires_grad=True)
    first, *_ = [examinee.call("f", (x,), {}, {}) for _ in range(6)]
    assert len(sides[0].kept._calls) == 4
    with pytest.raises(CheckFailed, match="not to be had"):
        first.backward()
    examinee.derivatives.forget()
    examinee.call("f", (x.detach(),), {}, {})
    assert sides[0].kept._calls == {}


def test_calls_are_forgotten_with_their_test():
    examinee = InThisProcess(IMPORTS["torch"] + RIGHT)
    HiddenTests(TESTS, examinee, 1).outputs()
    asked = [each for each in map(json.loads, examinee.sent) if each and "first" in each]
    assert len({each["first"] for each in asked}) == 7


def test_a_function_of_tensorflow_runs_as_it_is_written():
    """In a kernel that was started again, too, which has not been asked for its framework."""
    examinee = InThisProcess("import tensorflow as tf\n@tf.function\ndef f(step, x):\n    return step(x) + 1")
    examinee.derivatives.frameworks = Pair("tensorflow", "tensorflow")
    assert examinee.call("f", (lambda x: float(x) * 2, tf.constant(3.0)), {}, {}) == 7


IMPORTS_NOTHING = """
import sys, torch
from tests.support.examinees import InThisProcess

examinee = InThisProcess("import torch\\ndef f(x):\\n    return x * x")
examinee.look_for_a_framework()
x = torch.ones(2, requires_grad=True)
examinee.call("f", (x,), {}, {}).sum().backward()
assert x.grad.tolist() == [2, 2] and "sympy" not in sys.modules
"""


def test_no_more_is_imported_while_a_function_has_its_time():
    """A second of the three that it has; and what is stopped while it imports lacks a part ever after."""
    command = [sys.executable, "-c", IMPORTS_NOTHING]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


ONE = write(np.ones(1, np.float32))


@pytest.mark.parametrize(
    "said",
    [
        {}, {"kind": "returned"}, {"kind": "returned", "derivatives": []}, {"kind": "returned", "value": ONE},
        {"kind": "returned", "derivatives": [ONE, ONE]}, {"kind": "raised", "types": ["SystemExit"]},
        {"kind": "returned", "derivatives": [write(np.ones(2, np.float32))]},
        {"kind": "returned", "derivatives": [write(np.ones(1))]}, {"kind": "returned", "derivatives": [form()]},
        {"kind": "returned", "derivatives": [["text", "a"]]},
    ],
    ids=str,
)  # fmt: skip
def test_whatever_is_said_to_be_derivatives_is_at_most_a_failure(said, monkeypatch):
    monkeypatch.setattr(answering._Answers, "_pulled", lambda *given: said)
    found = examinee_of("def f(x):\n    return 2 * x").call("f", (torch.ones(1, requires_grad=True),), {}, {})
    with pytest.raises(CheckFailed):
        found.backward()


@pytest.mark.parametrize(
    "wanted",
    [
        {"pull": 0, "place": 1, "cotangent": ONE}, {"pull": 0, "place": -1, "cotangent": ONE},
        {"pull": 1, "place": 0, "cotangent": ONE}, {"pull": -1, "place": 0, "cotangent": ONE},
        {"pull": None, "place": 0, "cotangent": ONE}, {"pull": 0, "place": 0},
        {"pull": 0, "place": 0, "cotangent": write(np.ones(3, np.float32))},
        {"pull": 0, "place": 0, "cotangent": form()}, {"pull": 0, "place": 0, "cotangent": write(np.ones(1))},
    ],
    ids=str,
)  # fmt: skip
def test_derivatives_of_ours_that_are_not_to_be_had(wanted):
    """Of another call, of another result, or by what is not like it: that call alone fails."""
    code = f"def f(step, x):\n    y = step(x)\n    step.wanted({wanted!r})\n    return y"
    examinee = examinee_of(code)
    x = torch.ones(1, requires_grad=True)
    sides = answering._Answers._theirs

    def theirs(self, which):
        function = sides(self, which)
        function.wanted = self._wanted
        return function

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering._Answers, "_theirs", theirs)
        with pytest.raises(CheckFailed):
            examinee.call("f", (lambda x: x * 2, x), {}, {})


def test_a_tensor_of_another_framework_is_no_result(no_torch):
    examinee = examinee_of("import tensorflow as tf\ndef f(x):\n    return tf.Variable([1.0])")
    assert isinstance(examinee.call("f", (torch.ones(1),), {}, {}), tf.Variable)
    code = "import torch\ndef f(x):\n    return torch.ones(1, requires_grad=True)"
    examinee, x = examinee_of(code, "tensorflow"), tf.constant([1.0])
    with examinee.derivatives.of([x]), pytest.raises(CheckFailed, match="another framework"):
        examinee.call("f", (x,), {}, {})


# A student's own derivative, through a function of the tests, outside of any call that is followed
OWN = """
def f(step):
    x = torch.tensor([3.0], requires_grad=True)
    step(x, k=K).sum().backward()
    return x.grad
"""


@pytest.mark.parametrize("k", ["2", "tf.constant(2.0)", "tf.Variable(2.0)"])
def test_each_tensor_says_whether_it_is_followed_whatever_else_is_imported(k):
    examinee = examinee_of("import tensorflow as tf\n" + OWN.replace("K", k))
    assert examinee.call("f", (lambda x, k: x * x * float(k),), {}, {}).tolist() == [12]


def test_a_tensor_of_tensorflow_says_so_while_it_is_recorded(no_torch):
    code = "def f(step, x):\n    return step(x)"
    examinee, x = examinee_of(code, "tensorflow"), tf.constant([3.0])
    marks = []

    def step(x):
        marks.append(json.loads(examinee.sent[-1])["given"]["1"][2])
        return x * x

    assert examinee.call("f", (step, x), {}, {}).numpy() == [9]
    with tf.GradientTape() as tape:
        tape.watch(x)
        with examinee.derivatives.of([x]):
            found = examinee.call("f", (step, x), {}, {})
    assert tape.gradient(found, x).numpy().tolist() == [6] and marks == ["constant", "result"]


def test_ours_are_not_made_to_compute_with_a_tensor_without_numbers_for_ever():
    examinee = examinee_of("def f(step):\n    return step(torch.empty(50_000, 0))")
    with pytest.raises(CheckFailed, match=r"too\s+large"):
        examinee.call("f", (lambda x: x,), {}, {})


def test_an_answer_has_not_any_number_of_results_that_are_differentiated(monkeypatch):
    monkeypatch.setattr(followed, "MOST_RESULTS", 3)
    examinee = examinee_of("def f(x, n):\n    return [x * 1] * n")
    x = torch.ones(2, requires_grad=True)
    found = examinee.call("f", (x, 3), {}, {})
    sum(part.sum() for part in found).backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(CheckFailed, match=r"more\s+than\s+3\s+tensors"):
        examinee.call("f", (x, 4), {}, {})
    assert len(examinee_of("def f(x, n):\n    return [x * 1] * n").call("f", (torch.ones(2), 9), {}, {})) == 9


def test_ours_return_together_what_one_value_may_have():
    code = "def f(step, n):\n    for _ in range(n):\n        step()"
    examinee, large = examinee_of(code), torch.zeros(2**20)  # 4 MiB
    for _ in range(2):
        examinee.call("f", (lambda: large, 4), {}, {})  # of each call anew
    with pytest.raises(CheckFailed, match=r"too\s+large"):
        examinee.call("f", (lambda: large, 5), {}, {})


WIDE = "def f(step):\n    return step(torch.ones(6_000, 1, dtype=torch.uint8), torch.ones(1, 6_000))"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_ours_compute_in_so_much_memory_whatever_they_are_given(monkeypatch):
    resource = pytest.importorskip("resource")
    own = resource.getrlimit(resource.RLIMIT_DATA)
    monkeypatch.setattr(memory, "MEMORY", 2**26)  # for 144 MB
    with pytest.raises(RuntimeError, match=r"memory"):
        examinee_of(WIDE).call("f", (lambda wide, high: (wide + high).sum(),), {}, {})
    assert resource.getrlimit(resource.RLIMIT_DATA) == own, "afterwards it may take what it could before"
    monkeypatch.setattr(memory, "MEMORY", 2**30)
    found = examinee_of(WIDE).call("f", (lambda wide, high: (wide + high).sum(),), {}, {})
    assert float(found) == 2 * 6_000**2


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_limit_that_is_there_already_is_not_made_wider():
    resource = pytest.importorskip("resource")
    now, own = memory.end_of_memory(), resource.getrlimit(resource.RLIMIT_DATA)
    assert now > memory.MEMORY + 2**20, "what this process has already does not count"
    with memory.at_most(now):
        before = resource.getrlimit(resource.RLIMIT_DATA)
        with memory.at_most(2 * now):
            assert resource.getrlimit(resource.RLIMIT_DATA) == before == (now, own[1])
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with memory.at_most(None):
        assert resource.getrlimit(resource.RLIMIT_DATA) == own
