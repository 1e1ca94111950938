"""Our Decision Transformer equals that of `transformers` on ten random configurations, by files both ways.

Within 1e-5, in NumPy 1e-9; values of the three predictions, states and weights, and the gradients by every weight.
Ten configurations in each library, or as many as `--configurations` says, if these are more.
"""

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from course_lib.errors import CheckpointError
from course_lib.models.blocks import ACTIVATIONS
from course_lib.models.decision import DecisionConfig
from tests.support.backends import BACKENDS, NUMPY, TENSORFLOW, TORCH

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        n = max(metafunc.config.getoption("--configurations"), 10)
        found = [(b, i) for b in BACKENDS for i in range(n)]
        metafunc.parametrize(("library", "number"), found, ids=[f"{b}-{i}" for b, i in found])


def case(number):
    """A configuration, and what a call takes: every second batch has padding, on the left and on the right."""
    rng = np.random.default_rng([20210602, number])
    n_heads = int(rng.integers(1, 6))
    d_model = n_heads * int(rng.integers(2, 9))
    config = DecisionConfig(
        d_state=int(rng.integers(1, 8)),
        d_action=int(rng.integers(1, 6)),
        d_model=d_model,
        n_layers=int(rng.integers(1, 4)),
        n_heads=n_heads,
        d_ff=[4 * d_model, int(rng.integers(5, 50))][number % 2],
        max_len=int(rng.integers(8, 30)),
        action_tanh=number % 4 < 2,
        activation=ACTIVATIONS[(number + 1) % len(ACTIVATIONS)],
        norm_eps=[1e-5, 1e-3][number % 2],
        dropout=0.1 * (number % 3),
        embedding_dropout=0.1 * (number % 4),
        attention_dropout=0.1 * (number % 5),
    )
    b, t = int(rng.integers(2, 5)), int(rng.integers(3, 8))
    inputs = {
        "states": rng.normal(size=(b, t, config.d_state)),
        "actions": rng.normal(size=(b, t, config.d_action)),
        "returns": 10 * rng.normal(size=(b, t, 1)),
        "times": rng.integers(0, config.max_len - t + 1, size=(b, 1)) + np.arange(t),
    }
    if number % 2:
        inputs["real"] = np.ones((b, t), bool)
        inputs["real"][0, :2] = inputs["real"][1, 1:] = False
    return config, inputs


