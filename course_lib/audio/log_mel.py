"""A sound as a picture of its pitches over time, the log-mel spectrogram that Whisper reads (Radford et al. 2023, 2.2).

    wave -> frames of 25 ms, one each 10 ms -> the power of each frequency -> bands of the mel scale -> logarithm

The constants are Whisper's, and so are the numbers: `transformers`' WhisperFeatureExtractor gives the same.
"""

import numpy as np

from course_lib.checks import check_count

RATE = 16000  # samples a second
WINDOW = 400  # samples of a frame, 25 ms
HOP = 160  # samples from one frame to the next, 10 ms
N_MELS = 80  # bands
FLOOR = 1e-10  # the least power of a band, of which there is a logarithm
RANGE = 8.0  # powers of ten below the loudest band; what is softer is raised to it
FRAMES_A_SECOND = RATE // HOP

# The mel scale of Slaney's Auditory Toolbox (1998): linear up to 1000 Hz, which are 15 mels, logarithmic above.
_HERTZ_A_MEL = 200 / 3
_BREAK = 1000.0
_STEP = np.log(6.4) / 27  # of the logarithm, for each mel above the break


def log_mel(wave, n_samples: int | None = None, n_mels: int = N_MELS) -> np.ndarray:
    """The log-mel spectrogram of one sound, or of several of one length.

    Each band's power is brought to its logarithm, what lies 8 powers of ten or more below the loudest of the sound is
    raised to there, and x becomes (x + 4) / 4: a loud sound fills about -1 ... 1.

    Parameters
    ----------
    wave : numbers of floating point in -1 ... 1, 16,000 a second, shape (n,) or (B, n)
    n_samples : fill up with silence or cut to so many samples; None: as it is
    n_mels : bands

    Returns
    -------
    float32, shape (n_mels, F) or (B, n_mels, F), F = n // 160; frame f has its middle at f hundredths of a second.

    Raises
    ------
    TypeError : a wave that is no floating point, such as the 16-bit integers of a file.
    ValueError : other axes, fewer samples than a hop, numbers that are not finite, a size below one.
    """
    wave = np.asarray(wave)
    if wave.dtype.kind != "f":
        advice = "divide 16-bit integers by 32768"
        raise TypeError(f"a wave must be numbers of floating point in -1 ... 1, got {wave.dtype}; {advice}")
    if wave.ndim not in (1, 2):
        raise ValueError(f"a wave must have shape (n,) or (B, n), of one channel each; got {wave.shape}")
    if n_samples is not None:
        check_count("n_samples", n_samples)
        missing = max(n_samples - wave.shape[-1], 0)
        wave = np.pad(wave[..., :n_samples], [(0, 0)] * (wave.ndim - 1) + [(0, missing)])
    if wave.shape[-1] < HOP:
        raise ValueError(f"a wave needs {HOP} samples or more, a frame's worth; got {wave.shape[-1]}")
    if not np.isfinite(wave).all():
        raise ValueError("a wave must be finite, got nan or infinity")
    filters = mel_filters(n_mels)
    if wave.ndim == 1:
        return _logarithm(filters @ power_spectrogram(wave))
    # one by one: the frames of a batch would take three times the memory of all that is asked for
    return np.array([_logarithm(filters @ power_spectrogram(one)) for one in wave], np.float32).reshape(
        len(wave), n_mels, wave.shape[1] // HOP
    )


def _logarithm(mels):
    """Powers of the bands (n_mels, F) as Whisper reads them."""
    logs = np.log10(np.maximum(mels, FLOOR))
    logs = np.maximum(logs, logs.max() - RANGE)
    return ((logs + 4.0) / 4.0).astype(np.float32)


def power_spectrogram(wave) -> np.ndarray:
    """The power of each frequency in each frame: (..., n) -> float64 (..., 201, n // 160), of 0, 40, ... 8000 Hz.

    A frame's samples are weighted by Hann's window, cos^2 around the middle. At both ends the wave is mirrored, so that
    the first frame has its middle at the first sample.
    """
    wave = np.asarray(wave, dtype=np.float64)
    around = [(0, 0)] * (wave.ndim - 1) + [(WINDOW // 2, WINDOW // 2)]
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(wave, around, mode="reflect"), WINDOW, axis=-1)
    frames = frames[..., ::HOP, :][..., : wave.shape[-1] // HOP, :]  # (..., F, WINDOW)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    spectrum = np.fft.rfft(frames * window)  # (..., F, WINDOW / 2 + 1)
    return np.swapaxes(spectrum.real**2 + spectrum.imag**2, -1, -2)


def mel_filters(n_mels: int = N_MELS) -> np.ndarray:
    """How much of each frequency each band takes: triangles of area 1 that overlap by half, equally far apart in mels.

    Returns
    -------
    float64, shape (n_mels, 201), for the frequencies of `power_spectrogram`.

    Raises
    ------
    ValueError : fewer than one band.
    """
    check_count("n_mels", n_mels)
    frequencies = np.linspace(0.0, RATE / 2, WINDOW // 2 + 1)
    corners = mel_to_hertz(np.linspace(0.0, hertz_to_mel(RATE / 2), n_mels + 2))
    low, middle, high = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    return np.maximum(np.minimum(rising, falling), 0.0) * 2.0 / (high - low)


def hertz_to_mel(hertz):
    """Frequencies to the mel scale, on which equal distances sound equally far apart; of any shape."""
    hertz = np.asarray(hertz, dtype=np.float64)
    above = _BREAK / _HERTZ_A_MEL + np.log(np.maximum(hertz, _BREAK) / _BREAK) / _STEP
    return np.where(hertz < _BREAK, hertz / _HERTZ_A_MEL, above)


def mel_to_hertz(mels):
    """The inverse of `hertz_to_mel`."""
    mels, at_break = np.asarray(mels, dtype=np.float64), _BREAK / _HERTZ_A_MEL
    above = _BREAK * np.exp(_STEP * (np.maximum(mels, at_break) - at_break))
    return np.where(mels < at_break, mels * _HERTZ_A_MEL, above)
