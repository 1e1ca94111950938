"""What must hold of a Decision Transformer: tokens, what sees what, padding, gradients, fresh weights, errors."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.decision import DecisionConfig
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

CONFIG = DecisionConfig(4, 2, 12, n_layers=2, n_heads=3, d_ff=10, max_len=9, action_tanh=False)
RNG = np.random.default_rng(0)
INPUTS = {
    "states": RNG.normal(size=(2, 5, 4)),
    "actions": RNG.normal(size=(2, 5, 2)),
    "returns": RNG.normal(size=(2, 5, 1)),
    "times": np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]]),
}
PREDICTED = ("actions", "states", "returns")


@functools.cache
def build(backend, attention="attention", **changes):
    config = replace(CONFIG, **changes)
    state = states.random_state(states.decision(config))
    return backend.make("DecisionTransformer", config, attention=backend.function(attention), state=state)


def changed(name, step, by=3.0):
    """The inputs with one of the steps changed."""
    array = INPUTS[name].copy()
    array[:, step] = array[:, step] + by
    return INPUTS | {name: array}


def differs(backend, inputs):
    """Where the predictions are others than those of INPUTS: for each kind a boolean (T,), of all rows alike."""
    before, after = (backend.call(build(backend), **given) for given in (INPUTS, inputs))
    found = {name: np.abs(getattr(after, name) - getattr(before, name)).max(axis=(0, 2)) for name in PREDICTED}
    assert all(((worst < 1e-6) | (worst > 1e-4)).all() for worst in found.values())
    return {name: worst > 1e-4 for name, worst in found.items()}


def test_the_tokens_are_returns_states_and_actions_of_each_step(backend):
    """Each by its linear layer, plus the vector of its step's time, normalised (section 3)."""
    state = NUMPY.lib.get_state(build(NUMPY))
    found = backend.call(build(backend), **INPUTS, return_layers=True).hidden[0]
    for t in range(5):
        for i, name in enumerate(("return", "state", "action")):
            x = INPUTS[f"{name}s"][:, t] @ state[f"embed_{name}.weight"].T + state[f"embed_{name}.bias"]
            x = x + state["time.weight"][INPUTS["times"][:, t]]
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
            expected = x * state["norm.weight"] + state["norm.bias"] + state["shift"]
            assert_allclose(found[:, 3 * t + i], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["states", "returns"])
def test_a_state_and_a_return_are_seen_from_their_step_on(backend, name):
    for found in differs(backend, changed(name, 2)).values():
        np.testing.assert_array_equal(found, [False, False, True, True, True])


def test_an_action_is_seen_from_the_next_step_on_by_the_actions(backend):
    """What was done is no part of what shall be done; the state after it follows from it."""
    found = differs(backend, changed("actions", 2))
    np.testing.assert_array_equal(found["actions"], [False, False, False, True, True])
    for name in ("states", "returns"):
        np.testing.assert_array_equal(found[name], [False, False, True, True, True])


def test_times_are_those_of_the_episode(backend):
    """Another time of one step alone changes it and what follows; the place in the batch has no part."""
    for found in differs(backend, changed("times", 3, by=1)).values():
        np.testing.assert_array_equal(found, [False, False, False, True, True])


@pytest.mark.parametrize("real", [[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]], ids=["left", "right"])
def test_padding_is_as_if_it_were_not_there(backend, real):
    real = np.array(real, bool)
    whole = backend.call(build(backend), **INPUTS, real=np.array([real, np.ones(5, bool)]))
    alone = backend.call(build(backend), **{name: value[:1, real] for name, value in INPUTS.items()})
    other = backend.call(build(backend), **{name: value[1:] for name, value in INPUTS.items()})
    for name in PREDICTED:
        assert np.isfinite(getattr(whole, name)).all()
        assert_allclose(getattr(whole, name)[0, real], getattr(alone, name)[0], **backend.tolerance)
        assert_allclose(getattr(whole, name)[1], getattr(other, name)[0], **backend.tolerance)


def test_the_fused_attention_gives_the_same(backend):
    real = np.array([[0, 1, 1, 1, 1], [1, 1, 1, 1, 0]], bool)
    found, expected = (
        backend.call(build(backend, kind), **INPUTS, real=real) for kind in ("fused_attention", "attention")
    )
    for name in PREDICTED:
        assert_allclose(getattr(found, name)[real], getattr(expected, name)[real], rtol=1e-4, atol=1e-5)


