"""The masks of each framework: made by it, for it, combined in either order, and none taken for another one."""

import importlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from course_lib import masks
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from tests.support import states
from tests.support.backends import BACKENDS

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


@pytest.mark.parametrize("name", states.BERTS)
def test_a_mask_of_the_shape_of_the_ids_is_refused(backend, rng, name):
    """NumPy's rules put (B, S) in the place of (T, S) when B = T: with another batch it would not have passed."""
    config = BertConfig(vocab_size=12, d_model=4, n_layers=1, n_heads=2, d_ff=5, max_len=6)
    bert, ids = backend.make(name, config), rng.integers(1, 12, size=(4, 4))
    with pytest.raises(ValueError, match=r"(?s)shape of ids, \(4, 4\), .*padding_mask"):
        backend.call(bert, ids, mask=rng.random((4, 4)) < 0.7)
    for shape in ((4, 1, 1, 4), (1, 1, 4, 4), (1, 4)):
        backend.call(bert, ids, mask=rng.random(shape) < 0.7)


@pytest.mark.parametrize("shape, batch", [((5, 5), 5), ((5, 5), 4), ((1, 5), 4), ((2, 5, 5), 2), ((5,), 5)])
def test_a_mask_of_fewer_axes_is_read_from_the_right(backend, rng, shape, batch):
    x = rng.normal(size=(batch, 5, 4))
    mask = rng.random(shape) < 0.7
    encoder = backend.make("Encoder", 1, BlockConfig(4, 2, 8))
    whole = np.broadcast_to(mask, (batch, 2, 5, 5))
    assert_array_equal(
        backend.call(encoder, x, mask=mask).last_hidden, backend.call(encoder, x, mask=whole.copy()).last_hidden
    )
