"""Spoken syllables as the experiment `speech.py` reads them: sets of sounds, what is to be written, and how it counts.

A target begins with what is asked, as Whisper's do (Radford et al. 2023, section 2.3): the start, the task, whether
times are wanted. A syllable with its times is three tokens: when it begins, what it is, when it ends.

    start, transcribe, no times, "ma", "so", end           start, translate, times, 0.84, "SO", 1.1, 0.52, "MA", ...

The other language says a sentence from its end to its beginning, in words of its own, one for each syllable.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from filelock import FileLock

from course_lib.audio.log_mel import HOP, RATE, log_mel
from course_lib.data import syllables
from course_lib.data.cache import cache_folder
from course_lib.files import replacing

N_MELS, MOMENT = 40, 2 * HOP / RATE  # bands; seconds of a position, and of a step of the times
N_SYLLABLES, MOMENTS = len(syllables.SYLLABLES), 200
PAD, END, START, TRANSCRIBE, TRANSLATE, NO_TIMES, TIMES = range(7)
WORDS = TIMES + 1  # the first syllable
OTHER = WORDS + N_SYLLABLES  # the first word of the other language
CLOCK = OTHER + N_SYLLABLES  # the moment 0
VOCABULARY = CLOCK + MOMENTS
PROMPTS = {
    "words": (START, TRANSCRIBE, NO_TIMES),
    "times": (START, TRANSCRIBE, TIMES),
    "translation": (START, TRANSLATE, NO_TIMES),
    "translation, times": (START, TRANSLATE, TIMES),
}
LONGEST = 40  # tokens of a target

HEARD, LEVELS = ("white", "hum"), (30, 20, 10, 5, 0, -5)
QUIET = {"snr": (20.0, 30.0), "noises": HEARD}
SETS = {  # name -> sentences, and how they differ from those learned from
    "train": (8000, {"noises": HEARD}),
    "train, pink too": (8000, {}),
    "validation": (400, {"noises": HEARD}),
    "test": (400, {"noises": HEARD}),
    "quiet": (200, QUIET),
    "high": (200, QUIET | {"pitch": (270.0, 350.0)}),
    "short tract": (200, QUIET | {"tract": (0.7, 0.8)}),
    "fast": (200, QUIET | {"speed": (1.5, 1.9)}),
    "6 to 8": (200, QUIET | {"length": (6, 8)}),
    **{f"{kind} {level}": (150, {"noises": (kind,), "snr": (level, level)})
       for kind in syllables.NOISES for level in LEVELS},
}  # fmt: skip
CHUNK = 100  # sentences that one seed draws


class Sounds(NamedTuple):
    """N sentences: float16 (N, N_MELS, F); syllables, beginnings and ends, N arrays (K,) each."""

    features: np.ndarray
    symbols: tuple
    starts: tuple
    ends: tuple


def drawn(name: str, chunk: int):
    """One chunk of a set: features and the truth, flat, with the number of syllables of each sentence."""
    n, how = SETS[name]
    seed = [list(SETS).index(name), chunk]
    some = syllables.draw(min(CHUNK, n - chunk * CHUNK), np.random.default_rng(seed), **how)
    features = log_mel(some.waves, n_mels=N_MELS).astype(np.float16)
    counts = np.array([len(symbols) for symbols in some.symbols])
    return features, counts, *(np.concatenate(part) for part in (some.symbols, some.starts, some.ends))


@cache
def sounds(name: str) -> Sounds:
    """A set, made once by all processors and kept in the cache; other processes wait for it."""
    n, folder = SETS[name][0], cache_folder() / "speech"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name.replace(', ', '-').replace(' ', '-')}-{n}.npz"
    with FileLock(file.with_suffix(".lock")):
        if not file.exists():
            chunks = range(-(-n // CHUNK))
            with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
                parts = list(zip(*pool.map(drawn, [name] * len(chunks), chunks), strict=True))
            with replacing(folder) as scratch:
                np.savez(scratch / file.name, *map(np.concatenate, parts))
        with np.load(file) as saved:
            features, counts, *truth = (saved[f"arr_{i}"] for i in range(5))
    return Sounds(features, *(tuple(np.split(flat, np.cumsum(counts)[:-1])) for flat in truth))


def target(task: str, symbols, starts, ends) -> np.ndarray:
    """What is to be written of a sentence: ids, from the start token to the end token."""
    order = slice(None, None, -1) if task.startswith("translation") else slice(None)
    said = (OTHER if task.startswith("translation") else WORDS) + np.asarray(symbols)[order]
    if task.endswith("times"):
        clock = [CLOCK + np.round(np.asarray(times)[order] / MOMENT).astype(int) for times in (starts, ends)]
        said = np.stack([clock[0], said, clock[1]], axis=1).ravel()
    return np.array([*PROMPTS[task], *said, END])


def targets(task: str, some: Sounds) -> np.ndarray:
    """Of all sentences, padded: (N, T)."""
    rows = [target(task, *truth) for truth in zip(*some[1:], strict=True)]
    return np.array([np.pad(row, (0, max(map(len, rows)) - len(row)), constant_values=PAD) for row in rows])


def said(ids) -> list[int]:
    """The syllables among written ids, or the words of the other language, as numbers of SYLLABLES."""
    ids = np.asarray(ids)
    ids = ids[(ids >= WORDS) & (ids < CLOCK)]
    return ((ids - WORDS) % N_SYLLABLES).tolist()


def times_of(ids) -> np.ndarray:
    """The times among written ids, in seconds: (n,)."""
    ids = np.asarray(ids)
    return (ids[ids >= CLOCK] - CLOCK) * MOMENT


def edits(found, true) -> int:
    """The fewest syllables that must be changed, put in or taken out (Levenshtein 1966)."""
    row = np.arange(len(true) + 1)
    for i, symbol in enumerate(found, start=1):
        changed = row[:-1] + (np.asarray(true) != symbol)
        row = np.concatenate([[i], np.minimum(changed, row[1:] + 1)])
        row = np.minimum.accumulate(row - np.arange(len(row))) + np.arange(len(row))  # what is put in
    return int(row[-1])


def late(found, starts, ends) -> float | None:
    """How far times, a beginning and an end for each syllable, are off on average, in ms; None for another number."""
    true = np.stack([starts, ends], axis=1).ravel()
    if len(found) != len(true):
        return None
    return round(float(np.abs(found - true).mean() * 1000), 1)


def spots(weights) -> np.ndarray:
    """Where each syllable's weights (..., K, S) lie in the mean, seconds (..., K)."""
    return weights @ np.arange(weights.shape[-1]) * MOMENT / weights.sum(axis=-1)


def inside(weights, mask) -> np.ndarray:
    """The share of each syllable's weights (..., K, S) that lies where it is said (K, S): (..., K)."""
    return (weights * mask).sum(axis=-1) / weights.sum(axis=-1)
