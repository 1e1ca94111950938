"""course_lib.grading.Tensors: tensors of the framework that a notebook imports, and gradients in it."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

from course_lib.grading import CheckFailed, Tensors

NAMESPACES = {"torch": {"torch": torch}, "tensorflow": {"tf": tf}}


@pytest.fixture(autouse=True)
def graphs_again():
    """In a student's kernel functions stay eager to the end; here other tests come after these."""
    yield
    tf.config.run_functions_eagerly(False)


each_framework = pytest.mark.parametrize("name", NAMESPACES)


@each_framework
def test_tensors_have_the_dtype_of_their_kind(name):
    tensors = Tensors(NAMESPACES[name])
    kind = {"torch": torch.Tensor, "tensorflow": tf.Tensor}[name]
    for given, dtype in [([[1.5]], "float32"), (np.float64(2.0), "float32"), ([1, 2], "int64"), ([True], "bool")]:
        made = tensors(given)
        assert isinstance(made, kind) and np.array(made).dtype == dtype and np.array_equal(np.array(made), given)


@pytest.mark.parametrize(
    ("namespace", "framework"),
    [
        ({"np": np, "F": torch.nn.functional}, "torch"),
        ({"Module": torch.nn.Module}, "torch"),
        ({"x": torch.ones(1)}, "torch"),
        ({"keras": keras}, "tensorflow"),
        ({"torch": torch, "tf": tf}, "torch"),
        ({"tf": tf, "torch": torch}, "tensorflow"),
    ],
)
def test_the_framework_is_the_first_that_the_notebook_imports(namespace, framework):
    assert Tensors(namespace).framework == framework


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_the_framework_that_functions_name_counts_more_than_the_first_import(framework):
    """In a nested function, in a method, or in a function made a `tf.function`."""
    for source in [
        "def f(x):\n    return [NAME.abs(part) for part in x]",
        "class F:\n    def __call__(self, x):\n        return (lambda y: NAME.abs(y))(x)",
        "@tf.function\ndef f(x):\n    return NAME.abs(x)",
    ]:
        namespace = {"torch": torch, "tf": tf} if framework == "tensorflow" else {"tf": tf, "torch": torch}
        exec(source.replace("NAME", "tf" if framework == "tensorflow" else "torch"), namespace)
        assert Tensors(namespace).framework == framework, source


def test_a_function_of_tensorflow_runs_as_it_is_written():
    @tf.function
    def twice(x):
        return 2 * x.numpy()

    tensors = Tensors({"tf": tf})
    assert float(twice(tensors(3.0))) == 6.0


def test_a_notebook_without_a_framework_is_told_what_to_do():
    with pytest.raises(CheckFailed, match="(?s)Not written yet.*import.torch"):
        Tensors({"np": np, "torch": "a word", "f": len})


@each_framework
def test_gradients_are_those_of_the_sum(name):
    first, second = Tensors(NAMESPACES[name]).gradients(lambda x, y: x * x * y, [1.0, 2.0], [3.0, 4.0])
    np.testing.assert_allclose(first, [6.0, 16.0])
    np.testing.assert_allclose(second, [1.0, 4.0])


@each_framework
@pytest.mark.parametrize("function", [lambda x, y: x * 2.0, lambda x, y: 1.0, lambda x, y: np.array([1.0])])
def test_a_gradient_that_does_not_arrive_is_a_failed_check(name, function):
    with pytest.raises(CheckFailed, match="No gradient reaches"):
        Tensors(NAMESPACES[name]).gradients(function, [1.0], [2.0])


def test_gradients_of_picked_rows_are_arrays():
    """TensorFlow keeps them as IndexedSlices."""
    (found,) = Tensors(NAMESPACES["tensorflow"]).gradients(lambda x: tf.gather(x, [0, 0]), [[1.0], [2.0]])
    np.testing.assert_allclose(found, [[2.0], [0.0]])


X, Y = np.array([[0.5, -1.0], [2.0, 0.3]]), np.array([1.5, -0.7])


@each_framework
def test_gradients_that_are_derivatives_pass_whatever_is_computed(name):
    tensors = Tensors(NAMESPACES[name])
    for function in [
        lambda x, y: x * y,
        lambda x, y: (x * x, y + 1.0),
        lambda x, y: [x @ x * y, 1.0],
        lambda x, y: x,
    ]:
        tensors.expect_gradients(function, x=X, y=Y)


