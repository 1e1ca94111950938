"""The family compared: the bank of its solutions."""

from tests.assignments.variants import Bank
from tests.assignments.variants.the_family_compared import (
    equivalent,
    right,
    says,
    tricks,
    wrong_parts,
    wrong_teaching_and_comparing,
)

BANK = Bank(
    "the-family-compared",
    right=right.VARIANTS,
    wrong=wrong_parts.VARIANTS + wrong_teaching_and_comparing.VARIANTS,
    tricks=tricks.VARIANTS,
    says=says.SAYS,
    unseen=says.UNSEEN,
    equivalent=equivalent.EQUIVALENT,
    modules=("numpy.random", "torch", "tensorflow"),
)