def test_a_tanh_keeps_the_actions_between_their_bounds(backend):
    free, bound = (backend.call(build(backend, action_tanh=tanh), **INPUTS) for tanh in (False, True))
    assert np.abs(free.actions).max() > 1
    assert_allclose(bound.actions, np.tanh(free.actions), rtol=1e-5)
    assert_allclose(bound.states, free.states, rtol=1e-6)


def test_gradients():
    """By every input and weight: PyTorch's against TensorFlow's, and both against central differences."""
    inputs = list(INPUTS.values())
    results = {b: b.gradients(build(b, action_tanh=True), *inputs) for b in (TORCH, TENSORFLOW, NUMPY)}
    assert results[TORCH][1].keys() == states.decision(CONFIG).keys()
    for place in range(3):
        numerical = results[NUMPY][0][place]
        known = ~np.isnan(numerical)
        for found in (results[b][0][place] for b in (TORCH, TENSORFLOW)):
            assert_allclose(found[known], numerical[known], rtol=1e-3, atol=1e-4)
    for name, gradient in results[TORCH][1].items():
        assert_allclose(results[TENSORFLOW][1][name], gradient, rtol=1e-3, atol=1e-4, err_msg=name)
        numerical = results[NUMPY][1][name]
        known = ~np.isnan(numerical)
        assert known.any()
        assert_allclose(gradient[known], numerical[known], rtol=1e-3, atol=1e-4, err_msg=name)


def test_every_layer_is_returned_when_asked_for(backend):
    output = backend.call(build(backend), **INPUTS)
    assert (output.hidden, output.weights) == (None, None)
    assert [getattr(output, name).shape for name in PREDICTED] == [(2, 5, 2), (2, 5, 4), (2, 5, 1)]
    output = backend.call(build(backend), **INPUTS, return_layers=True)
    assert [hidden.shape for hidden in output.hidden] == [(2, 15, 12)] * 3
    assert [weights.shape for weights in output.weights] == [(2, 3, 15, 15)] * 2
    for weights in output.weights:
        assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)
        assert (weights == 0).sum(axis=(1, 2, 3)).min() == 3 * 15 * 14 // 2  # causal


def test_fresh_weights(backend):
    config = DecisionConfig(40, 30, 64, 2, 4, 80, 50, init_std=0.5)
    for name, value in backend.lib.get_state(backend.make("DecisionTransformer", config)).items():
        if value.ndim > 1 or name == "shift":
            before_residual = name.endswith(("out_proj.weight", "linear2.weight"))
            std = 0.5 * (config.residual_scale if before_residual else 1)
            assert_allclose(value.std(), std, rtol=6 / np.sqrt(2 * value.size), err_msg=name)
            assert abs(value.mean()) < 0.35
        else:
            assert_allclose(value, 1.0 if name.endswith("weight") else 0.0, err_msg=name)


def test_dropout_of_the_tokens_the_attentions_and_the_sub_layers(training_backend):
    backend, attention, seen = training_backend, training_backend.function("attention"), []

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        seen.append(dropout)
        return attention(q, k, v, mask, **options)

    config = replace(CONFIG, d_model=60, n_layers=1, dropout=0.4, attention_dropout=0.2, embedding_dropout=0.3)
    model = backend.make("DecisionTransformer", config, attention=noting)
    assert model.decoder.config.dropout == 0.4
    hidden = backend.call(model, **INPUTS, training=True, return_layers=True).hidden[0]
    still = backend.call(model, **INPUTS, return_layers=True).hidden[0]
    assert seen == [0.2, 0.0] and not (still == 0.0).any()
    assert_allclose((hidden == 0.0).mean(), 0.3, atol=6 * np.sqrt(0.21 / hidden.size))
    kept = hidden != 0.0
    assert_allclose(hidden[kept] * 0.7, still[kept], rtol=1e-5, atol=1e-6)


def test_a_folder_opens_as_it_was_saved(backend, tmp_path):
    model = build(backend, action_tanh=True)
    folder = model.save_pretrained(tmp_path)
    opened = type(model).from_pretrained(folder, attention=backend.function("fused_attention"))
    assert opened.config == replace(CONFIG, action_tanh=True)
    for name in PREDICTED:
        found, expected = (getattr(backend.call(of, **INPUTS), name) for of in (opened, model))
        assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert backend.call(opened, **INPUTS, return_layers=True).weights == (None, None)
    with pytest.raises(UnsupportedConfigError, match="holds no BERT: .*model_type='decision_transformer'"):
        backend.lib.BertModel.from_pretrained(folder)


