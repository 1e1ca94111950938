"""Scenes of coloured shapes on a texture, drawn by a recipe, so that every pixel's object is known.

A scene has K objects of different colours. The kind, the area, the turn and the place of each are drawn by themselves,
the places so that no two touch. Asked is the kind of the object of a named colour, or whether two of them are of one
kind. How many pixels of a colour there are says nothing of it: areas and places are drawn alike for all kinds. Edges
are hard, as mixed pixels along them would tell a long outline from a short one.

Then come the difficulties: the texture, a colour with waves; a tint of each object's own; specks of the objects'
colours, strewn over the scene; normal noise.
"""

from typing import NamedTuple

import numpy as np

from course_lib.checks import check_choice, check_count

KINDS = ("circle", "square", "triangle", "cross")
COLOURS = {
    "red": (0.85, 0.15, 0.15),
    "green": (0.15, 0.75, 0.15),
    "blue": (0.15, 0.25, 0.9),
    "yellow": (0.9, 0.85, 0.1),
    "magenta": (0.85, 0.15, 0.85),
    "cyan": (0.1, 0.8, 0.85),
}
AREAS = (0.04, 0.0625)  # of an object, as shares of the scene: the least and the largest
REACH = 2 / 27**0.25  # from the middle of the triangle, whose corners reach farthest, for an area of 1
MAX_OBJECTS = 4  # more would hardly find places


class Scenes(NamedTuple):
    """N scenes of K objects."""

    images: np.ndarray  # float32 (N, 3, size, size): red, green and blue in 0 ... 1
    kinds: np.ndarray  # int64 (N, K), numbers of KINDS
    colours: np.ndarray  # int64 (N, K), numbers of COLOURS
    masks: np.ndarray  # boolean (N, K, size, size): the pixels of each object


def draw(
    n: int,
    rng: np.random.Generator,
    size: int = 32,
    n_objects: int = 3,
    named: tuple[str, ...] = ("red",),
    same: float | None = None,
    n_specks: int = 24,
    noise: float = 0.05,
) -> Scenes:
    """Draw N scenes.

    Parameters
    ----------
    n : how many
    rng : where the luck comes from
    size : pixels of an edge
    n_objects : K
    named : colours that every scene has; the first objects have them, in this order
    same : how often the first two objects are of one kind; None: as it comes, every fourth time
    n_specks : single pixels of the objects' colours; they lie in no mask, even upon an object
    noise : standard deviation of what is added to each number of a pixel

    Raises
    ------
    ValueError : numbers below 1 (K over 4, a size below 16, specks or noise below 0), an unknown colour or one that is
        named twice, more names than objects, a `same` outside [0, 1] or of one object.
    """
    for name, value, least in (("n", n, 1), ("size", size, 16), ("n_objects", n_objects, 1), ("n_specks", n_specks, 0)):
        check_count(name, value, least)
    named = (named,) if isinstance(named, str) else tuple(named)
    for name in named:
        check_choice("a colour of `named`", name, tuple(COLOURS))
    if len(set(named)) < len(named) or not len(named) <= n_objects <= MAX_OBJECTS:
        raise ValueError(
            f"named={named} must be different colours, at most n_objects={n_objects}, and that at most {MAX_OBJECTS}"
        )
    if same is not None and (not 0 <= same <= 1 or n_objects < 2):
        raise ValueError(f"same is how often two objects are of one kind, in [0, 1]; got {same}, {n_objects} objects")
    if not noise >= 0:
        raise ValueError(f"noise is a standard deviation of 0 or more, got {noise}")
    kinds = rng.integers(len(KINDS), size=(n, n_objects))
    if same is not None:
        other = (kinds[:, 0] + rng.integers(1, len(KINDS), size=n)) % len(KINDS)
        kinds[:, 1] = np.where(rng.random(n) < same, kinds[:, 0], other)
    colours = np.stack([_palette(named, n_objects, rng) for _ in range(n)])
    edges = np.sqrt(rng.uniform(*AREAS, size=(n, n_objects))) * size  # (N, K): of squares of these areas
    masks = _masks(kinds, edges, _places(edges, size, rng), rng.uniform(0, 2 * np.pi, size=(n, n_objects)), size)
    images = _textures(n, size, rng)
    tints = np.array(list(COLOURS.values()))[colours] + rng.uniform(-0.1, 0.1, size=(n, n_objects, 3))  # (N, K, 3)
    for k in range(n_objects):
        images = np.where(masks[:, k, None], tints[:, k, :, None, None], images)
    masks = _add_specks(images, masks, tints, n_specks, rng)
    images += noise * rng.standard_normal(images.shape)
    return Scenes(images.clip(0, 1).astype(np.float32), kinds, colours, masks)


def kind_of(scenes: Scenes, colour: str) -> np.ndarray:
    """The kind of the object of a colour in each scene, (N,); ValueError for a colour that some scene has not."""
    return scenes.kinds[np.arange(len(scenes.kinds)), _place_of(scenes, colour)]


