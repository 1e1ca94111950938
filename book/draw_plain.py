"""The drawings of the live figures that need no model; `python book/draw_live.py` writes them.

Each has its numbers from the library, and says in words what they show.
"""

import math

import numpy as np

from course_lib.lecture.drawing import Diagram
from course_lib.masks import causal_mask, padding_mask
from course_lib.models.position_tables import sinusoidal_table
from course_lib.numpy import attention, softmax

KEYS, WIDEST, DRAWS = 8, 512, 256  # as in book/_static/live/figures/scale.js


def uniforms(seed: int, n: int) -> np.ndarray:
    """n numbers of 0 ... 1, as `uniforms` of book/_static/live/figures/numbers.js makes them."""
    state = (seed + np.arange(1, n + 1, dtype=np.uint64) * 0x6D2B79F5).astype(np.uint32)
    t = (state ^ (state >> 15)) * (state | np.uint32(1))
    t ^= t + (t ^ (t >> 7)) * (t | np.uint32(61))
    return (t ^ (t >> 14)) / 2.0**32


def normals_from(uniform: np.ndarray) -> np.ndarray:
    """As many numbers of a standard normal distribution, an even number, as `normalsFrom` there makes them."""
    radius, angle = np.sqrt(-2 * np.log(1 - uniform[0::2])), 2 * np.pi * uniform[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).ravel()


def normals(seed: int, n: int) -> np.ndarray:
    """n numbers of a standard normal distribution, as `normals` there makes them."""
    return normals_from(uniforms(seed, n + n % 2))[:n]


def products(seed: int, width: int) -> np.ndarray:
    """Of a random query with each of eight random keys, all of `width` numbers: (8,)."""
    vectors = normals(seed, (KEYS + 1) * WIDEST).reshape(KEYS + 1, WIDEST)[:, :width]
    return vectors[1:] @ vectors[0]


def typical() -> int:
    """The draw whose largest weights, nothing divided, are nearest to the medians of all draws, over all widths."""
    draws = [[softmax(products(seed, 2**i)).max() for i in range(10)] for seed in range(1, DRAWS + 1)]
    return 1 + int(np.abs(draws - np.median(draws, axis=0)).sum(axis=1).argmin())


