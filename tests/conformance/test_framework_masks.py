"""The masks of each framework: made by it, for it, combined in either order, and none taken for another one."""

import importlib

import numpy as np
import pytest
from backends import BACKENDS
from numpy.testing import assert_array_equal

from course_lib import masks

IDS = np.array([[4, 2, 7, 9], [0, 3, 7, 7], [7, 7, 7, 7]])
T = IDS.shape[1]
EXPECTED = masks.padding_mask(IDS, 7) & masks.causal_mask(T)
own_masks = pytest.mark.parametrize("backend", BACKENDS, ids=repr)


@own_masks
@pytest.mark.parametrize("padding_first", [True, False])
def test_masks_combine_in_either_order(backend, rng, padding_first):
    lib, ids = backend.lib, backend.tensor(IDS)
    parts = [lib.padding_mask(ids, 7), lib.causal_mask(T)]
    mask = parts[0] & parts[1] if padding_first else parts[1] & parts[0]
    assert isinstance(mask, type(ids))
    assert backend.array(mask).dtype == bool
    assert_array_equal(backend.array(mask), EXPECTED)
    q = backend.tensor(rng.normal(size=(len(IDS), 2, T, 6)))
    assert_array_equal(backend.array(lib.attention(q, q, q, mask).weights) > 0, np.broadcast_to(EXPECTED, (3, 2, T, T)))


@own_masks
def test_causal_mask_is_the_neutral_one(backend):
    for n_queries, n_keys in ((4, None), (1, 1), (2, 5), (1, 6), (0, 3)):
        mask = backend.lib.causal_mask(n_queries, n_keys)
        assert isinstance(mask, type(backend.tensor(IDS)))
        assert_array_equal(backend.array(mask), masks.causal_mask(n_queries, n_keys))


@own_masks
def test_masks_refuse_what_cannot_be_one(backend):
    with pytest.raises(ValueError, match="as many keys as queries, got T=3, S=2"):
        backend.lib.causal_mask(3, 2)
    with pytest.raises(ValueError, match=r"\(B, S\), got \(4,?\)"):
        backend.lib.padding_mask(backend.tensor(IDS[0]))


@own_masks
def test_the_module_has_what_the_package_exports(backend):
    module = importlib.import_module(f"course_lib.{backend.name}.masks")
    assert (module.padding_mask, module.causal_mask) == (backend.lib.padding_mask, backend.lib.causal_mask)


@pytest.mark.parametrize("case, shape, heads", [
    ("padding (B, S), as many sequences as queries", (4, 4), 3),
    ("one place for each query of each sequence, (B, 1)", (4, 1), 3),
    ("a mask (B, T, S), as many sequences as heads", (4, 4, 4), 4),
    ("a mask (B, 1, S), as many sequences as heads", (4, 1, 4), 4),
])  # fmt: skip
def test_a_mask_of_fewer_axes_that_may_mean_two_things_is_refused(backend, rng, case, shape, heads):
    """NumPy's rules put (B, S) in the place of (T, S) when B = T: with another batch it would not have passed."""
    d_model = 2 * heads
    x = rng.normal(size=(4, 4, d_model))
    mask = rng.random(shape) < 0.7
    with pytest.raises(ValueError, match=r"(?s)may be meant for the batch or .*padding_mask"):
        backend.call(backend.make("Encoder", 1, d_model, heads, 8), x, mask=mask)
    with pytest.raises(ValueError, match="(?s)may be meant for the batch or "):
        backend.call(backend.make("Decoder", 1, d_model, heads, 8), x, x, memory_mask=mask)


@pytest.mark.parametrize("shape, batch", [((5, 5), 4), ((1, 5), 4), ((1, 5), 1), ((2, 5, 5), 4), ((5,), 5)])
def test_a_mask_of_fewer_axes_that_means_one_thing_is_taken(backend, rng, shape, batch):
    x = rng.normal(size=(batch, 5, 4))
    mask = rng.random(shape) < 0.7
    encoder = backend.make("Encoder", 1, 4, 2, 8)
    whole = np.broadcast_to(mask, (batch, 2, 5, 5))
    assert_array_equal(
        backend.call(encoder, x, mask=mask).last_hidden, backend.call(encoder, x, mask=whole.copy()).last_hidden
    )