def their_model(config, seed, **changes):
    """A random model of `transformers`, with weights large enough to matter everywhere."""
    torch.manual_seed(seed)
    settings = config.to_hugging_face() | {"n_positions": 7, "attn_implementation": "eager"} | changes
    model = transformers.DecisionTransformerModel(transformers.AutoConfig.for_model(**settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return model


def asked(theirs, inputs, **options):
    """What theirs says; its attention mask is our `real`."""
    dtype = next(theirs.parameters()).dtype
    given = {name: torch.from_numpy(value) for name, value in inputs.items()}
    given = {name: value.to(dtype) if value.is_floating_point() else value for name, value in given.items()}
    mask = given.pop("real", None)
    names = {"returns": "returns_to_go", "times": "timesteps"}
    given = {names.get(name, name): value for name, value in given.items()}
    return theirs(**given, attention_mask=None if mask is None else mask.long(), **options)


def compare(backend, ours, theirs, inputs):
    """Predictions, states and weights at the real steps."""
    theirs = theirs.double() if backend is NUMPY else theirs.float()
    with torch.no_grad():
        expected = asked(theirs, inputs, output_hidden_states=True, output_attentions=True)
    output = backend.call(ours, **inputs, return_layers=True)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if backend is NUMPY else {"rtol": 1e-5, "atol": 1e-5}
    real = inputs.get("real", np.ones(inputs["times"].shape, bool))
    tokens = np.repeat(real, 3, axis=1)
    for name in ("action", "state", "return"):
        found, reference = getattr(output, f"{name}s"), getattr(expected, f"{name}_preds").numpy()
        assert found.shape == reference.shape
        assert_allclose(found[real], reference[real], **tolerance, err_msg=name)
    assert len(output.hidden) == ours.config.n_layers + 1  # the last of theirs is normalised
    for result, reference in zip(output.hidden[:-1], expected.hidden_states[:-1], strict=True):
        assert_allclose(result[tokens], reference.numpy()[tokens], **tolerance)
    for result, reference in zip(output.weights, expected.attentions, strict=True):
        assert_allclose(result.swapaxes(1, 2)[tokens], reference.numpy().swapaxes(1, 2)[tokens], **tolerance)


def test_equal_and_opened_both_ways(library, number, tmp_path):
    config, inputs = case(number)
    theirs = their_model(config, number)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = library.lib.DecisionTransformer.from_pretrained(tmp_path / "theirs")
    assert ours.config == config
    compare(library, ours, theirs, inputs)
    ours.save_pretrained(tmp_path / "ours")
    opened, report = transformers.DecisionTransformerModel.from_pretrained(
        tmp_path / "ours", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    compare(library, ours, opened.eval(), inputs)
    states = [load_file(tmp_path / side / "model.safetensors") for side in ("ours", "theirs")]
    assert states[0].keys() == states[1].keys()
    for key in states[0].keys() - {"encoder.wte.weight"}:  # which nobody reads
        theirs = states[1][key][:1] if key == "encoder.wpe.weight" else states[1][key]
        assert_allclose(states[0][key], theirs, rtol=1e-6, err_msg=key)


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_gradients_by_every_weight(which, tmp_path):
    """Of a random combination of all predictions at the real steps: ours in PyTorch and TensorFlow against theirs."""
    import tensorflow as tf

    config, inputs = case(which)
    theirs = their_model(config, which)
    theirs.save_pretrained(tmp_path)
    real = inputs.get("real", np.ones(inputs["times"].shape, bool))[..., None]
    rng = np.random.default_rng(7)
    sizes = {"actions": config.d_action, "states": config.d_state, "returns": 1}
    factors = {name: (rng.normal(size=(*real.shape[:2], n)) * real).astype(np.float32) for name, n in sizes.items()}

    said = asked(theirs, inputs)
    predictions = {"actions": said.action_preds, "states": said.state_preds, "returns": said.return_preds}
    sum((predictions[name] * torch.from_numpy(factors[name])).sum() for name in sizes).backward()
    gradients = {name: w.grad.numpy() for name, w in theirs.named_parameters() if w.grad is not None}
    gradients["encoder.wpe.weight"] = gradients["encoder.wpe.weight"][:1]
    expected = NUMPY.lib.DecisionTransformer.family.names.ours(gradients)

    ours = TORCH.lib.DecisionTransformer.from_pretrained(tmp_path).eval()
    output = ours(**{name: TORCH.tensor(value) for name, value in inputs.items()})
    sum((getattr(output, name) * torch.from_numpy(factors[name])).sum() for name in sizes).backward()
    found = {name: weight.grad.numpy() for name, weight in ours.named_parameters()}
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert_allclose(gradient, expected[name], rtol=1e-4, atol=2e-5, err_msg=name)

    ours = TENSORFLOW.lib.DecisionTransformer.from_pretrained(tmp_path)
    with tf.GradientTape() as tape:
        output = ours(**{name: TENSORFLOW.tensor(value) for name, value in inputs.items()})
        loss = sum(tf.reduce_sum(getattr(output, name) * factors[name]) for name in sizes)
    variables = ours.trainable_variables
    slopes = tape.gradient(loss, [v.value for v in variables])
    for variable, slope in zip(variables, slopes, strict=True):
        variable.assign(tf.convert_to_tensor(slope))
    found = TENSORFLOW.lib.get_state(ours)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert_allclose(gradient, expected[name], rtol=1e-4, atol=2e-5, err_msg=name)


def test_old_files_with_the_causal_mask_open_too(tmp_path):
    config, inputs = case(0)
    theirs = their_model(config, 3)
    theirs.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    state |= {"encoder.h.0.attn.bias": np.ones((1, 1, 9, 9), np.float32)}
    save_file(state | {"encoder.h.0.attn.masked_bias": np.full(1, -1e4, np.float32)}, tmp_path / "model.safetensors")
    compare(TORCH, TORCH.lib.DecisionTransformer.from_pretrained(tmp_path), theirs, inputs)


def test_what_does_not_fit_is_said(tmp_path):
    config, _ = case(0)
    their_model(config, 0).save_pretrained(tmp_path)
    kind = NUMPY.lib.DecisionTransformer
    with pytest.raises(CheckpointError, match="of the wrong shape: embed_state.weight.*; the checkpoint has d_state="):
        kind.from_pretrained(tmp_path, d_state=config.d_state + 1)
    state = load_file(tmp_path / "model.safetensors")
    lacking = {name: value for name, value in state.items() if not name.startswith("encoder.w")}
    save_file(lacking, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="missing: shift"):
        kind.from_pretrained(tmp_path)
    save_file(state | {"embed_reward.weight": np.ones((3, 1), np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="not a Decision Transformer's: embed_reward.weight"):
        kind.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "model.safetensors").read_bytes()[:500])
    with pytest.raises(CheckpointError):
        kind.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError):
        kind.from_pretrained(tmp_path)


def test_defaults_of_an_absent_key_are_those_of_transformers():
    theirs = transformers.DecisionTransformerConfig().to_dict()
    silent = DecisionConfig.from_hugging_face({"model_type": "decision_transformer"})
    assert silent == DecisionConfig.from_hugging_face(theirs) == DecisionConfig()
    for number in range(6):
        config = case(number)[0]
        again = transformers.DecisionTransformerConfig(**config.to_hugging_face()).to_dict()
        assert DecisionConfig.from_hugging_face(again) == config
