"""Build the Transformer: the bank of its solutions."""

from tests.assignments.variants import Bank
from tests.assignments.variants.build_the_transformer import (
    equivalent,
    right,
    says,
    tricks,
    wrong_in_tensorflow,
    wrong_layers,
    wrong_parts,
    wrong_rate_and_decoding,
)

BANK = Bank(
    "build-the-transformer",
    right=right.VARIANTS,
    wrong=wrong_parts.VARIANTS
    + wrong_layers.VARIANTS
    + wrong_rate_and_decoding.VARIANTS
    + wrong_in_tensorflow.VARIANTS,
    tricks=tricks.VARIANTS,
    says=says.SAYS,
    equivalent=equivalent.EQUIVALENT,
    modules=("numpy.random", "torch", "tensorflow"),
)
