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
    unseen={
        "ten positions at most": "the checks have short sentences",
        "decode sees the last four tokens alone": "the checks write few tokens",
        "the variance 1e-5 at least": "the checks have no numbers whose variance is smaller",
        "the encoder's first norm twice": "its check has the same gain for all features, to be followed by hand",
    },
    equivalent=equivalent.EQUIVALENT,
    modules=("numpy.random", "torch", "tensorflow"),
)
