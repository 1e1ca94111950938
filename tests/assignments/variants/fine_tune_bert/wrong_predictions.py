"""What models predict that are less good than they should be, and predictions that are handed in wrongly."""

from tests.assignments.variants import Variant
from tests.assignments.variants.fine_tune_bert.changed import REFERENCE, predicted, recorded

T = 1.8416  # by which the reference's logits are divided

VARIANTS = [
    Variant(
        "counts of words",
        recorded("tfidf"),
        {"test-predictions": 3},
        "an accuracy of 0.713 and a log loss of 0.563, as they are",
    ),
    Variant(
        "a frozen encoder",
        recorded("frozen"),
        {"test-predictions": 2},
        "less accurate than a fine-tuned one, and a log loss of 0.53",
    ),
    Variant(
        "logits that are not divided by T",
        predicted(f"1 / (1 + (1 / p - 1) ** {T})"),
        {"test-predictions": 1},
        "too sure: a log loss of 0.53",
    ),
    Variant(
        "logits that are multiplied by T",
        predicted(f"1 / (1 + (1 / p - 1) ** {T * T})"),
        {"test-predictions": 3},
        "much too sure: a log loss of 0.84",
    ),
    Variant(
        "answers, not probabilities",
        predicted("(p >= 0.5) * 1.0"),
        {"test-predictions": 3},
        "the accuracy is right, and no answer is ever unsure",
    ),
    Variant(
        "the probability of the label 0",
        predicted("1 - p"),
        {"test-predictions": 1},
        "right the other way round",
    ),
    Variant(
        "the validation sentences in front",
        predicted("np.concatenate([p[:1000], p])"),
        {"test-predictions": 1},
        "4,000 probabilities, of which the last 3,000 are right",
    ),
    Variant(
        "another order of the sentences",
        predicted("np.random.default_rng(0).permutation(p)"),
        {"test-predictions": 7},
        "nothing says which probability belongs to which sentence",
    ),
    Variant(
        "in the order of their probability",
        predicted("np.sort(p)"),
        {"test-predictions": 7},
        "nothing says which probability belongs to which sentence",
    ),
    Variant(
        "one and the same probability",
        predicted("0 * p + 0.5"),
        {"test-predictions": 7},
        "always saying the same is right on half",
    ),
    Variant(
        "a line of the text lost",
        {"predictions": REFERENCE + '\nPREDICTIONS = PREDICTIONS.strip().partition("\\n")[2]'},
        {"test-predictions": 7},
        "2,925 probabilities: nothing says which are missing",
    ),
    Variant(
        "a letter of the text lost",
        {"predictions": REFERENCE + "\nPREDICTIONS = PREDICTIONS.strip()[1:]"},
        {"test-predictions": 7},
        "it is not what `pack` returned",
    ),
    Variant(
        "numbers, not a text",
        {"predictions": REFERENCE + "\nfrom course_lib.grading import unpack\nPREDICTIONS = unpack(PREDICTIONS)"},
        {"test-predictions": 7},
        "the probabilities are to be handed in as `pack` writes them",
    ),
    Variant(
        "nearly all on one side",
        predicted("p / 2"),
        {"test-predictions": 6},
        "half are right, and little is said with a great probability: a log loss below 0.66",
    ),
    Variant(
        "half as sure as it could be",
        predicted("0.5 + (p - 0.5) * 0.3"),
        {"test-predictions": 1},
        "the answers are right, and far too modest",
    ),
]
