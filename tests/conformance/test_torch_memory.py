"""Without gradients a layer writes over what nobody keeps, and over nothing that somebody does."""

import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.torch import EncoderLayer, FeedForward

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))


class Operations(TorchDispatchMode):
    """Notes the names of all operations."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


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


def test_the_output_of_the_attention_is_gone_when_the_feed_forward_layer_runs():
    layer, attended, alive = EncoderLayer(BlockConfig(4, 2, 8)).eval(), [], []
    layer.attention.register_forward_hook(lambda module, inputs, output: attended.append(weakref.ref(output.output)))
    layer.feed_forward.register_forward_pre_hook(lambda module, inputs: alive.append(attended[0]() is not None))
    with torch.no_grad():
        layer(X)
    assert alive == [False]
