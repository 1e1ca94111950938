"""All banks. An assignment without one fails `test_every_assignment_has_a_bank`."""

from tests.assignments.variants import (
    attention_for_an_rnn,
    attention_from_scratch,
    build_the_transformer,
    fine_tune_bert,
    question_answering,
    the_family_compared,
)

BANKS = [
    attention_from_scratch.BANK,
    attention_for_an_rnn.BANK,
    build_the_transformer.BANK,
    fine_tune_bert.BANK,
    the_family_compared.BANK,
    question_answering.BANK,
]
