"""A question-answering system: the bank of its solutions."""

from tests.assignments.variants import Bank
from tests.assignments.variants.question_answering import (
    equivalent,
    right,
    says,
    tricks,
    wrong_measures,
    wrong_spans_and_system,
    wrong_tokens_and_windows,
)

BANK = Bank(
    "question-answering",
    right=right.VARIANTS,
    wrong=wrong_measures.VARIANTS + wrong_tokens_and_windows.VARIANTS + wrong_spans_and_system.VARIANTS,
    tricks=tricks.VARIANTS,
    says=says.SAYS,
    unseen=says.UNSEEN,
    equivalent=equivalent.EQUIVALENT,
)
