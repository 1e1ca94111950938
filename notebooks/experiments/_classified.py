"""What the fine-tunings report of their predictions: losses, calibration, and the intervals of several seeds."""

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import t

from course_lib.evaluation.classification import accuracy
from course_lib.evaluation.estimate import Estimate


def nll(logits, labels) -> float:
    """The mean negative log-likelihood of the labels, nats."""
    return torch.nn.functional.cross_entropy(torch.tensor(logits).double(), torch.tensor(labels)).item()


def scored(logits, labels) -> dict:
    """What is recorded of the test texts: accuracy with its interval, loss, and which of them were right."""
    answers = logits.argmax(-1)
    return {
        "accuracy": [round(x, 4) for x in accuracy(answers, labels)],
        "test_nll": round(nll(logits, labels), 4),
        "right": np.packbits(answers == labels).tobytes().hex(),
    }


def unpacked(right: str, size: int) -> np.ndarray:
    """Which texts a recorded run was right on, boolean (size,)."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(right), np.uint8)).astype(bool)[:size]


def temperature(logits, labels) -> float:
    """What to divide logits by for the lowest loss on these labels, the validation sentences' (Guo et al. 2017)."""
    return float(np.exp(minimize_scalar(lambda x: nll(logits / np.exp(x), labels), bounds=(-6, 6)).x))


def calibration(logits, labels) -> list:
    """For probabilities of the answer from 0.5 to 1, in steps of a tenth: how many, their mean, and how many right."""
    p = torch.softmax(torch.tensor(logits).double(), -1).max(-1).values.numpy()
    bins = np.minimum((p * 10).astype(int) - 5, 4)
    right = logits.argmax(-1) == labels
    return [
        [
            int((bins == k).sum()),
            round(float(p[bins == k].mean()) if (bins == k).any() else 0, 4),
            int(right[bins == k].sum()),
        ]
        for k in range(5)
    ]


def across(right) -> Estimate:
    """The mean of S seeds on N sentences, (S, N), and its 95% interval, which covers both draws.

    The variance is that of the sentences' means over N, plus that of the seeds' means over S. Each is itself estimated,
    the second from S numbers alone, so the half-width is Student's t times its root, with Satterthwaite's degrees of
    freedom (1946): about N where the sentences dominate (1.96), about S - 1 where the seeds do (4.3 for three).
    """
    right = np.asarray(right, dtype=float)
    count, size = right.shape
    parts, freedom = [right.mean(0).var(ddof=1) / size], [size - 1]
    if count > 1:
        parts, freedom = [*parts, right.mean(1).var(ddof=1) / count], [*freedom, count - 1]
    variance = sum(parts)
    spread = sum(part**2 / n for part, n in zip(parts, freedom, strict=True))
    half = t.ppf(0.975, variance**2 / spread) * np.sqrt(variance) if variance else 0.0
    return Estimate(float(right.mean()), float(right.mean() - half), float(right.mean() + half))
