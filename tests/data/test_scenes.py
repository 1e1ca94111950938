"""course_lib.data.scenes: each pixel's object is known, the recipe holds, and cheap classifiers do not solve it."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.data import scenes
from course_lib.data.scenes import COLOURS, KINDS
from course_lib.evaluation.image_baselines import colour_histogram, colour_regression, pixel_regression


@cache
def drawn(n=600, seed=0, **options):
    return scenes.draw(n, np.random.default_rng(seed), **options)


@cache
def plain(named=("red", "blue")):
    """Without what hides the truth."""
    return scenes.draw(200, np.random.default_rng(1), named=named, n_specks=0, noise=0.0)


def test_shapes_types_and_ranges():
    found = drawn(5, size=24, n_objects=2)
    assert found.images.shape == (5, 3, 24, 24) and found.images.dtype == np.float32
    assert found.masks.shape == (5, 2, 24, 24) and found.masks.dtype == bool
    assert found.kinds.shape == found.colours.shape == (5, 2)
    assert 0 <= found.images.min() < 0.2 and 0.8 < found.images.max() <= 1


def test_the_same_seed_gives_the_same_scenes():
    for again, first in zip(drawn(8, 3), scenes.draw(8, np.random.default_rng(3)), strict=True):
        assert_array_equal(again, first)
    assert not np.array_equal(drawn(8, 3).kinds, drawn(8, 4).kinds)


def test_a_mask_holds_the_pixels_of_its_colour():
    """Each channel within the tint of the object's own, 0.1; outside of all masks nothing is so colourful."""
    found = plain()
    colours = np.array(list(COLOURS.values()))[found.colours]  # (N, K, 3)
    off = np.abs(found.images[:, None] - colours[..., None, None]).max(axis=2)  # (N, K, S, S)
    assert off[found.masks].max() <= 0.1001
    assert (off[~found.masks & ~found.masks.any(axis=1, keepdims=True)] > 0.1001).mean() > 0.999
    spread = found.images.max(axis=1) - found.images.min(axis=1)
    nowhere = ~found.masks.any(axis=1)
    assert spread[nowhere].mean() < 0.6 * spread[~nowhere].mean()


def test_specks_and_noise_lie_in_no_mask_or_everywhere():
    still, specks = (scenes.draw(50, np.random.default_rng(1), noise=0.0, n_specks=n) for n in (0, 200))
    changed = (still.images != specks.images).any(axis=1)
    assert_array_equal(specks.masks, still.masks & specks.masks)
    assert 100 < changed.sum(axis=(1, 2)).mean() <= 200
    assert not (changed[:, None] & specks.masks).any()
    noisy = scenes.draw(50, np.random.default_rng(1), n_specks=0, noise=0.05)
    inner = (still.images > 0.2) & (still.images < 0.8)
    assert_allclose((noisy.images - still.images)[inner].std(), 0.05, rtol=0.02)


def test_objects_do_not_touch_and_lie_inside():
    found = plain()
    assert (found.masks.sum(axis=1) <= 1).all()
    assert not found.masks[..., 0].all(axis=-1).any()
    wide = found.masks.copy()
    for axis in (2, 3):
        wide |= np.roll(found.masks, 1, axis) | np.roll(found.masks, -1, axis)
    assert (wide.sum(axis=1) <= 1).mean() > 0.999


@pytest.mark.parametrize("kind", KINDS)
def test_every_shape_has_the_area_1_and_stays_within_reach(kind):
    x, y = np.random.default_rng(0).uniform(-1, 1, size=(2, 400_000))
    there = scenes.inside(kind, x, y)
    assert_allclose(there.mean() * 4, 1, atol=0.02)
    assert np.hypot(x, y)[there].max() <= scenes.REACH + 1e-9
    assert_allclose([x[there].mean(), y[there].mean()], 0, atol=0.01)


def test_the_shapes_are_what_they_are_called():
    """Points that only one of two like shapes has."""
    assert scenes.inside("square", 0.49, 0.49) and not scenes.inside("circle", 0.49, 0.49)
    assert scenes.inside("circle", 0.55, 0.0) and not scenes.inside("square", 0.55, 0.0)
    assert scenes.inside("cross", 0.66, 0.0) and not scenes.inside("cross", 0.4, 0.4)
    assert scenes.inside("cross", 0.0, -0.66)
    corners = [(0, -0.87), (0.75, 0.43), (-0.75, 0.43)]
    assert all(scenes.inside("triangle", *corner) for corner in corners) and not scenes.inside("triangle", 0, 0.5)


def test_neither_the_area_nor_the_place_tells_the_kind():
    found = drawn(3000, n_specks=0, noise=0.0)
    kinds, masks = scenes.kind_of(found, "red"), scenes.mask_of(found, "red")
    areas = masks.sum(axis=(1, 2))
    assert_allclose(np.bincount(kinds) / len(kinds), 0.25, atol=0.04)
    middles = (masks * np.arange(32)).sum(axis=(1, 2)) / areas
    for number in range(len(KINDS)):
        assert abs(areas[kinds == number].mean() - areas.mean()) < 1.0  # of 52, by luck within 0.25
        assert abs(middles[kinds == number].mean() - middles.mean()) < 0.8
        assert abs(areas[kinds == number].std() / areas.std() - 1) < 0.15
    assert 0.04 * 1024 * 0.8 < areas.min() and areas.max() < 0.0625 * 1024 * 1.2


