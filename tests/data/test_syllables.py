"""Spoken syllables: drawn as the recipe says, at the times that are given, and told apart by who listens there."""

import functools
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.audio.log_mel import RATE, log_mel
from course_lib.data import syllables
from course_lib.data.syllables import CONSONANTS, NOISES, SYLLABLES, VOWELS, draw, position_mask, vocal_tract


@functools.cache
def spoken(seed=0, n=60, **changes):
    return draw(n, np.random.default_rng(seed), **changes)


def each(sentences):
    """Of every syllable its sentence's number, its own, its start and its end in samples."""
    for i, (symbols, starts, ends) in enumerate(zip(*sentences[1:4], strict=True)):
        for symbol, start, end in zip(symbols, starts, ends, strict=True):
            yield i, symbol, round(start * RATE), round(end * RATE)


def test_what_a_draw_holds():
    sentences = spoken()
    assert SYLLABLES[:3] == ("ma", "me", "mi") and len(set(SYLLABLES)) == len(SYLLABLES) == 20
    assert sentences.waves.shape[0] == 60 and sentences.waves.dtype == np.float32
    assert sentences.waves.shape[1] % 320 == 0  # whole positions of the encoder
    peaks = np.abs(sentences.waves).max(axis=1)
    assert 0.2 <= peaks.min() < 0.3 and 0.8 < peaks.max() <= 0.9
    assert {len(symbols) for symbols in sentences.symbols} == {1, 2, 3, 4, 5}
    for symbols, starts, ends in zip(*sentences[1:4], strict=True):
        assert symbols.dtype == np.int64 and starts.shape == ends.shape == symbols.shape
        assert (starts < ends).all() and (starts[1:] >= ends[:-1]).all()
        assert 0 < starts[0] and ends[-1] * RATE <= sentences.waves.shape[1]
    for name, least, most in (("pitch", 90, 250), ("tract", 0.85, 1.15), ("speed", 0.75, 1.35), ("snr", 5, 30)):
        values = getattr(sentences, name)
        assert values.shape == (60,) and least <= values.min() and values.max() <= most
        assert values.max() - values.min() > 0.7 * (most - least)
    assert_array_equal(np.unique(sentences.noise), [0, 1, 2])


def test_the_same_generator_draws_the_same():
    again = draw(60, np.random.default_rng(0))
    assert_array_equal(spoken().waves, again.waves)
    for name in ("symbols", "starts", "ends"):
        for a, b in zip(getattr(spoken(), name), getattr(again, name), strict=True):
            assert_array_equal(a, b)
    assert not np.array_equal(spoken(1).symbols[0], spoken().symbols[0])


def test_every_syllable_is_as_likely_as_another():
    found = np.concatenate(spoken(2, 100, length=(8, 8), snr=None).symbols)
    counts = np.bincount(found, minlength=20)
    # the chi-square of 19 degrees of freedom is below 43.8 in 999 of 1000 draws
    assert ((counts - 40) ** 2 / 40).sum() < 43.8


