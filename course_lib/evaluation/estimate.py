"""A measured value and its confidence interval."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """A value and the ends of its confidence interval: fractions here, 0 to 100 for BLEU and chrF."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"
