"""A layer writes over what nobody keeps, and over nothing that somebody does; a causal model forms no T x T mask."""

import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.transformer import TransformerConfig
from course_lib.torch import Decoder, EncoderLayer, FeedForward, Transformer, attention, fused_attention, padding_mask

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))


class Operations(TorchDispatchMode):
    """Notes the names of all operations, and the shapes of what they give."""

    def __init__(self):
        super().__init__()
        self.names, self.shapes = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        out = func(*args, **(kwargs or {}))
        self.shapes += [tuple(part.shape) for part in tree_leaves(out) if isinstance(part, torch.Tensor)]
        return out

    def squares(self, n):
        """How many tensors had n x n numbers for each of something."""
        return sum(shape[-2:] == (n, n) for shape in self.shapes)


def same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_needs_no_memory_of_its_own_without_gradients(activation):
    layer = FeedForward(4, 4, activation)
    expected = layer(X)
    with torch.no_grad(), Operations() as seen:
        same(layer(X), expected.detach())
    assert f"{activation.removesuffix('_new')}_" in seen.names


def test_what_a_gradient_needs_is_not_overwritten():
    layer = FeedForward(4, 4, "gelu")
    with Operations() as seen:
        layer(X).sum().backward()
    assert "gelu_" not in seen.names


@pytest.mark.parametrize("everywhere", [False, True])
def test_what_a_hook_has_seen_is_not_overwritten(everywhere):
    layer, kept = FeedForward(4, 4, "gelu"), []

    def hook(module, inputs, output):
        if module is layer.linear1:
            kept.append(output)

    register = nn.modules.module.register_module_forward_hook if everywhere else layer.linear1.register_forward_hook
    handle = register(hook)
    with torch.no_grad():
        layer(X)
        handle.remove()
        same(kept[0], layer.linear1(X))


def test_another_module_and_another_activation_may_stand_there():
    layer, x = FeedForward(4, 4, "gelu"), X.clone()
    layer.linear1 = nn.Identity()
    with torch.no_grad():
        layer(x)
        same(x, X)  # which the module returned
        layer.linear1, layer.activation = nn.Linear(4, 4), torch.tanh
        same(layer(X), layer.linear2(torch.tanh(layer.linear1(X))))


def test_a_forward_put_in_the_place_of_a_layers_own_may_keep_what_it_returns():
    layer = FeedForward(4, 4, "gelu")
    kept = layer.linear1(X).detach()
    layer.linear1.forward = lambda x: kept
    with torch.no_grad():
        expected = kept.clone()
        layer(X)
        same(kept, expected)


def test_the_output_of_the_attention_is_gone_when_the_feed_forward_layer_runs():
    layer, attended, alive = EncoderLayer(BlockConfig(4, 2, 8)).eval(), [], []
    layer.attention.register_forward_hook(lambda module, inputs, output: attended.append(weakref.ref(output.output)))
    layer.feed_forward.register_forward_pre_hook(lambda module, inputs: alive.append(attended[0]() is not None))
    with torch.no_grad():
        layer(X)
    assert alive == [False]


T = 37  # of nothing else, so that what is T x T is a mask or scores
IDS = 1 + torch.randint(8, (2, T), generator=torch.Generator().manual_seed(0))
PADDED = torch.where(torch.arange(T) < torch.tensor([[T], [T - 5]]), IDS, 0)


@pytest.mark.parametrize("way", ["whole", "steps"])
def test_a_causal_transformer_forms_no_square_of_its_length(way):
    """Neither a mask nor scores; those of a batch with padding are formed, and of the formula."""
    config = TransformerConfig(9, 9, 8, 2, 2, 12, T, 0.0)
    torch.manual_seed(0)
    model, formula = Transformer(config, fused_attention).eval(), Transformer(config, attention).eval()
    formula.load_state_dict(model.state_dict())

    def read(model, ids):
        if way == "whole":
            return model(IDS[:, :3], ids).logits
        return model.step(ids, model.start(model.encode(IDS[:, :3])))[0]

    for ids, n in ((IDS, 0), (PADDED, 1)):
        with torch.no_grad(), Operations() as seen:
            found = read(model, ids)
        torch.testing.assert_close(found, read(formula, ids))
        assert (seen.squares(T) > 0) == n
    with Operations() as seen:
        read(formula, IDS)
    assert seen.squares(T) > 0


def test_a_decoder_alone_forms_no_square_of_its_length():
    """As GPT uses it, with gradients: the padding mask of a batch without padding is no reason for one."""
    config = BlockConfig(8, 2, 12)
    torch.manual_seed(0)
    decoder, x = Decoder(2, config, fused_attention, cross_attention=False).eval(), torch.randn(2, T, 8)
    formula = Decoder(2, config, attention, cross_attention=False).eval()
    formula.load_state_dict(decoder.state_dict())
    for mask in (None, padding_mask(IDS)):
        with Operations() as seen:
            found = decoder(x, mask=mask, causal=True).last_hidden
            found.sum().backward()
        assert seen.squares(T) == 0
        torch.testing.assert_close(found, formula(x, causal=True).last_hidden)
    with Operations() as seen:
        found = decoder(x, mask=padding_mask(PADDED), causal=True).last_hidden
    assert seen.squares(T) > 0
    torch.testing.assert_close(found, formula(x, mask=padding_mask(PADDED), causal=True).last_hidden)
