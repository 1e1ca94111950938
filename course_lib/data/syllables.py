"""Spoken syllables, made by a recipe, so that what is said is known, and when each syllable begins and ends.

A sentence is a few syllables of a consonant and a vowel, SYLLABLES, in random order. Each sentence has a speaker of its
own: a pitch, a length of the vocal tract, a speed. The recipe, by the theory of source and filter (Fant 1960):

1. what the vocal folds give is a sum of harmonics of the pitch, each softer by its number, 6 dB an octave;
2. the vocal tract lets pass what is near its resonances, the formants: of a vowel three frequencies, as Peterson and
   Barney (1952, table II) measured them in men, divided by the length of the tract, and two more above them; the second
   one comes from where the consonant before has it, within some hundredths of a second;
3. consonants: "m" is voiced, with a low first formant and softer; "s" and "sh" are noise around two frequencies; "t" is
   a silence, then a short noise;
4. pauses, syllables and their parts have lengths of their own, all divided by the speed; the pitch falls a little;
5. noise is added, white, pink or the hum of a line, so many decibels below the speech.

It is no human speech: nobody runs words together, and each syllable sounds nearly as it does elsewhere.
"""

from typing import NamedTuple

import numpy as np

from course_lib.audio.log_mel import HOP, RATE
from course_lib.checks import check_choice, check_count, check_positive

VOWELS = {  # the first three formants, in Hz
    "a": (730, 1090, 2440),
    "e": (530, 1840, 2480),
    "i": (270, 2290, 3010),
    "o": (570, 840, 2410),
    "u": (300, 870, 2240),
}
HIGHER = (3500, 4500)  # formants that all vowels share
WIDTHS = np.array([60, 90, 150, 200, 250])  # of the formants, in Hz
NASAL = (250, 1100, 2200)  # the formants of "m"
CONSONANTS = {"m": (), "s": (5500, 900), "sh": (2700, 500), "t": (4000, 1500)}  # middle and spread of noise, in Hz
SECOND_FORMANT = {"m": 900, "s": 1700, "sh": 2000, "t": 1800}  # where it comes from
SYLLABLES = tuple(consonant + vowel for consonant in CONSONANTS for vowel in VOWELS)
NOISES = ("white", "pink", "hum")

# Seconds at speed 1, the least and the most.
_BEFORE, _PAUSE, _CONSONANT, _VOWEL = (0.05, 0.2), (0.0, 0.06), (0.06, 0.1), (0.11, 0.18)
_HIGHEST = 5000.0  # Hz of a harmonic
_STEP = 80  # samples, 5 ms, between which the strength of a harmonic goes straight


class Spoken(NamedTuple):
    """N sentences; times are in seconds from the beginning of the wave."""

    waves: np.ndarray  # float32 (N, n), 16,000 samples a second, in -1 ... 1
    symbols: tuple  # N arrays (K,), int64: numbers of SYLLABLES
    starts: tuple  # N arrays (K,), float64: where the consonant of each begins
    ends: tuple  # N arrays (K,), float64: where its vowel ends
    pitch: np.ndarray  # (N,), Hz at the beginning
    tract: np.ndarray  # (N,), the length of the vocal tract; 1 is that of VOWELS
    speed: np.ndarray  # (N,)
    noise: np.ndarray  # (N,), int64: numbers of NOISES
    snr: np.ndarray  # (N,), decibels of speech over noise; inf without


