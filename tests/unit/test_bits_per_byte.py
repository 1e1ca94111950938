"""Bits per byte by hand, their interval by simulation, and what compressors add."""

import lzma

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.evaluation.bits_per_byte import COMPRESSORS, bits_per_byte, compressed_bits


def test_bits_are_summed_before_they_are_divided():
    nats = np.log(2) * np.array([8.0, 30.0])
    assert bits_per_byte(nats, [4, 6]).value == pytest.approx(3.8)  # and not the mean of 2 and 5


def test_trainings_are_averaged():
    nats = np.log(2) * np.array([[8.0, 30.0], [10.0, 32.0]])
    assert bits_per_byte(nats, [4, 6]).value == pytest.approx(4.0)


def test_equal_ratios_have_no_interval():
    value, low, high = bits_per_byte(np.log(2) * np.array([4.0, 8.0, 20.0]), [2, 4, 10])
    assert_allclose([value, low, high], 2, rtol=1e-12)


def test_the_interval_of_texts_is_students():
    """All of one length: the interval of a mean."""
    bits = np.array([10.0, 14.0, 12.0, 20.0])
    value, low, high = bits_per_byte(np.log(2) * bits, [5, 5, 5, 5])
    half = 3.182446 * (bits / 5).std(ddof=1) / 2
    assert_allclose([value, high - value, value - low], [2.8, half, half], rtol=1e-6)


def test_the_interval_of_trainings_is_students():
    """Texts that do not differ: three trainings are all the luck there is."""
    value, low, high = bits_per_byte(np.log(2) * np.outer([10.0, 11.0, 12.0], np.ones(50)), np.full(50, 5))
    half = 4.302653 * 0.2 / np.sqrt(3)
    assert_allclose([value, high - value, value - low], [2.2, half, half], rtol=1e-6)


def test_the_interval_covers_both_draws():
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):
        sizes = rng.integers(200, 2000, 60)
        own, luck = rng.normal(2.0, 0.2, 60), rng.normal(0, 0.02, (3, 1))
        covered.append(bits_per_byte(np.log(2) * (own + luck) * sizes, sizes))
    assert 0.9 < np.mean([low < 2 < high for _, low, high in covered]) < 0.99


def test_differences_of_two_models_have_a_narrower_interval_than_either():
    rng = np.random.default_rng(1)
    sizes, hard = rng.integers(200, 2000, 40), rng.normal(2.0, 0.3, 40)
    first, second = hard * sizes, (hard - 0.1 + rng.normal(0, 0.01, 40)) * sizes
    difference, own = bits_per_byte(second - first, sizes), bits_per_byte(first, sizes)
    assert difference.high < 0 and difference.high - difference.low < 0.2 * (own.high - own.low)


@pytest.mark.parametrize(
    ("nats", "n_bytes", "message"),
    [
        ([1.0], [3], "N at least 2"),
        ([[1.0, 2.0]], [3, 4, 5], "must have shape"),
        ([[[1.0, 2.0]]], [3, 4], "must have shape"),
        ([1.0, 2.0], [3, 0], "at least one byte"),
    ],
)
def test_what_is_no_measurement(nats, n_bytes, message):
    with pytest.raises(ValueError, match=message):
        bits_per_byte(nats, n_bytes)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_compressor_gains_by_what_it_has_read(name):
    rng = np.random.default_rng(0)
    text = bytes(rng.integers(97, 123, 3000).tolist())
    alone, known = compressed_bits(name, text), compressed_bits(name, text, before=text)
    assert known < 0.4 * alone and 4.0 < alone / len(text) < 6.0


def test_bits_are_those_of_the_file():
    assert compressed_bits("xz", b"banana" * 9, b"ana") == 8 * (
        len(lzma.compress(b"ana" + b"banana" * 9, preset=9 | lzma.PRESET_EXTREME))
        - len(lzma.compress(b"ana", preset=9 | lzma.PRESET_EXTREME))
    )


def test_an_unknown_compressor():
    with pytest.raises(ValueError, match="one of xz, bzip2"):
        compressed_bits("zip", b"text")
