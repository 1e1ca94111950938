"""Submissions that do not get far, or try what is closed."""

from tests.assignments.variants import Variant

EVERYTHING = {
    "test-additive-scores": 4,
    "test-attend": 5,
    "test-annotations": 4,
    "test-decoder-step": 4,
    "test-masked-loss": 4,
    "test-greedy": 4,
}
VARIANTS = [
    Variant("no framework imported", {"framework": ""}, EVERYTHING, "nothing runs"),
    Variant(
        "returns None",
        {"attend": "def attend(scores, h, mask):\n    torch.softmax(scores, 1)"},
        {"test-attend": 5},
        "no result; the decoder's step is tried with a right one",
    ),
    Variant(
        "imports the library's scores",
        {"additive-scores": "from course_lib.torch import AdditiveScore"},
        {"test-additive-scores": 4},
        "the import is closed",
    ),
    Variant(
        "an endless loop",
        {"greedy": "def greedy(step, state, start, end_id, max_len):\n    while True:\n        pass"},
        {"test-greedy": 4},
        "every test of the part is stopped",
    ),
]
