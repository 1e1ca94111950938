"""The drawings of the live figures that need no model; `python book/draw_live.py` writes them.

Each has its numbers from the library, and says in words what they show.
"""

import math

import numpy as np

from course_lib.lecture.drawing import Diagram
from course_lib.numpy import softmax

KEYS, WIDEST, DRAWS = 8, 512, 64  # as in book/_static/live/figures/scale.js


def normals(seed: int, n: int) -> np.ndarray:
    """n numbers of a standard normal distribution, as `normals` of book/_static/live/figures/numbers.js makes them."""
    n_even = n + n % 2
    state = (seed + np.arange(1, n_even + 1, dtype=np.uint64) * 0x6D2B79F5).astype(np.uint32)
    t = (state ^ (state >> 15)) * (state | np.uint32(1))
    t ^= t + (t ^ (t >> 7)) * (t | np.uint32(61))
    uniform = (t ^ (t >> 14)) / 2.0**32
    radius, angle = np.sqrt(-2 * np.log(1 - uniform[0::2])), 2 * np.pi * uniform[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).ravel()[:n]


def products(seed: int, width: int) -> np.ndarray:
    """Of a random query with each of eight random keys, all of `width` numbers: (8,)."""
    vectors = normals(seed, (KEYS + 1) * WIDEST).reshape(KEYS + 1, WIDEST)[:, :width]
    return vectors[1:] @ vectors[0]


def typical() -> int:
    """The draw whose largest weights, with nothing divided, are nearest to the means of all draws, over all widths."""
    draws = [[softmax(products(seed, 2**i)).max() for i in range(10)] for seed in range(1, DRAWS + 1)]
    return 1 + int(np.abs(draws - np.mean(draws, axis=0)).sum(axis=1).argmin())


def scale() -> Diagram:
    cases = ((4, 1.0, "d = 4, divided by nothing"), (512, 1.0, "d = 512, divided by nothing"),
             (512, math.sqrt(512), "d = 512, divided by √512"))  # fmt: skip
    largest = [
        np.mean([softmax(products(seed, width) / divisor).max() for seed in range(1, DRAWS + 1)])
        for width, divisor, _ in cases
    ]
    d = Diagram(
        500, 3 * 132,
        "The attention weights of a random query over eight random keys, as bars, for three cases. The mean of the "
        f"largest weight over {DRAWS} draws is "
        + ", ".join(f"{value:.2f} for {name}" for value, (_, _, name) in zip(largest, cases, strict=True))
        + ". Shown is the draw that is nearest to the means.",
    )  # fmt: skip
    seed = typical()
    for i, (width, divisor, name) in enumerate(cases):
        top = 132 * i
        d.text(250, top + 16, name, 14, bold=True)
        for j, weight in enumerate(softmax(products(seed, width) / divisor)):
            x, height = 16 + 59 * j, max(66 * weight, 2)
            d.curve(f"M {x + 26} {top + 108} v {-height:.4g}", "query", width=52)
            d.text(x + 26, top + 119, f"{weight:.2f}", 12, muted=True)
    return d


DRAWN = {"scale": scale}