BAD = {
    "features": (
        {"states": INPUTS["states"][..., :3]},
        ValueError,
        r"states must have shape \(B, T, 4\), got \(2, 5, 3",
    ),
    "steps": ({"actions": INPUTS["actions"][:, :4]}, ValueError, r"actions \(2, 4, 2\) do not fit the times \(2, 5\)"),
    "batch": ({"returns": INPUTS["returns"][:1]}, ValueError, r"returns \(1, 5, 1\) do not fit the times \(2, 5\)"),
    "no axis": ({"returns": INPUTS["returns"][..., 0]}, ValueError, r"\(B, T, 1\).*write returns\[..., None\]"),
    "ids": (
        {"actions": INPUTS["times"]},
        TypeError,
        r"actions must be numbers of floating point.*np.eye\(2\)\[action\]",
    ),
    "late": ({"times": INPUTS["times"] + 2}, ValueError, "times must lie in 0 ... 8, got ids from 2 to 9"),
    "hours": ({"times": INPUTS["times"] / 2}, TypeError, "times must be integers"),
    "one row": ({"times": INPUTS["times"][0]}, ValueError, r"times must have shape \(B, T\), got \(5\)"),
    "counts": ({"real": INPUTS["times"]}, TypeError, "real must be boolean"),
    "no step": (
        {name: value[:, :0] for name, value in INPUTS.items()},
        ValueError,
        r"there must be a step to decide about; the times have the shape \(2, 0\)",
    ),
    "no actions": ({"actions": None}, TypeError, "actions must be an array.*got None; give zeros for those"),
    "no times": ({"times": None}, TypeError, "times must be an array with something for each step, got None"),
    "tokens": ({"real": np.ones((2, 15), bool)}, ValueError, r"real must say True or False of each token, \(2, 5\)"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input(backend, kind):
    changes, error, message = BAD[kind]
    with pytest.raises(error, match=message):
        backend.call(build(backend), **{**INPUTS, **changes})


def test_no_episode_has_no_predictions(backend):
    found = backend.call(build(backend), **{name: value[:0] for name, value in INPUTS.items()})
    assert [getattr(found, name).shape for name in PREDICTED] == [(0, 5, 2), (0, 5, 4), (0, 5, 1)]


def test_another_models_configuration(backend):
    with pytest.raises(TypeError, match="a Decision Transformer is built of a DecisionConfig, got BertConfig"):
        backend.make("DecisionTransformer", BertConfig(11, 12, 1, 3, 10, 8))


@pytest.mark.filterwarnings(
    "ignore:Gradients do not exist"
)  # of the predictions of states and returns: as it should be
def test_keras_fits_and_predicts_the_actions():
    import keras

    keras.utils.set_random_seed(3)
    model = TENSORFLOW.make("DecisionTransformer", replace(CONFIG, n_layers=1, dropout=0.0))
    inputs = {name: value.astype(np.float32) if name != "times" else value for name, value in INPUTS.items()}
    model.compile(keras.optimizers.Adam(0.02), "mse", run_eagerly=True)
    wanted = inputs["states"][..., :2]
    history = model.fit(inputs, wanted, epochs=8, verbose=0).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    actions = model.predict(inputs, verbose=0)
    assert_allclose(actions, model(**inputs).actions, rtol=1e-4, atol=1e-5)
    assert_allclose(model.evaluate(inputs, wanted, verbose=0), ((actions - wanted) ** 2).mean(), rtol=1e-5)


def test_keras_leaves_out_padding_by_its_weights():
    """As the documentation of the class says: without them the actions at padding count."""
    import keras

    model = TENSORFLOW.make("DecisionTransformer", replace(CONFIG, n_layers=1, dropout=0.0))
    inputs = {name: value.astype(np.float32) if name != "times" else value for name, value in INPUTS.items()}
    real = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    model.compile(keras.optimizers.Adam(0.02), "mse", run_eagerly=True)
    losses = {}
    for at_padding in (0.0, 100.0):
        wanted = np.where(real[..., None], inputs["states"][..., :2], np.float32(at_padding))
        weights = (real.astype(np.float32), None)
        losses[at_padding] = [model.evaluate(inputs, wanted, sample_weight=w, verbose=0) for w in weights]
    assert_allclose(losses[100.0][0], losses[0.0][0], rtol=1e-6)
    assert losses[100.0][1] > 100 * losses[0.0][1]


def test_a_saved_model_serves_steps_of_any_number(tmp_path):
    import tensorflow as tf

    model = build(TENSORFLOW, n_layers=1)
    tf.saved_model.save(model, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    for n in (5, 3):
        inputs = {name: TENSORFLOW.tensor(value[:, :n]) for name, value in INPUTS.items()}
        (actions,) = served(**inputs).values()
        assert_allclose(actions, model(**inputs).actions, rtol=1e-4, atol=1e-5)