def draw(
    n: int,
    rng: np.random.Generator,
    length: tuple[int, int] = (1, 5),
    pitch: tuple[float, float] = (90.0, 250.0),
    tract: tuple[float, float] = (0.85, 1.15),
    speed: tuple[float, float] = (0.75, 1.35),
    snr: tuple[float, float] | None = (5.0, 30.0),
    noises: tuple[str, ...] = NOISES,
    seconds: float | None = None,
) -> Spoken:
    """Draw N sentences.

    Parameters
    ----------
    n : how many
    rng : where the luck comes from
    length : the fewest and the most syllables of a sentence
    pitch, tract, speed : the least and the most of each speaker
    snr : decibels of speech over noise, the least and the most; None: no noise
    noises : the kinds to choose from
    seconds : of each wave; None: as many as the longest sentence may take

    Raises
    ------
    ValueError : a number below 1, a range that ends before it begins or has values that are not positive, an unknown
        noise or none, fewer seconds than the longest sentence may take.
    """
    check_count("n", n)
    for name, (least, most) in {"length": length, "pitch": pitch, "tract": tract, "speed": speed}.items():
        (check_count if name == "length" else check_positive)(f"the least {name}", least)
        if most < least:
            raise ValueError(f"{name} must be the least and the most, got {(least, most)}")
    check_count("the most length", length[1])
    if snr is not None and snr[1] < snr[0]:
        raise ValueError(f"snr must be the least and the most, got {snr}")
    noises = tuple(noises)
    for name in noises or ("",):
        check_choice("a noise", name, NOISES)
    most = _BEFORE[1] + (length[1] - 1) * _PAUSE[1] + length[1] * (_CONSONANT[1] + _VOWEL[1])
    longest = most / speed[0]
    seconds = longest if seconds is None else seconds
    if seconds < longest:
        raise ValueError(f"a sentence of {length[1]} syllables may take {longest:.2f} seconds, got {seconds:.2f}")
    n_positions = int(np.ceil(round(seconds * RATE / (2 * HOP), 6)))  # of Whisper's encoder
    rows = [_sentence(rng, length, pitch, tract, speed, snr, noises, 2 * HOP * n_positions) for _ in range(n)]
    waves, symbols, starts, ends, *speakers = zip(*rows, strict=True)
    return Spoken(np.stack(waves), symbols, starts, ends, *map(np.array, speakers))


def position_mask(starts, ends, n_positions: int) -> np.ndarray:
    """Where the positions of Whisper's encoder lie in each of K syllables.

    Parameters
    ----------
    starts, ends : seconds, shape (K,)
    n_positions : S; number s stands for the moment of s fiftieths of a second

    Returns
    -------
    boolean, shape (K, S).
    """
    moments = np.arange(n_positions) * 2 * HOP / RATE
    return (np.asarray(starts)[:, None] <= moments) & (moments < np.asarray(ends)[:, None])


def vocal_tract(frequencies, formants, widths=WIDTHS) -> np.ndarray:
    """How much of each frequency a tract with these formants lets pass, 1 far below them (Fant 1960, section 1.2).

    Parameters
    ----------
    frequencies : Hz, shape (..., 1)
    formants, widths : Hz, broadcastable to (..., n)

    Returns
    -------
    Shape (...).
    """
    squares = np.asarray(formants, dtype=np.float64) ** 2
    passed = squares / np.hypot(squares - np.square(frequencies), frequencies * np.asarray(widths))
    return passed.prod(axis=-1)


def _sentence(rng, length, pitch, tract, speed, snr, noises, n_samples):
    k = rng.integers(length[0], length[1] + 1)
    symbols = rng.integers(len(SYLLABLES), size=k)
    pitch, tract, speed = (np.exp(rng.uniform(*np.log(ends))) for ends in (pitch, tract, speed))
    pauses = rng.uniform(*_PAUSE, size=k)
    pauses[0] = rng.uniform(*_BEFORE)
    parts = np.stack([pauses, rng.uniform(*_CONSONANT, size=k), rng.uniform(*_VOWEL, size=k)], axis=1)
    borders = np.cumsum((parts / speed * RATE).astype(np.int64)).reshape(k, 3)
    fall, wave = rng.uniform(0.0, 0.25), np.zeros(n_samples)
    for symbol, (start, middle, end) in zip(symbols, borders, strict=True):
        heights = pitch * (1 - fall * np.arange(start, end) / borders[-1, -1])
        wave[start:end] = _syllable(SYLLABLES[symbol], heights, middle - start, tract, rng)
    kind, level = rng.integers(len(noises)), np.inf
    if snr is not None:
        said = np.concatenate([wave[start:end] for start, _, end in borders])
        level = rng.uniform(*snr)
        wave += np.sqrt((said**2).mean()) * 10 ** (-level / 20) * _noise(noises[kind], n_samples, rng)
    wave *= rng.uniform(0.2, 0.9) / np.abs(wave).max()
    starts, _, ends = borders.T / RATE
    kind = NOISES.index(noises[kind])
    return wave.astype(np.float32), symbols, starts, ends, pitch, tract, speed, kind, level


