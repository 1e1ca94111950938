"""The drawing of the soft dictionary that learns in the page, whose numbers course_lib computes here.

`python book/draw_live.py` writes it. The task is that of `notebooks/experiments/score_scale.py`; the random numbers are
those of the page (`book/_static/live/figures/dictionary.js`), so that both train the same heads on the same sets.
"""

import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from course_lib.lecture.drawing import Diagram
from course_lib.torch import attention

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from draw_plain import normals, normals_from, uniforms

from notebooks.experiments.score_scale import N_KEYS, N_LABELS, NOISE, STEPS, D

BATCH, NEW, NEW_SEED, DATA_SEED = 32, 200, 99, 1000  # as in dictionary.js
CASES = ((True, 1.0), (False, 0.1))  # of a head of 256: whether its scores are divided, and the rate
# not divided at rate 1, a rounding grows until it decides answers: no two machines would draw the same curve


class Sets(NamedTuple):
    """Sets of the dictionary."""

    queries: torch.Tensor  # (n, 1, D)
    keys: torch.Tensor  # (n, N_KEYS, D)
    values: torch.Tensor  # (n, N_KEYS, N_LABELS): the labels, one-hot
    right: torch.Tensor  # (n,): the label of the key that each query is about


def batches(seed: int, n: int, count: int) -> list[Sets]:
    """`count` times n sets, as `setsOf` of dictionary.js makes them one after the other."""
    per_batch = n * (N_KEYS * D + N_KEYS + 1 + D)
    found = []
    for numbers in uniforms(seed, count * per_batch).reshape(count, per_batch):
        keys, labels, asked, noise = np.split(numbers, np.cumsum([n * N_KEYS * D, n * N_KEYS, n]))
        keys = normals_from(keys).reshape(n, N_KEYS, D)
        labels, asked = (N_LABELS * labels.reshape(n, N_KEYS)).astype(int), (N_KEYS * asked).astype(int)
        queries = keys[np.arange(n), asked] + NOISE * normals_from(noise).reshape(n, D)
        arrays = queries[:, None], keys, np.eye(N_LABELS)[labels], labels[np.arange(n), asked]
        found.append(Sets(*map(torch.tensor, arrays)))
    return found


def learn(size: int, divided: bool, rate: float, small: bool = False, seed: int = 1, steps: int = STEPS):
    """Train a head: the losses of all steps, and before the first and after each the share of new sets that is right.

    Parameters
    ----------
    size, divided, rate, seed : of the head, whether its scores are divided by its root, of learning, of the numbers
    small : whether the first weights are divided by the fourth root of the size
    """
    first = normals(seed, 2 * D * size).reshape(2, D, size) / math.sqrt(D) / (size**0.25 if small else 1)
    w_q, w_k = (torch.tensor(w, requires_grad=True) for w in first)
    optimiser = torch.optim.SGD([w_q, w_k], lr=rate)
    scale = 1 / math.sqrt(size) if divided else 1.0
    (new,) = batches(NEW_SEED, NEW, 1)

    def answer(sets):
        return attention(sets.queries @ w_q, sets.keys @ w_k, sets.values, scale=scale).output[:, 0]

    def share():
        with torch.no_grad():
            return (answer(new).argmax(dim=-1) == new.right).double().mean().item()

    losses, shares = [], [share()]
    for sets in batches(DATA_SEED + seed, BATCH, steps):
        loss = F.nll_loss(torch.log(0.99 * answer(sets) + 0.01 / N_LABELS), sets.right)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        shares.append(share())
    return losses, shares


def guessing() -> float:
    """How often the most frequent label of a new set is right."""
    (new,) = batches(NEW_SEED, NEW, 1)
    return (new.values.sum(dim=1).argmax(dim=-1) == new.right).double().mean().item()


def dictionary() -> Diagram:
    curves = [learn(256, divided, rate)[1] for divided, rate in CASES]
    kinds = [f"{'divided by 16' if divided else 'not divided'}, rate {rate:g}" for divided, rate in CASES]
    guess = guessing()
    assert max(learn(256, False, 1.0)[1]) < guess + 0.05, "the drawing says so"
    ends = " and ".join(f"{shares[-1]:.3f} {kind}" for shares, kind in zip(curves, kinds, strict=True))
    d = Diagram(
        500, 268,
        f"The share of {NEW} new sets that a head of 256 answers rightly, over {STEPS} steps of training. At the end "
        f"it is {ends}. Not divided, at rate 1, it gets no further than to guess the most frequent label, which is "
        f"right in {guess:.3f}.",
    )  # fmt: skip
    left, right, top, bottom = 52, 490, 14, 186

    def at(step, share):
        return f"{left + (right - left) * step / STEPS:.4g} {bottom - (bottom - top) * share:.4g}"

    d.curve(f"M {at(0, 1)} L {at(0, 0)} L {at(STEPS, 0)}")
    d.curve(f"M {at(0, guess)} L {at(STEPS, guess)}", dashed=True)
    for share, name in ((0, "0"), (1, "1"), (guess, "guess")):
        d.text(left - 6, bottom - (bottom - top) * share, name, 13, anchor="end", muted=True)
    for step, anchor in ((0, "middle"), (STEPS, "end")):
        d.text(left + (right - left) * step / STEPS, bottom + 14, f"{step}", 13, anchor=anchor, muted=True)
    d.text((left + right) / 2, bottom + 14, "step", 13, muted=True)
    for i, (shares, kind, colour) in enumerate(zip(curves, kinds, ("query", "key"), strict=True)):
        d.curve("M " + " L ".join(at(step, share) for step, share in enumerate(shares)), colour, width=2.4)
        d.curve(f"M 120 {bottom + 36 + 19 * i} h 30", colour, width=2.4)
        d.text(160, bottom + 36 + 19 * i, f"{kind}: {shares[-1]:.3f}", 13, anchor="start")
    d.curve(f"M 120 {bottom + 74} h 30", dashed=True)
    d.text(160, bottom + 74, f"not divided, rate 1: no better than a guess, {guess:.3f}", 13, anchor="start")
    return d
