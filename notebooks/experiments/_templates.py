"""What recognised speech before networks: cepstra, templates, dynamic time warping; and the energy as a clock.

A sentence is read by one-stage dynamic programming (Ney 1984): the best way through the sound is a way through one
template after the other, each warped in time, with a silence wherever it helps. What a way costs is the sum of its
distances and a penalty for each syllable.
"""

from typing import NamedTuple

import numpy as np
from scipy.fft import dct

from notebooks.experiments import _spoken as spoken

CEPSTRA = 12  # beside the loudness


class Heard(NamedTuple):
    """A sentence as templates read it: syllables, and their beginnings and ends in seconds."""

    symbols: list
    starts: np.ndarray
    ends: np.ndarray


def cepstra(features) -> np.ndarray:
    """Mel-frequency cepstra of each position and how they change (Davis and Mermelstein 1980): (N, S, 26).

    The loudness is counted from the sentence's loudest position.
    """
    bands = np.asarray(features, np.float32)[..., : features.shape[-1] // 2 * 2]
    bands = bands.reshape(*bands.shape[:2], -1, 2).mean(axis=-1).swapaxes(1, 2)  # (N, S, bands)
    found = dct(bands, axis=-1, norm="ortho")[..., : CEPSTRA + 1]
    found[..., 0] -= found[..., 0].max(axis=-1, keepdims=True)
    padded = np.pad(found, ((0, 0), (2, 2), (0, 0)), mode="edge")
    return np.concatenate([found, padded[:, 4:] - padded[:, :-4]], axis=-1)


class Templates:
    """Some examples of each syllable, cut out of training sentences.

    Parameters
    ----------
    some : training sentences
    n : examples of each syllable
    penalty : for each syllable that is heard
    """

    def __init__(self, some: spoken.Sounds, n: int, penalty: float):
        found = cepstra(some.features[:1000])
        self.scale, self.penalty = found.std(axis=(0, 1)), penalty
        pieces = [[] for _ in range(spoken.N_SYLLABLES)]
        for row, *truth in zip(found, *some[1:], strict=False):
            for symbol, start, end in zip(*truth, strict=True):
                if len(pieces[symbol]) < n:
                    pieces[symbol].append(row[round(start / spoken.MOMENT) : round(end / spoken.MOMENT)])
        examples = [(symbol, piece) for symbol, many in enumerate(pieces) for piece in many]
        self.symbols = np.array([symbol for symbol, _ in examples])
        lengths = np.array([len(piece) for _, piece in examples])
        self.frames = np.concatenate([piece for _, piece in examples]) / self.scale
        self.last = np.cumsum(lengths) - 1
        self.first = self.last - lengths + 1

    def __call__(self, features) -> Heard:
        """Read one sentence, (bands, F)."""
        x = cepstra(features[None])[0] / self.scale  # (S, 26)
        quiet = x[x[:, 0] <= np.quantile(x[:, 0], 0.15)].mean(axis=0)
        frames = np.concatenate([self.frames, quiet[None]])  # the last state is the silence
        first, last = np.append(self.first, len(frames) - 1), np.append(self.last, len(frames) - 1)
        costs = np.sqrt(np.maximum((x**2).sum(1)[:, None] + (frames**2).sum(1) - 2 * x @ frames.T, 0))  # (S, states)
        fees = np.append(np.full(len(self.first), self.penalty), 0.0)
        steps = np.stack([np.arange(len(frames)) - back for back in (0, 1, 2)])
        begins = np.repeat(first, last - first + 1)
        steps = np.where(steps < begins, len(frames), steps)  # from outside the template: never
        paid, since = np.full(len(frames) + 1, np.inf), np.zeros(len(frames) + 1, int)
        before, ways = 0.0, []
        for s, cost in enumerate(costs):
            choice = paid[steps].argmin(axis=0)
            origin = steps[choice, np.arange(len(frames))]
            paid, since = np.append(paid[origin], np.inf), np.append(since[origin], 0)
            entered = before + fees < paid[first]
            paid[first[entered]], since[first[entered]] = (before + fees)[entered], s
            paid[:-1] += cost
            best = paid[last].argmin()
            before = paid[last[best]]
            ways.append((best, since[last[best]]))
        found, s = [], len(costs)
        while s > 0:
            best, start = ways[s - 1]
            if best < len(self.symbols):
                found.append((int(self.symbols[best]), start, s))
            s = start
        symbols, starts, ends = zip(*found[::-1], strict=True) if found else ((), (), ())
        return Heard(list(symbols), np.array(starts) * spoken.MOMENT, np.array(ends) * spoken.MOMENT)


def loudness(features) -> np.ndarray:
    """Of each position of one sentence, 0 for the quietest and 1 for the loudest: (S,)."""
    found = cepstra(features[None])[0, :, 0]
    found = np.convolve(np.pad(found, 1, mode="edge"), np.ones(3) / 3, mode="valid")
    low, high = np.quantile(found, [0.05, 0.95])
    return ((found - low) / max(high - low, 1e-6)).clip(0, 1)


def equal_parts(features, k: int, threshold: float):
    """Beginnings and ends (k,), in seconds, of equal parts of where it is loud."""
    loud = np.flatnonzero(loudness(features) > threshold)
    borders = np.linspace(loud[0], loud[-1] + 1, k + 1) * spoken.MOMENT
    return borders[:-1], borders[1:]


def dips(features, k: int, threshold: float):
    """Beginnings and ends (k,) where the sentence is softest between its ends, three positions apart at least."""
    level = loudness(features)
    loud = np.flatnonzero(level > threshold)
    borders = [loud[0], loud[-1] + 1]
    for s in loud[0] + np.argsort(level[loud[0] : loud[-1] + 1], kind="stable"):
        if len(borders) == k + 1:
            break
        if min(abs(s - border) for border in borders) >= 3:
            borders.append(s)
    borders = np.sort(borders) * spoken.MOMENT
    if len(borders) <= k:
        return equal_parts(features, k, threshold)
    return borders[:-1], borders[1:]
