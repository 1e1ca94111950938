"""course_lib.masks: True = may attend."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from course_lib.masks import causal_mask, padding_mask


def test_causal_mask_lets_a_query_see_itself_and_what_came_before():
    assert_array_equal(causal_mask(3), [[[[True, False, False], [True, True, False], [True, True, True]]]])
    assert causal_mask(3).dtype == bool


def test_causal_mask_with_more_keys_puts_the_queries_last():
    assert_array_equal(causal_mask(2, 4)[0, 0], [[True, True, True, False], [True, True, True, True]])
    assert_array_equal(causal_mask(4)[:, :, 2:], causal_mask(2, 4))


def test_causal_mask_needs_a_key_for_each_query():
    with pytest.raises(ValueError, match="T=3, S=2"):
        causal_mask(3, 2)


@pytest.mark.parametrize("pad_id", [0, 9])
def test_padding_mask_hides_the_padding(pad_id):
    ids = np.array([[4, 2, pad_id], [5, pad_id, pad_id]])
    expected = [[[[True, True, False]]], [[[True, False, False]]]]
    assert_array_equal(padding_mask(ids, pad_id), expected)
    assert padding_mask(ids, pad_id).dtype == bool


def test_padding_mask_pads_with_0_unless_told_otherwise():
    assert_array_equal(padding_mask(np.array([[0, 9]])), [[[[False, True]]]])


@pytest.mark.parametrize("shape", [(3,), (1, 2, 3)], ids=str)
def test_padding_mask_needs_a_batch(shape):
    with pytest.raises(ValueError, match=r"\(B, S\)"):
        padding_mask(np.zeros(shape, dtype=int))


def test_masks_combine():
    both = padding_mask(np.array([[1, 0, 1]])) & causal_mask(3)
    assert_array_equal(both[0, 0], [[True, False, False], [True, False, False], [True, False, True]])
