"""course_lib.audio.log_mel: the numbers of `transformers`, the scale by hand, and where a tone is seen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from transformers import WhisperFeatureExtractor

from course_lib.audio.log_mel import (
    FRAMES_A_SECOND,
    RATE,
    hertz_to_mel,
    log_mel,
    mel_filters,
    mel_to_hertz,
    power_spectrogram,
)


def waves():
    """Noise, a tone that rises, a click in silence, silence."""
    rng, t = np.random.default_rng(0), np.arange(RATE) / RATE
    click = np.zeros(RATE)
    click[5000] = 0.9
    return np.stack([0.3 * rng.normal(size=RATE), 0.5 * np.sin(2 * np.pi * (200 + 2000 * t) * t), click, 0 * t])


def theirs(extractor, wave):
    """In NumPy, one wave at a time: (n_mels, F)."""
    return extractor._np_extract_fbank_features(np.asarray(wave, np.float32)[None], "cpu")[0]


@pytest.mark.parametrize("n_mels", [80, 128])
@pytest.mark.parametrize("n", [RATE, 4321, 160])
def test_the_numbers_are_those_of_transformers(n_mels, n):
    extractor = WhisperFeatureExtractor(feature_size=n_mels)
    found = log_mel(waves()[:, :n].astype(np.float32), n_mels=n_mels)
    assert found.dtype == np.float32 and found.shape == (4, n_mels, n // 160)
    for wave, features in zip(waves()[:, :n], found, strict=True):
        assert_allclose(features, theirs(extractor, wave), rtol=0, atol=1e-5)
        assert_allclose(log_mel(wave, n_mels=n_mels), features, rtol=0, atol=1e-5)
        assert log_mel(wave, n_mels=n_mels).dtype == np.float32


def test_a_sound_is_filled_up_with_silence_or_cut():
    """As theirs does it before all else: what is loudest is looked for in the whole."""
    extractor = WhisperFeatureExtractor(chunk_length=2)
    wave = waves()[1].astype(np.float32)
    for part in (wave, np.tile(wave, 3)):
        found, expected = log_mel(part, 2 * RATE), extractor(part, sampling_rate=RATE, return_tensors="np")
        assert found.shape == (80, 2 * FRAMES_A_SECOND)
        assert_allclose(found, expected["input_features"][0], rtol=0, atol=2e-4)  # theirs is PyTorch's, in float32
    assert_allclose(log_mel(np.stack([wave, wave]), RATE + 160)[0], log_mel(wave, RATE + 160))
    assert_allclose(log_mel(wave, RATE), log_mel(wave))


def test_the_filters_are_those_of_transformers():
    for n_mels in (80, 128):
        expected = WhisperFeatureExtractor(feature_size=n_mels).mel_filters.T
        assert_allclose(mel_filters(n_mels), expected, rtol=1e-9, atol=1e-12)
    # triangles of area 1: their heights, times the 40 Hz from one frequency to the next, add up to about 1
    assert_allclose(40 * mel_filters()[40:].sum(axis=1), 1.0, atol=0.07)


def test_the_mel_scale_by_hand():
    """Linear to 1000 Hz, where 15 mels are, then 27 mels for each factor of 6.4."""
    hertz, mels = [0, 200, 1000, 6400], [0, 3, 15, 42]
    assert_allclose(hertz_to_mel(hertz), mels)
    assert_allclose(mel_to_hertz(mels), hertz)
    every = np.linspace(0, 8000, 50)
    assert_allclose(mel_to_hertz(hertz_to_mel(every)), every, atol=1e-9)


def test_a_tone_is_seen_at_its_frequency_and_a_click_at_its_time():
    power = power_spectrogram(np.sin(2 * np.pi * 1200 * np.arange(RATE) / RATE))
    assert power.shape == (201, 100) and power.dtype == np.float64
    assert (power[:, 1:].argmax(axis=0) == 1200 / 40).all()  # the first frame sees the tone mirrored
    # of a tone of height 1, a quarter of the window's sum squared: 1/4 * 200^2
    assert_allclose(power[30, 5:95], 10000.0, rtol=1e-6)
    click = power_spectrogram(waves()[2]).sum(axis=0)
    # 5000 samples are 31.25 hops, and a frame reaches 1.25 hops to each side
    assert click.argmax() == 31 and set(np.flatnonzero(click > 1e-9)) == {31, 32}


def test_what_is_soft_is_raised_and_what_is_loudest_is_where_it_should_be():
    wave = waves()[1].copy()
    wave[RATE // 2 :] = 0
    features = log_mel(wave)
    assert_allclose(features.max() - features.min(), 2.0, rtol=1e-6)  # 8 powers of ten, divided by 4
    assert_allclose(log_mel(10 * wave), features + 0.5, atol=1e-6)  # 100 times the power: 2 / 4
    assert_allclose(log_mel(np.zeros(RATE)), (-10 + 4) / 4)


@pytest.mark.parametrize("wave, options, error, message", [
    (np.zeros(400, np.int16), {}, TypeError, "floating point in -1 ... 1, got int16; divide 16-bit integers by 32768"),
    (np.zeros((2, 1, 400)), {}, ValueError, r"must have shape \(n,\) or \(B, n\), of one channel each; got \(2, 1, 4"),
    (np.zeros(159), {}, ValueError, "needs 160 samples or more, a frame's worth; got 159"),
    (np.zeros(400), {"n_samples": 159}, ValueError, "needs 160 samples or more, a frame's worth; got 159"),
    (np.zeros(400), {"n_samples": 0}, ValueError, "n_samples must be a whole number of 1 or more"),
    (np.zeros(400), {"n_mels": 0}, ValueError, "n_mels must be a whole number of 1 or more"),
    (np.full(400, np.nan), {}, ValueError, "a wave must be finite"),
])  # fmt: skip
def test_what_is_refused(wave, options, error, message):
    with pytest.raises(error, match=message):
        log_mel(wave, **options)
