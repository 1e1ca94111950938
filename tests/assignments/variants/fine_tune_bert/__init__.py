"""Fine-tune BERT for sentiment: the bank of its solutions."""

from tests.assignments.variants import Bank
from tests.assignments.variants.fine_tune_bert import (
    equivalent,
    right,
    says,
    tricks,
    wrong_predictions,
    wrong_temperature_and_interval,
    wrong_texts_and_rates,
)

BANK = Bank(
    "fine-tune-bert",
    right=right.VARIANTS,
    wrong=wrong_texts_and_rates.VARIANTS + wrong_temperature_and_interval.VARIANTS + wrong_predictions.VARIANTS,
    tricks=tricks.VARIANTS,
    says=says.SAYS,
    unseen=says.UNSEEN,
    equivalent=equivalent.EQUIVALENT,
    modules=("numpy.random", "scipy.optimize", "scipy.special"),
)