def test_there_is_sound_in_the_syllables_and_none_elsewhere():
    sentences = spoken(3, snr=None)
    assert np.isinf(sentences.snr).all()
    outside = np.ones(sentences.waves.shape, bool)
    for i, symbol, start, end in each(sentences):
        outside[i, start:end] = False
        said = np.abs(sentences.waves[i, start:end])
        closed = SYLLABLES[symbol].startswith("t")
        assert (said[:300].max() == 0) == closed  # the silence of a t is a part of it
        assert said[len(said) // 2 :].max() > 0.05 and said[-20:].max() < said.max() / 2
    assert outside.any(axis=1).all() and (sentences.waves[outside] == 0).all()


def test_durations_go_with_the_speed():
    slow, fast = (spoken(4, 100, speed=(speed, speed), snr=None) for speed in (0.5, 2.0))
    for sentences, factor in ((slow, 2.0), (fast, 0.5)):
        lengths = np.concatenate(sentences.ends) - np.concatenate(sentences.starts)
        pauses = np.concatenate([b[1:] - a[:-1] for a, b in zip(sentences.ends, sentences.starts, strict=True)])
        first = np.array([starts[0] for starts in sentences.starts])
        for found, least, most in ((lengths, 0.17, 0.28), (pauses, 0.0, 0.06), (first, 0.05, 0.2)):
            assert least * factor - 1e-3 <= found.min() < (least + 0.3 * (most - least)) * factor
            assert (most - 0.3 * (most - least)) * factor < found.max() <= most * factor + 1e-3
    assert_allclose(slow.ends[0], 4 * fast.ends[0], atol=2e-3)


def middle_of(sentences, i, start, end):
    """A tenth of a second before the vowel's end fades."""
    return sentences.waves[i, end - 160 - 1600 : end - 160].astype(np.float64)


def test_harmonics_stand_at_the_pitch():
    """Which falls a little: the correlation with itself is largest one period later."""
    sentences = spoken(5, 30, snr=None)
    for i, _, start, end in each(sentences):
        wave = middle_of(sentences, i, start, end)
        lags = np.arange(RATE // 300, RATE // 60)
        alike = [np.corrcoef(wave[:-lag], wave[lag:])[0, 1] for lag in lags]
        # the shortest lag that is nearly as good as the best, as twice a period is as good
        lag = lags[np.flatnonzero(np.array(alike) > max(alike) - 0.03)[0]]
        assert 0.72 < RATE / lag / sentences.pitch[i] < 1.05


@pytest.mark.parametrize("tract", [0.85, 1.0, 1.15])
def test_vowels_have_their_formants(tract):
    """Of a low voice: the envelope of its spectrum is largest near the first formants, divided by the tract."""
    sentences = spoken(6, 40, pitch=(60, 60), tract=(tract, tract), speed=(0.5, 0.5), snr=None)
    spectra = {vowel: [] for vowel in VOWELS}
    for i, symbol, start, end in each(sentences):
        wave = middle_of(sentences, i, start, end)
        spectra[SYLLABLES[symbol][-1]].append(np.abs(np.fft.rfft(wave * np.hanning(1600))) ** 2)
    frequencies = np.fft.rfftfreq(1600, 1 / RATE)
    for vowel, found in spectra.items():
        power = np.mean(found, axis=0) * np.maximum(frequencies, 1) ** 2  # without the fall of the source
        smooth = np.convolve(power, np.hanning(15), "same")
        for formant in np.array(VOWELS[vowel][:2]) / tract:
            near = (frequencies > 0.85 * formant) & (frequencies < 1.15 * formant)
            beside = (np.abs(frequencies - 0.75 * formant) < 30) | (np.abs(frequencies - 1.3 * formant) < 30)
            assert smooth[near].max() > smooth[beside].min(), (vowel, formant)
            peak = frequencies[near][smooth[near].argmax()]
            assert abs(peak - formant) < 0.1 * formant + 30, (vowel, formant, peak)


def test_consonants_are_noise_around_their_frequency_or_voiced():
    sentences = spoken(7, 60, tract=(1, 1), speed=(0.75, 0.75), snr=None)
    spectra = {consonant: [] for consonant in CONSONANTS}
    for i, symbol, start, _ in each(sentences):
        consonant = SYLLABLES[symbol][:-1]
        first = start + (0 if consonant != "t" else round(0.7 * 0.06 / 0.75 * RATE))
        spectra[consonant].append(np.abs(np.fft.rfft(sentences.waves[i, first : first + 1000] * np.hanning(1000))) ** 2)
    frequencies = np.fft.rfftfreq(1000, 1 / RATE)
    means = {name: (np.sum(found, 0) @ frequencies) / np.sum(found) for name, found in spectra.items()}
    for name, most in (("s", 300), ("sh", 200)):
        middle, spread = CONSONANTS[name]
        assert abs(means[name] - middle) < most, means
        power = np.sum(spectra[name], 0)
        found = np.sqrt(power @ (frequencies - means[name]) ** 2 / power.sum())
        assert_allclose(found, spread / np.sqrt(2), rtol=0.2)  # of the power, whose root has the spread that is said
    assert means["m"] < 700 and 3000 < means["t"] < 5000


def test_consonants_are_softer_than_their_vowels():
    """By 8 decibels, so that the power is .16 of the vowel's; half a cosine at both ends takes from both a little."""
    sentences = spoken(7, 60, tract=(1, 1), speed=(0.75, 0.75), snr=None)
    ratios = {consonant: [] for consonant in CONSONANTS}
    for i, symbol, start, end in each(sentences):
        wave = sentences.waves[i].astype(np.float64)
        consonant = SYLLABLES[symbol][:-1]
        # the shortest consonant takes .08 seconds here, the longest .133, the shortest vowel .147
        vowel = (wave[end - 2000 : end - 200] ** 2).mean()
        ratios[consonant].append((wave[start + 200 : start + 1000] ** 2).mean() / vowel)
    for consonant in ("m", "s", "sh"):
        assert_allclose(np.mean(ratios[consonant]), 0.16, rtol=0.2, err_msg=consonant)


def test_syllables_fade_in_and_out():
    """The first and the last millisecond of a part are soft."""
    sentences = spoken(7, 60, tract=(1, 1), speed=(0.75, 0.75), snr=None)
    for i, symbol, start, end in each(sentences):
        wave = np.abs(sentences.waves[i, start:end])
        assert wave[-16:].max() < 0.15 * wave[-1600:].max()
        if SYLLABLES[symbol][:-1] in ("s", "sh"):
            assert wave[:16].max() < 0.15 * wave[:1200].max()


def test_the_second_formant_glides_from_the_consonant():
    """It begins at 1512 Hz before the 840 of an "o" after "t", and at 1317 before the 2290 of an "i" after "m"."""
    rng, heights = np.random.default_rng(0), np.full(4800, 100.0)
    # bands around where it begins, and around where it ends
    for name, begins, ends in (("to", (1200, 1700), (700, 1000)), ("mo", (1200, 1700), (700, 1000)),
                               ("mi", (1100, 1700), (2100, 2500))):  # fmt: skip
        wave = syllables._syllable(name, heights, 1600, 1.0, rng)[1600:]
        shares = []
        for part in (wave[:480], wave[-640:-160]):
            power = np.abs(np.fft.rfft(part * np.hanning(480))) ** 2
            frequencies = np.fft.rfftfreq(480, 1 / RATE)
            there = [power[(frequencies > a) & (frequencies < b)].sum() for a, b in (begins, ends)]
            shares.append(there[0] / there[1])
        assert (shares[0] > 2 * shares[1]) == (name != "mo"), (name, shares)


def test_a_voice_is_the_sum_of_its_harmonics_sample_by_sample():
    """Each as strong as the tract lets pass at that moment, divided by its number; the library asks each 5 ms."""
    t = np.arange(1500)
    heights = 110 - 10 * t / 1500
    formants = np.array([500, 1500, 2500, 3500, 4500]) + 300 * np.exp(-t[:, None] / 300) * np.array([0, 1, 0, 0, 0])
    phase, expected = 2 * np.pi * np.cumsum(heights) / RATE, np.zeros(1500)
    for number in range(1, 46):  # up to 5000 Hz
        expected += vocal_tract(number * heights[:, None], formants) / number * np.sin(number * phase)
    expected /= np.sqrt((expected**2).mean())
    found = syllables._voiced(heights, formants)
    assert_allclose((found**2).mean(), 1.0)
    assert np.sqrt(((found - expected) ** 2).mean()) < 0.02


@pytest.mark.parametrize("kind", NOISES)
def test_noise_is_of_the_kind_that_is_said(kind):
    """So loud that the speech has no part in the spectrum."""
    sentences = draw(1, np.random.default_rng(8), length=(3, 3), snr=(-40, -40), noises=(kind,))
    assert sentences.snr == -40 and NOISES[sentences.noise[0]] == kind
    wave = sentences.waves[0].astype(np.float64)
    power = np.abs(np.fft.rfft(wave * np.hanning(len(wave)))) ** 2
    frequencies = np.fft.rfftfreq(len(wave), 1 / RATE)

    def between(least, most):
        return power[(frequencies > least) & (frequencies < most)].sum()

    if kind == "hum":  # 50 Hz and seven multiples, each a quarter as strong as half its frequency
        lines = [between(50 * number - 5, 50 * number + 5) for number in range(1, 9)]
        assert_allclose(lines, lines[0] / np.arange(1, 9) ** 2, rtol=0.2)
        assert sum(lines) > 0.99 * power.sum()
    else:
        octaves = [between(125 * 2**i, 250 * 2**i) for i in range(6)]
        expected = 2.0 ** np.arange(6) if kind == "white" else np.ones(6)  # pink noise: as much in each octave
        assert_allclose(octaves / np.mean(octaves), expected / expected.mean(), rtol=0.45)


@pytest.mark.parametrize("kind", NOISES)
def test_speech_is_so_many_decibels_above_the_noise(kind):
    """Ten times the power, and the noise itself."""
    sentences, ratios = spoken(9, 40, snr=(10, 10), noises=(kind,)), []
    for wave, starts, ends in zip(*sentences[:1], *sentences[2:4], strict=True):
        wave, inside = wave.astype(np.float64), np.zeros(len(wave), bool)
        for start, end in zip(starts, ends, strict=True):
            inside[round(start * RATE) : round(end * RATE)] = True
        ratios.append((wave[inside] ** 2).mean() / (wave[~inside] ** 2).mean())
    assert_allclose(np.mean(ratios), 11, rtol=0.1)


def test_who_listens_at_the_true_times_tells_the_syllables_apart():
    """By the nearest mean of eight moments of the spectrogram, the means of 200 other sentences."""

    def moments(sentences):
        features = log_mel(sentences.waves)
        rows = [
            features[i][:, np.linspace(start, end - 1, 8).astype(int) // 160].ravel()
            for i, _, start, end in each(sentences)
        ]
        return np.array(rows), np.concatenate(sentences.symbols)

    (x, labels), (others, expected) = (moments(spoken(seed, n, snr=None)) for seed, n in ((10, 200), (11, 60)))
    means = np.stack([x[labels == k].mean(axis=0) for k in range(20)])
    found = ((others[:, None] - means) ** 2).sum(axis=-1).argmin(axis=1)
    assert (found == expected).mean() > 0.8
    # at the wrong times it hears little
    wrong = spoken(11, 60, snr=None)
    wrong = wrong._replace(starts=tuple(s[::-1] for s in wrong.starts), ends=tuple(e[::-1] for e in wrong.ends))
    others, _ = moments(wrong)
    assert (((others[:, None] - means) ** 2).sum(axis=-1).argmin(axis=1) == expected).mean() < 0.5


def test_positions_of_the_encoder_by_hand():
    found = position_mask([0.0, 0.05], [0.04, 0.1], 6)
    assert_array_equal(found, [[1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0]])
    sentences = spoken()
    n = sentences.waves.shape[1] // 320
    for starts, ends in zip(sentences.starts, sentences.ends, strict=True):
        mask = position_mask(starts, ends, n)
        assert mask.dtype == bool and mask.shape == (len(starts), n)
        assert (mask.sum(axis=0) <= 1).all()
        assert_allclose(mask.sum(axis=1) / 50, ends - starts, atol=0.0201)
        for first, second in pairwise(mask):
            assert np.flatnonzero(first).max() < np.flatnonzero(second).min()


def test_the_vocal_tract_by_hand():
    """At a formant F it lets F / width pass; far below it 1, far above it the square of F / f."""
    found = vocal_tract(np.array([[1.0], [500.0], [50000.0]]), [500.0], [50.0])
    assert_allclose(found, [1.0, 10.0, 1e-4], rtol=1e-3)
    at = np.array([300.0])
    both = vocal_tract(at, [500.0], [50.0]) * vocal_tract(at, [900.0], [80.0])
    assert_allclose(vocal_tract(at, [500.0, 900.0], [50.0, 80.0]), both)


@pytest.mark.parametrize(("changes", "message"), [
    ({"n": 0}, "n must be a whole number of 1 or more"),
    ({"length": (0, 3)}, "the least length must be a whole number of 1 or more"),
    ({"length": (1, 2.5)}, "the most length must be a whole number of 1 or more"),
    ({"length": (3, 2)}, r"length must be the least and the most, got \(3, 2\)"),
    ({"pitch": (0.0, 100.0)}, "the least pitch must be positive"),
    ({"tract": (1.1, 1.0)}, "tract must be the least and the most"),
    ({"speed": (-1.0, 1.0)}, "the least speed must be positive"),
    ({"snr": (20, 10)}, "snr must be the least and the most"),
    ({"noises": ("white", "brown")}, "a noise must be one of 'white', 'pink', 'hum'; got 'brown'"),
    ({"noises": ()}, "a noise must be one of"),
    ({"seconds": 2.4}, "a sentence of 5 syllables may take 2.45 seconds, got 2.40"),
])  # fmt: skip
def test_what_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        draw(**{"n": 1, "rng": np.random.default_rng(0), **changes})


def test_a_wave_may_be_longer_than_it_must():
    assert draw(1, np.random.default_rng(0), seconds=4.0).waves.shape == (1, 4 * RATE)
    # a syllable ends after .2 + .1 + .18 seconds, 24 positions of the encoder; two take a pause besides
    for length, n in ((1, 24), (2, 41)):
        found = draw(1, np.random.default_rng(0), length=(1, length), speed=(1, 1)).waves
        assert found.shape == (1, n * 320)
