"""Attention for an RNN: the bank of its solutions."""

from tests.assignments.variants import Bank
from tests.assignments.variants.attention_for_an_rnn import (
    equivalent,
    right,
    says,
    tricks,
    wrong_encoder_and_step,
    wrong_in_tensorflow,
    wrong_loss_and_decoding,
    wrong_scores_and_means,
)

BANK = Bank(
    "attention-for-an-rnn",
    right=right.VARIANTS,
    wrong=wrong_scores_and_means.VARIANTS
    + wrong_encoder_and_step.VARIANTS
    + wrong_loss_and_decoding.VARIANTS
    + wrong_in_tensorflow.VARIANTS,
    tricks=tricks.VARIANTS,
    says=says.SAYS,
    equivalent=equivalent.EQUIVALENT,
    modules=("numpy.random", "torch", "tensorflow"),
)
