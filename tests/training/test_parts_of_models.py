"""Frozen parts stand still, and each layer learns at its share of the rate, alike in both frameworks."""

import importlib

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.training.weight_names import matching, scales_of
from tests.support import tasks, translators

NAMES = [
    "bert.embeddings.token.weight", "bert.embeddings.norm.bias", "bert.encoder.layers.0.norm1.weight",
    "bert.encoder.layers.1.norm1.weight", "bert.encoder.layers.10.norm1.weight", "bert.encoder.norm.weight",
    "bert.pooler.bias", "classifier.weight",
]  # fmt: skip


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def module(library, name):
    return importlib.import_module(f"course_lib.{library}.training.{name}")


def moved(library, model, optimizer=None, rate=1e-3, steps=1):
    """How far each weight went in some updates."""
    before = tasks.LIBRARIES[library].get_state(model)
    loop, objective = module(library, "loop"), tasks.objective(library, "classification")
    loop.train(model, tasks.batches("classification"), objective, rate=rate, optimizer=optimizer, steps=steps,
               progress=False)  # fmt: skip
    after = tasks.LIBRARIES[library].get_state(model)
    return {name: after[name] - value for name, value in before.items()}


def test_the_names_of_parts():
    assert matching(NAMES, "bert.embeddings") == NAMES[:2]
    assert matching(NAMES, ["classifier", "bert.encoder.layers.1"]) == [NAMES[3], NAMES[7]]
    assert matching(NAMES, NAMES[6]) == [NAMES[6]]
    assert matching(NAMES, "") == NAMES
    with pytest.raises(ValueError, match="no part 'bert.layers'; it has bert.embeddings.token, bert.embeddings.norm, "):
        matching(NAMES, "bert.layers")
    with pytest.raises(TypeError, match="a part is the name of weights.*got int"):
        matching(NAMES, [3])


def test_each_layer_learns_more_slowly_than_the_one_above():
    assert_allclose(scales_of(NAMES, 0.5), [2.0**-12, 2.0**-12, 2.0**-11, 2.0**-10, 0.5, 1, 1, 1])
    assert scales_of(NAMES) == [1.0] * 8
    stacks = ["source_embedding.weight", "encoder.layers.0.a", "encoder.layers.1.a", "decoder.layers.0.a", "norm.a"]
    assert_allclose(scales_of(stacks, 0.5), [0.125, 0.25, 0.5, 0.5, 1])
    learned = ["token.weight", "source_position.table", *stacks[1:4], "target_position.table", "head.weight"]
    assert_allclose(scales_of(learned, 0.5), [0.125, 0.125, 0.25, 0.5, 0.5, 0.125, 1])
    heads = ["token.w", "layers.0.w", "position_head.w", "composition.w", "my_embeddings.w", "weights[7].positions"]
    assert_allclose(scales_of(heads, 0.5), [0.25, 0.5, 1, 1, 0.25, 0.25])
    for bad in (0, -1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"layer_decay must lie in \(0, 1\]"):
            scales_of(NAMES, bad)
    with pytest.raises(ValueError, match='needs layers, and no weight of this model has "layers.0."'):
        scales_of(["a.weight"], 0.9)


def test_the_first_update_shows_the_rates(library):
    """Adam's first one is as long as the rate wherever the gradient is not tiny."""
    model = tasks.build(library, "classification", tasks.DEEP)
    optimizer = module(library, "optimizers").adamw(model, weight_decay=0.0, layer_decay=0.5)
    steps = moved(library, model, optimizer)
    for part, scale in (("embeddings.position", 0.125), ("layers.0.", 0.25), ("layers.1.", 0.5), ("classifier", 1.0)):
        of_part = [abs(step).max() for name, step in steps.items() if part in name and "k_proj.bias" not in name]
        assert_allclose(of_part, 1e-3 * scale, rtol=0.02, err_msg=part)


def test_decay_is_the_rates_share_of_each_matrix(library):
    found = []
    for decay in (0.0, 1.0):
        model = tasks.build(library, "classification", tasks.DEEP)
        state = tasks.LIBRARIES[library].get_state(model)
        optimizer = module(library, "optimizers").adamw(model, weight_decay=decay, layer_decay=0.5)
        found.append(moved(library, model, optimizer, rate=1e-2))
    for name, scale in (("classifier.weight", 1), ("bert.encoder.layers.0.feed_forward.linear1.weight", 0.25)):
        assert_allclose(found[1][name] - found[0][name], -1e-2 * scale * state[name], rtol=1e-2, atol=1e-6)
    for name, value in state.items():
        if value.ndim == 1:
            assert_array_equal(found[0][name], found[1][name], err_msg=name)


