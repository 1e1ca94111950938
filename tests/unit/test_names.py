"""course_lib.checkpoints.names: a table of names in both directions, for families other than BERT, too."""

import numpy as np
import pytest

from course_lib.checkpoints.names import Joined, Renames
from course_lib.errors import CheckpointError

T5 = Renames({
    "shared.weight": "embedding.weight",
    "block.{n}.layer.0.SelfAttention.q.weight": "encoder.layers.{n}.attention.q_proj.weight",
    "block.{n}.layer.1.DenseReluDense.wi.{p}": "encoder.layers.{n}.feed_forward.linear1.{p}",
    "block.0.layer.0.SelfAttention.relative_attention_bias.weight": "bias.weight",
    "lm_head.weight": "out_proj.weight",
    "position_ids": None,
}, prefix="encoder_decoder.", heads=("lm_head.",))  # fmt: skip


def test_a_literal_number_is_another_than_that_of_the_layer():
    names = [
        "encoder_decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        "encoder_decoder.block.0.layer.0.SelfAttention.q.weight",
        "encoder_decoder.block.11.layer.1.DenseReluDense.wi.bias",
        "lm_head.weight",
    ]
    state = {name: np.full(1, i) for i, name in enumerate(names)}
    ours = T5.ours(state)
    assert ours == {
        "bias.weight": 0, "encoder.layers.0.attention.q_proj.weight": 1,
        "encoder.layers.11.feed_forward.linear1.bias": 2, "out_proj.weight": 3,
    }  # fmt: skip
    assert T5.theirs(ours, headed=True) == state
    assert list(T5.theirs(ours)) == [name.removeprefix("encoder_decoder.") for name in names]


@pytest.mark.parametrize("name", [
    "block.0.layer.2.SelfAttention.q.weight", "block.0", "block", "shared.weight.more",
    "block.x.layer.0.SelfAttention.q.weight", "block.1.layer.1.DenseReluDense.wi.scale",
    "block.-1.layer.0.SelfAttention.q.weight", "",
])  # fmt: skip
def test_other_names_are_refused(name):
    with pytest.raises(CheckpointError, match="weights that are not a T5's"):
        T5.ours({name: np.zeros(1)}, "T5")
    with pytest.raises(CheckpointError, match="have no Hugging Face name"):
        T5.theirs({name: np.zeros(1)})


def test_what_is_dropped_and_the_old_names_of_a_normalisation():
    assert T5.ours({"position_ids": np.zeros(1)}) == {}
    names = Renames({"norm.{p}": "norm.{p}"})
    assert list(names.ours({"norm.gamma": 0, "norm.beta": 1})) == ["norm.weight", "norm.bias"]


def test_a_name_is_looked_up_by_its_parts_and_not_by_trying_every_pattern(monkeypatch):
    """Two hundred weights in a table of a thousand: as many steps as the names have parts."""
    table = {f"part{i}.layer.{{n}}.{{p}}": f"p{i}.{{n}}.{{p}}" for i in range(1000)}
    names = Renames(table)
    steps = 0

    class Counting(dict):
        def __contains__(self, key):
            nonlocal steps
            steps += 1
            return super().__contains__(key)

    def counting(node):
        return Counting({key: counting(value) for key, value in node.items()}) if isinstance(node, dict) else node

    names._to_ours = counting(names._to_ours)
    assert len(names.ours({f"part{i}.layer.3.bias": i for i in range(200)})) == 200
    assert steps <= 200 * 4 * 2


GPT2 = Renames({
    "h.{n}.attn.c_attn.{p}": Joined(*(f"layers.{{n}}.attention.{x}_proj.{{p}}" for x in "qkv"), transposed=True),
    "h.{n}.mlp.c_fc.{p}": Joined("layers.{n}.feed_forward.linear1.{p}", transposed=True),
    "wte.weight": "embedding.weight",
    "qkv.weight": Joined("q.weight", "k.weight", "v.weight"),
}, prefix="transformer.", heads=("lm_head.",))  # fmt: skip


def test_one_weight_of_theirs_is_several_of_ours_and_transposed():
    """GPT-2's Conv1D computes x W + b with queries, keys and values beside each other."""
    rng = np.random.default_rng(0)
    state = {
        "transformer.wte.weight": rng.normal(size=(9, 4)), "transformer.h.1.mlp.c_fc.weight": np.ones((4, 6)),
        "transformer.h.1.attn.c_attn.weight": rng.normal(size=(4, 12)),
        "transformer.h.1.attn.c_attn.bias": rng.normal(size=12),
        "transformer.qkv.weight": rng.normal(size=(6, 4)),
    }  # fmt: skip
    ours = GPT2.ours(state)
    x = rng.normal(size=(5, 4))
    computed = x @ state["transformer.h.1.attn.c_attn.weight"] + state["transformer.h.1.attn.c_attn.bias"]
    for name, expected in zip("qkv", np.split(computed, 3, axis=1), strict=True):
        weight, bias = (ours[f"layers.1.attention.{name}_proj.{p}"] for p in ("weight", "bias"))
        assert weight.shape == (4, 4)
        np.testing.assert_allclose(x @ weight.T + bias, expected)
    assert ours["layers.1.feed_forward.linear1.weight"].shape == (6, 4)
    np.testing.assert_array_equal(ours["k.weight"], state["transformer.qkv.weight"][2:4])
    back = GPT2.theirs(ours, headed=True)
    assert back.keys() == state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(back[name], value)


def test_what_cannot_be_split_or_joined():
    with pytest.raises(CheckpointError, match=r"qkv.weight \(7, 4\) is no 3 weights of ours below each other"):
        GPT2.ours({"qkv.weight": np.zeros((7, 4))})
    with pytest.raises(CheckpointError, match="qkv.weight would lack k.weight"):
        GPT2.theirs({"q.weight": np.zeros((2, 4)), "v.weight": np.zeros((2, 4))})
    with pytest.raises(CheckpointError, match="two names for one weight: qkv.weight and transformer.qkv.weight"):
        GPT2.ours({"qkv.weight": np.zeros((3, 4)), "transformer.qkv.weight": np.zeros((3, 4))})


def test_axes_in_front_that_theirs_has_and_ours_has_not():
    """As ViT's class token and positions, which stand there for a batch of one."""
    names = Renames({"cls": Joined("token", in_front=2), "pos": Joined("place", in_front=1), "plain": "plain"})
    state = {"cls": np.arange(4.0)[None, None], "pos": np.arange(6.0).reshape(1, 3, 2), "plain": np.ones((1, 2))}
    ours = names.ours(state)
    assert {name: value.shape for name, value in ours.items()} == {"token": (4,), "place": (3, 2), "plain": (1, 2)}
    back = names.theirs(ours)
    assert back.keys() == state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(back[name], value)
    with pytest.raises(CheckpointError, match=r"pos \(2, 3, 2\) is no 1 weights of ours"):
        names.ours({"pos": np.ones((2, 3, 2))})