def mask_of(scenes: Scenes, colour: str) -> np.ndarray:
    """The pixels of the object of a colour, boolean (N, size, size); ValueError as for `kind_of`."""
    return scenes.masks[np.arange(len(scenes.masks)), _place_of(scenes, colour)]


def same_kind(scenes: Scenes, first: str, second: str) -> np.ndarray:
    """Whether the objects of two colours are of one kind, 1 or 0, (N,); ValueError as for `kind_of`."""
    return (kind_of(scenes, first) == kind_of(scenes, second)).astype(np.int64)


def inside(kind: str, x, y) -> np.ndarray:
    """Whether points lie in a shape of area 1 around the origin; x and y of any one shape.

    The square has edges of 1, the triangle is equilateral, the arms of the cross are a third of it wide.
    """
    check_choice("kind", kind, KINDS)
    if kind == "circle":
        return x**2 + y**2 <= 1 / np.pi
    if kind == "square":
        return np.maximum(abs(x), abs(y)) <= 0.5
    if kind == "triangle":
        slanted = (np.sqrt(3) * abs(x) - y) / 2
        return np.maximum(y, slanted) <= REACH / 2
    long, short = np.maximum(abs(x), abs(y)), np.minimum(abs(x), abs(y))
    half = 1.5 / np.sqrt(5)  # of the cross, of which 5 of 9 squares are filled
    return (long <= half) & (short <= half / 3)


def _place_of(scenes, colour):
    check_choice("colour", colour, tuple(COLOURS))
    there = scenes.colours == list(COLOURS).index(colour)  # (N, K)
    if not there.any(axis=1).all():
        lacking = (~there.any(axis=1)).sum()
        raise ValueError(f"{lacking} scenes have nothing {colour}; draw them with named=({colour!r},)")
    return there.argmax(axis=1)


def _palette(named, n_objects, rng):
    """The colours of one scene: those that are named, then others."""
    first = [list(COLOURS).index(name) for name in named]
    others = [i for i in rng.permutation(len(COLOURS)) if i not in first]
    return np.array([*first, *others][:n_objects])


def _places(edges, size, rng):
    """Middles (N, K, 2) that keep circles of each object's reach inside and apart, whatever its kind."""
    reach, found = REACH * edges, np.empty((*edges.shape, 2))
    waiting = np.arange(len(edges))
    while len(waiting):
        r = reach[waiting][..., None]  # (n, K, 1)
        places = r + (size - 2 * r) * rng.random((*r.shape[:2], 2))
        apart = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)  # (n, K, K)
        fits = apart + 2 * size * np.eye(r.shape[1]) >= r + r.swapaxes(1, 2)
        fits = fits.all(axis=(1, 2))
        found[waiting[fits]], waiting = places[fits], waiting[~fits]
    return found


def _masks(kinds, edges, places, turns, size):
    masks = np.empty((*kinds.shape, size, size), dtype=bool)
    middles = np.arange(size) + 0.5
    for number, kind in enumerate(KINDS):
        at = np.nonzero(kinds == number)
        x, y = (middles - places[at][:, axis, None] for axis in (1, 0))  # (M, size) each
        cos, sin = (f(turns[at])[:, None, None] / edges[at][:, None, None] for f in (np.cos, np.sin))
        x, y = x[:, None, :], y[:, :, None]
        masks[at] = inside(kind, cos * x + sin * y, cos * y - sin * x)
    return masks


def _textures(n, size, rng, n_waves=3):
    """A colour for each scene, with waves of any direction and of 2 to 8 periods a scene, (N, 3, size, size)."""
    x = np.arange(size) / size
    images = np.repeat(np.repeat(rng.uniform(0.3, 0.7, size=(n, 3, 1, 1)), size, 2), size, 3)
    for _ in range(n_waves):
        angles, periods, phases = (rng.uniform(*ends, size=n) for ends in ((0, 2 * np.pi), (2, 8), (0, 2 * np.pi)))
        across, down = (2 * np.pi * periods * f(angles) for f in (np.cos, np.sin))
        waves = np.cos(across[:, None, None] * x + down[:, None, None] * x[:, None] + phases[:, None, None])
        images += rng.uniform(-0.08, 0.08, size=(n, 3, 1, 1)) * waves[:, None]
    return images


def _add_specks(images, masks, tints, n_specks, rng):
    """Put specks into the images in place; the masks without the pixels that they cover."""
    (n, _, size, _), n_objects = images.shape, tints.shape[1]
    rows = np.arange(n)[:, None]
    y, x = rng.integers(size, size=(2, n, n_specks))
    images[rows, :, y, x] = tints[rows, rng.integers(n_objects, size=(n, n_specks))]
    masks = masks.copy()
    masks[rows, :, y, x] = False
    return masks