def test_named_colours_and_what_is_asked_of_them():
    found = plain()
    assert (found.colours[:, :2] == [0, 2]).all()
    assert all(len(set(row)) == 3 for row in found.colours)
    assert set(found.colours[:, 2]) == {1, 3, 4, 5}
    for place, colour in enumerate(("red", "blue")):
        assert_array_equal(scenes.kind_of(found, colour), found.kinds[:, place])
        assert_array_equal(scenes.mask_of(found, colour), found.masks[:, place])
    assert_array_equal(scenes.same_kind(found, "red", "blue"), found.kinds[:, 0] == found.kinds[:, 1])
    with pytest.raises(ValueError, match=r"\d+ scenes have nothing cyan; draw them with named=\('cyan',\)"):
        scenes.kind_of(found, "cyan")
    with pytest.raises(ValueError, match="colour must be one of 'red'"):
        scenes.mask_of(found, "mauve")


@pytest.mark.parametrize("same", [None, 0.0, 0.5, 1.0])
def test_how_often_two_objects_are_of_one_kind(same):
    found = drawn(1500, named=("red", "blue"), same=same)
    share = scenes.same_kind(found, "red", "blue").mean()
    assert_allclose(share, 0.25 if same is None else same, atol=0.05)
    assert_allclose(np.bincount(found.kinds[:, 1]) / 1500, 0.25, atol=0.05)
    apart = np.bincount((found.kinds[:, 1] - found.kinds[:, 0]) % 4, minlength=4)[1:] / 1500
    assert_allclose(apart, (1 - share) / 3, atol=0.05)  # any other kind as often


@pytest.mark.parametrize("options, message", [
    ({"n": 0}, "n must be a whole number of 1"),
    ({"size": 15}, "size must be a whole number of 16"),
    ({"n_objects": 0}, "n_objects must be a whole number of 1"),
    ({"n_specks": -1}, "n_specks must be a whole number of 0"),
    ({"noise": -0.1}, "noise is a standard deviation"),
    ({"named": "mauve"}, "a colour of `named` must be one of"),
    ({"named": ("red", "red")}, "must be different colours"),
    ({"named": ("red", "blue"), "n_objects": 1}, "at most n_objects=1"),
    ({"n_objects": 5}, "at most 4"),
    ({"same": 1.5}, "in \\[0, 1\\]; got 1.5"),
    ({"same": 0.5, "n_objects": 1}, "got 0.5, 1 objects"),
])  # fmt: skip
def test_scenes_that_cannot_be_drawn(options, message):
    with pytest.raises(ValueError, match=message):
        scenes.draw(**{"n": 2, "rng": np.random.default_rng(0), **options})


@pytest.mark.parametrize("baseline", [pixel_regression, colour_regression])
def test_cheap_classifiers_are_far_from_solving_it(baseline):
    """Four kinds, so chance is 0.25: 400 scenes to learn from, 400 more to be asked of."""
    found = drawn(800, 5)
    kinds = scenes.kind_of(found, "red")
    model = baseline().fit(found.images[:400], kinds[:400])
    assert (model.predict(found.images[400:]) == kinds[400:]).mean() < 0.4


def test_the_baselines_solve_what_they_can_see():
    """A class by the colour of the scene, and for the pixels by which half is bright, in the last channel."""
    rng = np.random.default_rng(0)
    images, labels = 0.5 + 0.05 * rng.standard_normal((90, 3, 8, 8)), rng.integers(0, 3, size=90)
    coloured, halves = images.copy(), images.copy()
    coloured[np.arange(90), labels] += 0.3
    halves[labels == 1, 2, :, :4] += 0.2
    halves[labels != 1, 2, :, 4:] += 0.2
    for baseline, seen, expected in (
        (colour_regression, coloured, labels), (pixel_regression, halves, labels == 1)
    ):  # fmt: skip
        model = baseline().fit(seen[:60], expected[:60])
        assert (model.predict(seen[60:]) == expected[60:]).mean() > 0.9
    blind = colour_regression().fit(halves[:60], labels[:60] == 1)
    assert (blind.predict(halves[60:]) == (labels[60:] == 1)).mean() < 0.85


def test_a_colour_histogram_by_hand():
    image = np.array([[0.0, 0.49, 0.5, 1.0], [0.0, 0.0, 1.0, 0.2]]).reshape(1, 2, 1, 4)  # two channels, four pixels
    assert_allclose(colour_histogram(image, 2), [[0.5, 0.25, 0, 0.25]])
    for bad in (image[0], image - 1, image + 1):
        with pytest.raises(ValueError, match="lie in 0 ... 1"):
            colour_histogram(bad, 2)
    with pytest.raises(ValueError, match="n_bins must be"):
        colour_histogram(image, 0)
