"""Attention from scratch: the bank of its solutions."""

from tests.assignments.variants import Bank
from tests.assignments.variants.attention_from_scratch import (
    equivalent,
    right,
    says,
    tricks,
    wrong_attention,
    wrong_heads,
    wrong_softmax_and_masks,
)

BANK = Bank(
    "attention-from-scratch",
    right=right.VARIANTS,
    wrong=wrong_softmax_and_masks.VARIANTS + wrong_attention.VARIANTS + wrong_heads.VARIANTS,
    tricks=tricks.VARIANTS,
    says=says.SAYS,
    unseen=says.UNSEEN,
    equivalent=equivalent.EQUIVALENT,
)
