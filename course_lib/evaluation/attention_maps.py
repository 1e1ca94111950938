"""How much of a Vision Transformer's attention lies on an object whose pixels are known.

A map has a number of 0 or more for each patch, (B, rows, columns), which is spread evenly over the patch's pixels. A
mask says True or False of each pixel, (B, height, width). An even map has the object's share of the area in both.
Maps of other images, `score_maps(maps, np.roll(masks, 1, axis=0))`, have what a habit brings, such as to look at the
middle, where objects are more often: only what a map has beyond that, it knows of its own object.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class MapScore(NamedTuple):
    """Of B maps, one number each: a mean over images is the score, and `bootstrap` of them its interval."""

    mass: np.ndarray  # (B,): the share of the attention that lies on the object
    hit: np.ndarray  # (B,): the chance that a pixel of the patch with most attention is the object's
    area: np.ndarray  # (B,): the object's share of the image, what an even map reaches in both


def rollout(weights: Sequence, residual: float = 0.5) -> np.ndarray:
    """How much of each input token there is in each token of the last layer, by attention alone.

        R_0 = 1,    R_l = (r 1 + (1 - r) A_l) R_(l-1)

    A_l is the mean of the heads of layer l, and r the share that goes past it on the residual, 0.5 in the paper
    (Abnar and Zuidema 2020, section 3). The feed-forward layers, the values and the normalisations have no part in it.

    Parameters
    ----------
    weights : of each layer, the first first, shape (B, H, T, T)
    residual : r, in [0, 1]; 0 leaves the residuals out

    Returns
    -------
    Shape (B, T, T): a row for each token of the last layer, of sum 1.

    Raises
    ------
    ValueError : no layer, other axes, or a share outside [0, 1].
    """
    if not 0 <= residual <= 1:
        raise ValueError(f"residual is a share and must lie in [0, 1], got {residual}")
    if len(weights) == 0:
        raise ValueError("weights must be those of one layer or more; call the model with return_layers=True")
    found = None
    for layer in weights:
        means = _checked(layer).mean(axis=1)  # (B, T, T)
        step = residual * np.eye(means.shape[-1]) + (1 - residual) * means
        found = step if found is None else step @ found
    return found


def class_map(attention, grid: tuple[int, int]) -> np.ndarray:
    """What the class token, the first one, has of each patch: (B, T, T) -> (B, rows, columns), without its own share.

    Parameters
    ----------
    attention : of one layer (B, H, T, T), of which the mean of the heads is taken, or (B, T, T), such as a `rollout`
    grid : (rows, columns) of patches, as `ViTConfig.grid`

    Raises
    ------
    ValueError : not 1 + rows columns tokens.
    """
    attention = np.asarray(attention, dtype=np.float64)
    if attention.ndim == 4:
        attention = attention.mean(axis=1)
    if attention.ndim != 3 or attention.shape[2] != 1 + grid[0] * grid[1]:
        raise ValueError(f"attention must be to 1 + {grid[0]} x {grid[1]} tokens, got {attention.shape}")
    return attention[:, 0, 1:].reshape(-1, *grid)


def score_maps(maps, masks) -> MapScore:
    """Compare maps of patches to the pixels of an object, by mass and by the pointing game (Zhang et al. 2016).

    Parameters
    ----------
    maps : numbers of 0 or more, shape (B, rows, columns), not all 0 in any of them
    masks : boolean, shape (B, height, width), True at the object; rows divides height, and columns width

    Raises
    ------
    ValueError : other shapes, negative numbers, or a map of zeros.
    TypeError : masks that are not boolean.
    """
    maps, masks = np.asarray(maps, dtype=np.float64), np.asarray(masks)
    if masks.dtype != bool:
        raise TypeError(f"masks must be boolean, True at the object, got {masks.dtype}")
    if maps.ndim != 3 or masks.ndim != 3 or len(maps) != len(masks):
        raise ValueError(f"maps (B, rows, columns) do not fit masks (B, height, width): {maps.shape}, {masks.shape}")
    (rows, columns), (height, width) = maps.shape[1:], masks.shape[1:]
    if height % rows or width % columns:
        raise ValueError(f"{rows} x {columns} patches do not fill {height} x {width} pixels")
    if not (maps >= 0).all() or not maps.any(axis=(1, 2)).all():
        raise ValueError("a map must hold numbers of 0 or more, and not zeros alone")
    blocks = masks.reshape(-1, rows, height // rows, columns, width // columns)
    cover = blocks.mean(axis=(2, 4))  # (B, rows, columns): the share of each patch that is the object's
    most = maps == maps.max(axis=(1, 2), keepdims=True)  # several where they are equal: any may be pointed at
    mass = (maps * cover).sum(axis=(1, 2)) / maps.sum(axis=(1, 2))
    return MapScore(mass, (most * cover).sum(axis=(1, 2)) / most.sum(axis=(1, 2)), cover.mean(axis=(1, 2)))


def _checked(weights) -> np.ndarray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 4 or weights.shape[2] != weights.shape[3]:
        raise ValueError(f"weights must have shape (B, H, T, T), got {weights.shape}")
    return weights