def test_frozen_parts_stand_still(library):
    model = tasks.build(library, "classification", tasks.DEEP)
    freezing, optimizers = module(library, "freezing"), module(library, "optimizers")
    frozen = freezing.freeze(model, ["bert.embeddings", "bert.encoder.layers.0"])
    assert len(frozen) == 5 + 16 and set(frozen).isdisjoint(freezing.trained(model))
    steps = moved(library, model, optimizers.adamw(model, weight_decay=1.0, layer_decay=0.9), steps=3)
    for name, step in steps.items():
        assert (abs(step).max() == 0) == (name in frozen), name
    assert freezing.unfreeze(model, "bert.embeddings") == frozen[:5]
    steps = moved(library, model, optimizers.adamw(model))
    assert all((abs(step).max() == 0) == (name in frozen[5:]) for name, step in steps.items())
    assert freezing.unfreeze(model) == list(steps)
    assert all(abs(step).max() > 0 for step in moved(library, model).values())


def test_frozen_after_the_optimizer_was_made(library):
    model = tasks.build(library, "classification")
    optimizer = module(library, "optimizers").adamw(model, weight_decay=1.0)
    frozen = module(library, "freezing").freeze(model, "bert.encoder")
    steps = moved(library, model, optimizer, steps=2)
    assert all((abs(step).max() == 0) == (name in frozen) for name, step in steps.items())


def test_all_frozen_is_no_training(library):
    model = tasks.build(library, "classification")
    module(library, "freezing").freeze(model, "")
    with pytest.raises(ValueError, match="all parameters are frozen"):
        moved(library, model)
    with pytest.raises(ValueError, match="the model has no part 'head'"):
        module(library, "freezing").freeze(model, "head")


def test_what_makes_no_adamw(library):
    model, adamw = tasks.build(library, "classification"), module(library, "optimizers").adamw
    with pytest.raises(ValueError, match="weight_decay must be a number of 0 or more"):
        adamw(model, weight_decay=-1)
    with pytest.raises(ValueError, match=r"layer_decay must lie in \(0, 1\]"):
        adamw(model, layer_decay=2)
    with pytest.raises(ValueError, match="layer_decay needs layers"):
        adamw(tasks.build(library, "next_token"), layer_decay=0.5)


def test_keras_saves_the_shares_of_the_rate():
    optimizer = module("tensorflow", "optimizers").adamw(tasks.build("tensorflow", "classification"), layer_decay=0.5)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(again, type(optimizer))
    assert list(again.scales) == list(optimizer.scales) and list(again.decays) == list(optimizer.decays)
    assert again.epsilon == optimizer.epsilon == 1e-8


def test_a_translators_stacks_have_their_own_heights():
    names = list(translators.LIBRARIES["torch"].get_state(tasks.build("torch", "translation")))
    scales = dict(zip(names, scales_of(names, 0.5), strict=True))
    assert {scales[name] for name in names if "layers.0" in name} == {0.5}
    assert {scales[name] for name in names if "embedding" in name} == {0.25}
    assert np.max(list(scales.values())) <= 1.0


def test_a_lora_learns_and_its_training_is_not_saved(library, tmp_path):
    """What would be saved is the sum of each matrix and its LoRA: AdamW's averages of the two would fit nothing."""
    model = tasks.build(library, "classification")
    layers = importlib.import_module(f"course_lib.{library}.lora").add_lora(model, rank=2, also=("classifier",))
    optimizer = module(library, "optimizers").adamw(model, layer_decay=0.9)
    with pytest.raises(ValueError, match="lora_.* could not be trained on from there; train without a checkpoint"):
        tasks.train(library, "classification", model, steps=1, optimizer=optimizer, checkpoint=tmp_path)
    steps = moved(library, model, optimizer, steps=3)
    changed = {name for name, step in steps.items() if abs(step).max() > 0}
    assert changed == {f"{layer}.weight" for layer in layers} | {"classifier.weight", "classifier.bias"}