def scale() -> Diagram:
    cases = ((4, 1.0, "d_k_ = 4, divided by nothing"), (512, 1.0, "d_k_ = 512, divided by nothing"),
             (512, math.sqrt(512), "d_k_ = 512, divided by √512"))  # fmt: skip
    largest = [
        np.mean([softmax(products(seed, width) / divisor).max() for seed in range(1, DRAWS + 1)])
        for width, divisor, _ in cases
    ]
    d = Diagram(
        500, 3 * 132,
        "The attention weights of a random query over eight random keys, as bars, for three cases. The mean of the "
        f"largest weight over {DRAWS} draws is "
        + ", ".join(f"{value:.2f} for {c[2]}" for value, c in zip(largest, cases, strict=True)).replace("_k_", "ₖ")
        + ". Shown is the draw that is nearest to the medians.",
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


# of the words "it" and "cup": the numbers that the matrices of the lecture's example give
STEPS = {"query": [[2, 2], [0, 0]], "key": [[0, 0], [1, 1]], "value": [[0, 0], [1, 1]]}


def steps() -> Diagram:
    words, (query, key, value) = ("it", "cup"), STEPS.values()
    q, k, v = (np.array(numbers, dtype=float) for numbers in (query, key, value))
    output, weights = attention(q, k, v)
    scaled = q @ k.T / math.sqrt(2)
    takes = " and ".join(f"{weight:.2f} from {word}" for weight, word in zip(weights[0], words, strict=True))
    d = Diagram(
        460, 372,
        f"Attention of the word it, step by step. Its query {tuple(query[0])} is multiplied with the keys of it, "
        f"{tuple(key[0])}, and cup, {tuple(key[1])}. The products are divided by the root of 2, exponentiated, and "
        f"divided by their sum. It takes {takes}, and becomes ({output[0][0]:.2f}, {output[0][1]:.2f}).",
    )  # fmt: skip
    d.box(160, 6, 140, 34, f"query of it {tuple(query[0])}", colour="query")
    for s, word in enumerate(words):
        x = 110 + 240 * s
        d.arrow((230, 40), (x, 66), colour="query")
        d.box(x - 85, 68, 170, 34, f"key of {word} {tuple(key[s])}", colour="key")
        products = " + ".join(f"{a} · {b}" for a, b in zip(query[0], key[s], strict=True))
        lines = (f"{products} = {q[0] @ k[s]:g}", f"divided by √2: {scaled[0, s]:.2f}",
                 f"exponential: {math.exp(scaled[0, s]):.2f}",
                 f"divided by {np.exp(scaled[0]).sum():.2f}: {weights[0, s]:.2f}")  # fmt: skip
        for i, line in enumerate(lines):
            d.text(x, 124 + 26 * i, line, 14, bold=i == 3)
        d.arrow((x, 216), (x, 238))
        d.box(x - 85, 240, 170, 34, f"value of {word} {tuple(value[s])}", colour="value")
        d.arrow((x, 274), (230 + 60 * (2 * s - 1), 306), colour="value", width=0.8 + 4 * weights[0, s])
    mixed = " + ".join(f"{weight:.2f} · {tuple(numbers)}" for weight, numbers in zip(weights[0], value, strict=True))
    d.box(60, 308, 340, 52, "", colour="out")
    d.text(230, 324, mixed, 14)
    d.text(230, 345, f"it becomes ({output[0][0]:.2f}, {output[0][1]:.2f})", 14, bold=True)
    return d


MASKED = (("she", "sees", "it", "[PAD]", "[PAD]"), ("[PAD]", "[PAD]", "she", "sees", "it"))
LONGEST = 6  # words, as in book/_static/live/figures/masks.js


def masked(tokens: tuple[str, ...], kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Which keys each token may attend to under "none", "padding", "causal" or "both", and its weights: (T, T) each."""
    n = len(tokens)
    ids = np.array([[token != "[PAD]" for token in tokens]], dtype=int)
    padding, causal = padding_mask(ids)[0, 0], causal_mask(n)[0, 0]
    mask = np.ones((n, n), dtype=bool)
    mask &= padding if kind in ("padding", "both") else True
    mask &= causal if kind in ("causal", "both") else True
    scores = normals(1, LONGEST**2).reshape(LONGEST, LONGEST)[:n, :n]
    return mask, attention(scores, np.eye(n), np.eye(n), mask, scale=1.0).weights


def masks() -> Diagram:
    blind = 1 + np.flatnonzero(~masked(MASKED[1], "both")[0].any(axis=1))
    assert not masked(MASKED[0], "causal")[1][:3, 3:].any(), "the description says so"
    d = Diagram(
        512, 456,
        "Attention weights of the tokens she, sees, it and two of padding under three masks. Rows are queries, columns "
        "keys, a cross is hidden. Where padding stands on the right, the causal mask alone keeps every word from it. "
        f"Where it stands on the left, both masks leave nothing to positions {blind[0]} and {blind[1]}.",
    )  # fmt: skip
    for row, tokens in enumerate(MASKED):
        top = 228 * row
        for column, kind in enumerate(("padding", "causal", "both")):
            mask, weights = masked(tokens, kind)
            shown = [
                [w if may else None for w, may in zip(*pair, strict=True)] for pair in zip(weights, mask, strict=True)
            ]
            left = 56 + 154 * column
            table = d.cells(left, top + 34, shown, 28, "key", tokens if column == 0 else (), numbers=True)
            d.text(table.top[0], top + 18, "keys →", 14, muted=True)
            d.text(table.top[0], top + 192, kind, bold=True)
        d.text(4, top + 18, "queries ↓", 14, anchor="start", muted=True)
    return d


def clocks() -> Diagram:
    pairs = ((5, 8), (25, 28), (5, 6))
    table = sinusoidal_table(101, 16)
    products = [float(table[p] @ table[s]) for p, s in pairs]
    assert abs(products[0] - products[1]) < 1e-9, "the description says so"
    d = Diagram(
        500, 3 * 112,
        "Two positions as clocks, blue and orange hands, with the cosine of the angle between them under each of "
        + "eight pairs of features. The cosines add up to the dot product: "
        + ", ".join(f"{value:.2f} for positions {p} and {s}" for value, (p, s) in zip(products, pairs, strict=True))
        + ". Of two positions that move on together it stays the same.",
    )  # fmt: skip
    for row, ((p, s), value) in enumerate(zip(pairs, products, strict=True)):
        y = 112 * row + 58
        d.text(250, y - 42, f"positions {p} and {s}: dot product {value:.2f}", 14, bold=True)
        for i in range(8):
            x, (sines, cosines) = 40 + 60 * i, (table[[p, s], 2 * i], table[[p, s], 2 * i + 1])
            d.circle(x, y, 25)
            for colour, length, sine, cosine in zip(("query", "key"), (18, 23), sines, cosines, strict=True):
                d.curve(f"M {x} {y} L {x + length * sine:.4g} {y - length * cosine:.4g}", colour, width=2.4)
            d.text(x, y + 38, f"{sines.prod() + cosines.prod():.2f}".replace("-", "−"), 12, muted=True)
    return d


DRAWN = {"scale": scale, "steps": steps, "masks": masks, "clocks": clocks}
