"""How many bits a model needs for a byte of text: a measure that does not depend on how the text is cut to tokens."""

import bz2
import lzma
import math

import numpy as np
from scipy.stats import t

from course_lib.evaluation.estimate import Estimate

COMPRESSORS = {
    "xz": lambda text: lzma.compress(text, preset=9 | lzma.PRESET_EXTREME),  # looks back 64 MiB
    "bzip2": lambda text: bz2.compress(text, 9),  # in blocks of 900,000 bytes, each for itself
}


def bits_per_byte(nats, n_bytes) -> Estimate:
    """The bits of a byte, and the interval that covers the draw of the texts and that of the seeds.

    The bits of all texts are divided by the bytes of all texts. Differences of the nats of two models, text by text,
    give the difference of their bits per byte with its own interval.

    Parameters
    ----------
    nats : the negative log-probability of each text, (N,), or of S trainings, (S, N)
    n_bytes : the length of each text, (N,)

    Returns
    -------
    Estimate : the mean over the trainings, with its 95% interval. The variance is that over the N texts of their
        distance from the common ratio, plus that over the S trainings; Student's t has Satterthwaite's degrees of
        freedom (1946), about N - 1 where the texts dominate and S - 1 where the trainings do. One training has no
        variance of its own: then the interval covers the texts alone.

    Raises
    ------
    ValueError : fewer than two texts, a text without a byte, or other shapes.
    """
    bits, n_bytes = np.atleast_2d(np.asarray(nats, dtype=np.float64)) / math.log(2), np.asarray(n_bytes)
    if bits.ndim != 2 or n_bytes.shape != bits.shape[1:] or len(n_bytes) < 2:
        shapes = f"{bits.shape} and {n_bytes.shape}"
        raise ValueError(f"nats must have shape (S, N) and n_bytes (N,), N at least 2; got {shapes}")
    if n_bytes.min() < 1:
        raise ValueError("each text must have at least one byte")
    ratios = bits.sum(axis=1) / n_bytes.sum()  # (S,)
    apart = (bits.mean(axis=0) - ratios.mean() * n_bytes) / n_bytes.mean()  # (N,), 0 on average
    parts, freedom = [apart.var(ddof=1) / len(apart)], [len(apart) - 1]
    if len(ratios) > 1:
        parts, freedom = [*parts, ratios.var(ddof=1) / len(ratios)], [*freedom, len(ratios) - 1]
    variance = sum(parts)
    spread = sum(part**2 / n for part, n in zip(parts, freedom, strict=True))
    half = t.ppf(0.975, variance**2 / spread) * math.sqrt(variance) if spread > 0 else 0.0
    return Estimate(float(ratios.mean()), float(ratios.mean() - half), float(ratios.mean() + half))


def compressed_bits(name: str, text: bytes, before: bytes = b"") -> int:
    """The bits by which a compressor's file grows when a text is appended to what stood before.

    Parameters
    ----------
    name : one of COMPRESSORS
    text : what is measured
    before : what the compressor may learn from, as far as it looks back

    Raises
    ------
    ValueError : no such compressor.
    """
    if name not in COMPRESSORS:
        raise ValueError(f"name must be one of {', '.join(COMPRESSORS)}, got {name!r}")
    compress = COMPRESSORS[name]
    return 8 * (len(compress(before + text)) - len(compress(before)))