def _syllable(name, heights, n_consonant, tract, rng):
    """A consonant of so many samples and a vowel, with the pitch of each sample: (n,)."""
    consonant, vowel = name[:-1], name[-1]
    n = len(heights) - n_consonant
    seconds = np.arange(n)[:, None] / RATE
    formants = np.tile(np.array([*VOWELS[vowel], *HIGHER]) / tract, (n, 1))
    formants[:, 1:2] += (SECOND_FORMANT[consonant] / tract - formants[:, 1:2]) * 0.7 * np.exp(-seconds / 0.02)
    said = _voiced(heights[n_consonant:], formants)
    if consonant == "m":
        hum = _voiced(heights[:n_consonant], np.tile(np.array([*NASAL, *HIGHER]) / tract, (n_consonant, 1)))
        return np.concatenate([0.4 * _faded(hum), _faded(said)])
    middle, spread = CONSONANTS[consonant]
    hiss = _band(n_consonant, middle / tract, spread, rng)
    if consonant == "t":
        hiss = 1.5 * hiss * (np.arange(n_consonant) >= 0.7 * n_consonant)
    return np.concatenate([0.4 * _faded(hiss), _faded(said)])


def _voiced(heights, formants):
    """Harmonics of the pitch (n,), as the formants (n, 5) let them pass, with a mean square of 1: (n,)."""
    n, numbers = len(heights), np.arange(1, int(_HIGHEST / heights.max()) + 1)[:, None]
    turns = np.exp(2j * np.pi * np.cumsum(heights) / RATE)
    waves = np.cumprod(np.broadcast_to(turns, (len(numbers), n)), axis=0).imag  # of each harmonic, (H, n)
    steps = np.arange(0, n + _STEP, _STEP).clip(max=n - 1)  # where the tract is asked, M + 1 times
    strengths = vocal_tract((numbers * heights[steps])[..., None], formants[steps]) / numbers  # (H, M + 1)
    waves = np.pad(waves, ((0, 0), (0, -n % _STEP))).reshape(len(numbers), -1, _STEP)  # (H, M, _STEP)
    m = waves.shape[1]
    before, after = (np.einsum("hm,hmj->mj", strengths[:, i : i + m], waves) for i in (0, 1))
    between = np.arange(_STEP) / _STEP
    total = (before + between * (after - before)).reshape(-1)[:n]
    return total / np.sqrt((total**2).mean())


def _band(n, middle, spread, rng):
    """Normal noise around a frequency, with a mean square of 1: (n,)."""
    frequencies = np.fft.rfftfreq(n, 1 / RATE)
    gains = np.exp(-0.5 * ((frequencies - middle) / spread) ** 2)
    noise = np.fft.irfft(gains * np.fft.rfft(rng.normal(size=n)), n)
    return noise / np.sqrt((noise**2).mean())


def _noise(kind, n, rng):
    """Of a kind, with a mean square of 1: (n,)."""
    if kind == "hum":
        phases = rng.uniform(0, 2 * np.pi, size=(8, 1))
        numbers = np.arange(1, 9)[:, None]
        noise = (np.sin(2 * np.pi * 50 * numbers * np.arange(n) / RATE + phases) / numbers).sum(axis=0)
    else:
        frequencies = np.fft.rfftfreq(n, 1 / RATE)
        gains = 1 / np.sqrt(np.maximum(frequencies, 20)) if kind == "pink" else 1.0  # nobody hears below
        noise = np.fft.irfft(gains * np.fft.rfft(rng.normal(size=n)), n)
    return noise / np.sqrt((noise**2).mean())


def _faded(wave, seconds=0.01):
    """In and out by half a cosine."""
    n = min(int(seconds * RATE), len(wave) // 2)
    ramp = 0.5 - 0.5 * np.cos(np.pi * (np.arange(n) + 0.5) / n)
    wave = wave.copy()
    wave[:n] *= ramp
    wave[len(wave) - n :] *= ramp[::-1]
    return wave
