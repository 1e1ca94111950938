"""Random encoders, Transformers and BERTs in every way of Keras's: compiled, saved, cloned, exported, in half."""

import copy

import keras
import pytest
import tensorflow as tf

from tests.support.backends import TENSORFLOW
from tests.support.keras_models import ROUNDING, build, error, prepared
from tests.support.random_models import cases

# Keras's own, of NumPy 2, while it writes weights
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

SAME = 2e-5  # float32 and another order of the sums


def pytest_generate_tests(metafunc):
    """Half as many cases where one takes seconds, in an export, and in float64, which hides less than a half does."""
    n = metafunc.config.getoption("--configurations")
    if "exported_case" in metafunc.fixturenames:
        found = cases((n + 1) // 2)
        metafunc.parametrize("exported_case", found, ids=map(repr, found))
    if "precise_case" in metafunc.fixturenames:
        found = [(case, p) for case in cases(n) for p in ROUNDING if p != "float64" or case.number < (n + 1) // 2]
        metafunc.parametrize("precise_case", found, ids=[f"{case}-{policy}" for case, policy in found])


def specs(inputs):
    """The inputs with batch and lengths unknown."""
    return [
        tf.TensorSpec([n if name == "x" and axis == 2 or n == 1 and axis else None for axis, n in enumerate(x.shape)],
                      x.dtype, name)
        for name, x in inputs.items()
    ]  # fmt: skip


def symbolic(inputs):
    return {spec.name: keras.Input(spec.shape[1:], dtype=spec.dtype, name=spec.name) for spec in specs(inputs)}


def test_compiled_functions_of_unknown_shapes_give_the_same(random_case, record_property):
    """One graph for all shapes, and the machine code that XLA makes of it for one of them, of every other case."""
    model, inputs, expected = prepared(random_case)

    def function(*values):
        return model(**dict(zip(inputs, values, strict=True)), return_layers=True)

    graph = tf.function(function, input_signature=specs(inputs), autograph=False)
    record_property("graph", worst := error(graph(*inputs.values()), expected))
    assert worst < SAME
    fewer = {name: x[:1] for name, x in inputs.items()}
    assert error(graph(*fewer.values()), model(**fewer, return_layers=True)) < SAME
    if random_case.number % 2 == 0:
        record_property("xla", worst := error(tf.function(graph, jit_compile=True)(*inputs.values()), expected))
        assert worst < SAME


def test_saved_and_copied_models_give_the_same(random_case, tmp_path, record_property):
    """A `.keras` file, and a clone with saved weights: all but the weights is in the config. A layer is copied."""
    model, inputs, expected = prepared(random_case)
    if random_case.kind == "encoder":
        copies = {"deepcopy": copy.deepcopy(model)}
    else:
        model.save(tmp_path / "model.keras")
        model.save_weights(tmp_path / "model.weights.h5")
        copies = {"keras file": keras.models.load_model(tmp_path / "model.keras")}
        copies["clone"] = keras.models.clone_model(model)
        assert error(copies["clone"](**inputs, return_layers=True), expected) > 0.01  # its weights are fresh
        copies["clone"].load_weights(tmp_path / "model.weights.h5")
    for name, other in copies.items():
        assert type(other) is type(model) and other is not model
        record_property(name, worst := error(other(**inputs, return_layers=True), expected))
        assert worst < 1e-6, name


def test_other_precisions_give_the_same_within_their_rounding(precise_case, record_property):
    """Of the model and of all its parts.

    Every layer rounds some ten times, and each rounding is off by ROUNDING relative to numbers of the size of the
    outputs. With all errors of one sign, and those of the layers before carried on, n layers are off by 10 (n + 1)
    roundings; a Transformer's decoder has twice the sub-layers, behind those of the encoder.
    """
    random_case, policy = precise_case
    model, inputs, expected = prepared(random_case)
    other = build(random_case, dtype=policy)
    assert {layer.dtype_policy.name for layer in other._flatten_layers()} == {policy}
    TENSORFLOW.lib.set_state(other, TENSORFLOW.lib.get_state(model))
    outputs = other(**inputs, return_layers=True)
    assert outputs[0].dtype == other.compute_dtype
    n = random_case.arguments.get("n_layers") or random_case.arguments["config"].n_layers
    n_roundings = 10 * (3 * n + 1 if random_case.kind in ("transformer", "t5", "whisper") else n + 1)
    record_property(policy, worst := error(outputs, expected))
    assert worst < n_roundings * ROUNDING[policy]


def test_a_functional_model_gives_the_same(random_case, record_property):
    """`keras.Input`s in, the call's own named outputs out.

    In a layer of its own: Keras 3.15 refuses one that was in a functional model with fewer outputs before.
    """
    shared, inputs, expected = prepared(random_case)
    model = build(random_case)
    TENSORFLOW.lib.set_state(model, TENSORFLOW.lib.get_state(shared))
    arguments = symbolic(inputs)
    outputs = model(**arguments, return_layers=True)
    assert type(outputs) is type(expected)
    record_property("functional", worst := error(keras.Model(arguments, outputs)(inputs), expected))
    assert worst < SAME


def test_an_exported_model_gives_the_same(exported_case, tmp_path, record_property):
    """To a server, which knows nothing of Keras: a layer in a functional model, a model by its own `export`."""
    model, inputs, expected = prepared(exported_case)
    if exported_case.kind == "encoder":
        arguments = symbolic(inputs)
        model = keras.Model(arguments, model(**arguments).last_hidden)
        model.export(tmp_path / "export", verbose=False)
    else:
        entry = {s.name: keras.InputSpec(s.dtype.name, s.shape, name=s.name) for s in specs(inputs)}
        model.export(tmp_path / "export", verbose=False, input_signature=[entry])
    served = tf.saved_model.load(str(tmp_path / "export"))
    record_property("export", worst := error(served.serve(inputs), expected[0]))
    assert worst < SAME
    fewer = {name: x[:1] for name, x in inputs.items()}
    assert error(served.serve(fewer), expected[0][:1]) < SAME
