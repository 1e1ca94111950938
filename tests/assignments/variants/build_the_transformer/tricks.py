"""Submissions that do not get far, or try what is closed."""

from tests.assignments.variants import Variant

EVERYTHING = {
    "test-positions": 3,
    "test-masks": 4,
    "test-add-and-norm": 3,
    "test-feed-forward": 2,
    "test-encoder-layer": 3,
    "test-decoder-layer": 5,
    "test-greedy": 3,
}
VARIANTS = [
    Variant("no framework imported", {"framework": ""}, EVERYTHING, "nothing runs but the plain numbers of part 7"),
    Variant(
        "returns None",
        {"add-and-norm": "def add_and_norm(x, sublayer, gain, bias):\n    x + sublayer"},
        {"test-add-and-norm": 3},
        "no result; both layers are tried with a right one",
    ),
    Variant(
        "imports the library's layer",
        {"encoder-layer": "from course_lib.torch import EncoderLayer"},
        {"test-encoder-layer": 3},
        "the import is closed",
    ),
    Variant(
        "an endless loop",
        {"greedy": "def greedy(decode, source, start_id, end_id, max_len):\n    while True:\n        pass"},
        {"test-greedy": 3},
        "every test of the part is stopped",
    ),
]