@each_framework
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, y, cut: cut(x) * y, "gradient by x is not"),
        (lambda x, y, cut: x * x * cut(x) + y, "gradient by x is not"),
        (lambda x, y, cut: (x * y, cut(x) + 0 * y), "gradient by x is not"),
        (lambda x, y, cut: x * cut(y), "gradient by y is not"),
        (lambda x, y, cut: cut(x * y), "gradient by x is not"),
        (lambda x, y, cut: (x - x) ** 0.5 * y, "derivative by x is NaN"),
        (lambda x, y, cut: 0 * x * y + 3, "depends on none of x, y"),
    ],
)
def test_a_gradient_that_is_cut_anywhere_is_noticed(name, function, words):
    cut = {"torch": lambda part: part.detach(), "tensorflow": tf.stop_gradient}[name]
    with pytest.raises(CheckFailed) as failed:
        Tensors(NAMESPACES[name]).expect_gradients(lambda x, y: function(x, y, cut), x=X, y=Y)
    assert words in " ".join(str(failed.value).split())


@each_framework
def test_gradients_that_are_swapped_between_two_arguments_are_noticed(name):
    """They add up to what is right, where both arguments make the same step."""
    cut = {"torch": lambda part: part.detach(), "tensorflow": tf.stop_gradient}[name]

    def function(x, y):
        swapped = x * cut(3 * y * y) + y * cut(2 * x)
        return cut(x * x + y * y * y) + swapped - cut(swapped)

    for x, y in ((X, X[::-1]), (np.array(0.5), np.array(-1.0)), (X[:1, :1], X[1:, :1])):
        with pytest.raises(CheckFailed, match=r"gradient by x is not"):
            Tensors(NAMESPACES[name]).expect_gradients(function, x=x, y=y)


@each_framework
def test_gradients_whose_errors_would_add_up_to_nothing_are_noticed(name):
    """Without lengths of their own, y and z would make opposite steps each time, as single numbers have two."""
    cut = {"torch": lambda part: part.detach(), "tensorflow": tf.stop_gradient}[name]

    def function(x, y, z):
        wrong = x + 2 * y + 2 * z
        return cut(x + y + z) + wrong - cut(wrong)

    with pytest.raises(CheckFailed, match=r"gradient by y is not"):
        Tensors(NAMESPACES[name]).expect_gradients(function, x=1.0, y=2.0, z=3.0)


@each_framework
def test_a_right_function_is_called_as_often_whatever_the_number_of_its_arguments(name):
    calls = []

    def function(*given):
        calls.append(len(given))
        return sum(each * each for each in given)

    for arrays in ({"x": X}, {"x": X, "y": X + 1, "z": X - 1}):
        Tensors(NAMESPACES[name]).expect_gradients(function, **arrays)
    assert calls.count(3) == calls.count(1)


@each_framework
def test_a_function_that_answers_for_derivatives_alone_is_noticed_by_the_right_one(name):
    """With itself it agrees: right values without derivatives, and for what is differentiated a sum."""

    def of_a_sum(x, y):
        return x + y

    def right(x, y):
        return x * x * y, y

    tensors = Tensors(NAMESPACES[name])
    tensors.expect_gradients(of_a_sum, x=X, y=Y)
    with pytest.raises(CheckFailed, match=r"gradient by x is not"):
        tensors.expect_gradients(of_a_sum, right, x=X, y=Y)


@each_framework
def test_right_derivatives_agree_with_the_right_function_and_no_other_call_is_made(name):
    calls = []

    def function(x, y):
        calls.append(x)
        return x * x * y, y

    Tensors(NAMESPACES[name]).expect_gradients(function, lambda x, y: [x * x * y, y], x=X, y=Y)
    assert len(calls) == 1


def test_who_is_compared_with_the_right_function_does_not_know_the_directions(monkeypatch):
    """They are other ones with each seed, and others than those that a function gets that is compared with itself."""

    def first_step(seed, *right):
        called = []

        def seen(x):
            called.append(np.array(x if right else x.detach()))
            return x * x

        monkeypatch.setenv("COURSE_GRADING_SEED", seed)
        given = [lambda x: x * x, seen] if right else [seen]
        Tensors(NAMESPACES["torch"]).expect_gradients(*given, x=X)
        return (called[-1] - X) / np.linalg.norm(called[-1] - X)

    steps = [first_step("1", True), first_step("2", True), first_step("1")]
    assert all(abs((a * b).sum()) < 0.999 for a, b in itertools.combinations(steps, 2))
    np.testing.assert_array_equal(first_step("1", True), steps[0])


def test_a_right_gradient_holds_where_the_result_bends_much():
    """Of a norm that divides by little: a central difference alone would be up to 8 % off."""
    tensors = Tensors(NAMESPACES["torch"])

    def normed(x):
        return (x - 0.1) / ((x - 0.1) * (x - 0.1) + 5e-4) ** 0.5

    x = np.array([0.13, 0.07])
    tensors.expect_gradients(normed, normed, x=x)
    with pytest.raises(CheckFailed, match=r"gradient by x is not"):
        tensors.expect_gradients(normed, x=x)
