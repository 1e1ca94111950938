"""course_lib.evaluation.attention_maps: rollout, maps of the class token, and their scores against pixels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.evaluation.attention_maps import class_map, rollout, score_maps

RNG = np.random.default_rng(0)
LAYERS = [RNG.dirichlet(np.ones(5), size=(2, 3, 5)) for _ in range(3)]  # (B, H, T, T) each


def test_rollout_is_the_product_of_the_layers_the_first_on_the_right():
    found = rollout(LAYERS)
    for image in range(2):
        steps = [0.5 * np.eye(5) + 0.5 * layer[image].mean(axis=0) for layer in LAYERS]
        assert_allclose(found[image], steps[2] @ steps[1] @ steps[0])
    assert_allclose(found.sum(axis=-1), 1.0)
    assert_allclose(rollout(LAYERS[:1], residual=0.0), LAYERS[0].mean(axis=1))
    assert_allclose(rollout(LAYERS, residual=1.0), np.broadcast_to(np.eye(5), (2, 5, 5)))
    assert np.abs(rollout(LAYERS, residual=0.2) - found).max() > 1e-2


def test_the_map_of_the_class_token_is_its_row_without_itself():
    weights = RNG.dirichlet(np.ones(7), size=(2, 3, 7))
    found = class_map(weights, (2, 3))
    assert_allclose(found, weights.mean(axis=1)[:, 0, 1:].reshape(2, 2, 3))
    assert_allclose(class_map(weights[:, 1], (2, 3))[1, 1], weights[1, 1, 0, 4:])


def masks_of(*boxes, size=(4, 6)):
    masks = np.zeros((len(boxes), *size), dtype=bool)
    for mask, (rows, columns) in zip(masks, boxes, strict=True):
        mask[rows, columns] = True
    return masks


def test_scores_by_hand():
    """2 x 3 patches of 2 x 2 pixels; the object fills the first patch and half of the one beside it."""
    masks = masks_of((slice(0, 2), slice(0, 3)), (slice(0, 2), slice(0, 3)), (slice(2, 4), slice(4, 6)))
    maps = np.array([[[4, 2, 0], [0, 0, 2]], [[0, 3, 0], [0, 0, 1]], [[1, 1, 1], [1, 1, 1]]])
    score = score_maps(maps, masks)
    assert_allclose(score.mass, [5 / 8, 1.5 / 4, 1 / 6])
    assert_allclose(score.hit, [1, 0.5, 1 / 6])
    assert_allclose(score.area, [6 / 24, 6 / 24, 4 / 24])
    assert_allclose(score_maps(7.5 * maps, masks).mass, score.mass)


def test_an_even_map_has_the_area_in_both_scores_and_a_blind_one_on_average():
    masks = RNG.random((4000, 4, 6)) < 0.3
    even = score_maps(np.ones((4000, 2, 3)), masks)
    assert_allclose(even.mass, even.area)
    assert_allclose(even.hit, even.area)
    blind = score_maps(RNG.random((4000, 2, 3)), masks)
    assert_allclose([blind.mass.mean(), blind.hit.mean()], even.area.mean(), atol=0.02)


def test_a_map_of_the_object_itself_is_right():
    masks = masks_of((slice(0, 2), slice(2, 4)), (slice(2, 4), slice(0, 4)))
    score = score_maps(masks.reshape(2, 2, 2, 3, 2).mean(axis=(2, 4)), masks)
    assert_allclose(score.mass, 1) and assert_allclose(score.hit, 1)
    assert (score.area < 0.4).all()


@pytest.mark.parametrize("maps, masks, error, message", [
    (np.ones((2, 2, 3)), np.ones((2, 4, 6)), TypeError, "masks must be boolean"),
    (np.ones((2, 2, 3)), np.ones((3, 4, 6), bool), ValueError, "do not fit"),
    (np.ones((2, 6)), np.ones((2, 4, 6), bool), ValueError, "do not fit"),
    (np.ones((2, 3, 3)), np.ones((2, 4, 6), bool), ValueError, "3 x 3 patches do not fill 4 x 6 pixels"),
    (np.ones((2, 2, 4)), np.ones((2, 4, 6), bool), ValueError, "2 x 4 patches do not fill 4 x 6 pixels"),
    (-np.ones((2, 2, 3)), np.ones((2, 4, 6), bool), ValueError, "numbers of 0 or more"),
    (np.zeros((2, 2, 3)), np.ones((2, 4, 6), bool), ValueError, "not zeros alone"),
])  # fmt: skip
def test_maps_that_cannot_be_scored(maps, masks, error, message):
    with pytest.raises(error, match=message):
        score_maps(maps, masks)


def test_weights_that_are_none():
    with pytest.raises(ValueError, match="one layer or more; call the model with return_layers=True"):
        rollout([])
    for odd in (LAYERS[0][0], LAYERS[0][..., :4]):
        with pytest.raises(ValueError, match=r"weights must have shape \(B, H, T, T\)"):
            rollout([odd])
    for share in (-0.1, 1.1):
        with pytest.raises(ValueError, match="residual is a share"):
            rollout(LAYERS, share)
    for odd in (LAYERS[0], LAYERS[0][0, 0]):
        with pytest.raises(ValueError, match=r"attention must be to 1 \+ 2 x 3 tokens"):
            class_map(odd, (2, 3))
