"""Submissions that try for points they did not earn, or end the notebook. Each earns what its answers deserve."""

from tests.assignments.variants import Variant
from tests.assignments.variants.fine_tune_bert.changed import REFERENCE, body

VARIANTS = [
    Variant(
        "returns None",
        {"mean-of-tokens": "def mean_of_tokens(hidden, mask):\n    hidden.mean(axis=1)"},
        {"test-mean-of-tokens": 3},
        "no result",
    ),
    Variant(
        "imports the library's rates",
        {
            "layer-rates": """
            from course_lib.training.weight_names import scales_of
            def layer_rates(names, peak, decay):
                return dict(zip(names, [peak * scale for scale in scales_of(names, decay)]))
            """
        },
        {"test-layer-rates": 4},
        "the import is closed",
    ),
    Variant(
        "imports the library's cut",
        body(
            "first-and-last",
            "from course_lib.text.padding import head_and_tail",
            "return head_and_tail(ids, max_len, (max_len + 1) // 2)",
        ),
        {"test-first-and-last": 3},
        "the import is closed",
    ),
    Variant(
        "remembers the public examples",
        body(
            "interval",
            "if (right_a == right_b).all():",
            "    return 0.0, 0.0, 0.0",
            "return (0.2, -0.192, 0.592) if len(right_a) == 10 else (1 / 3, 1 / 3 - 0.46198, 1 / 3 + 0.46198)",
        ),
        {"test-interval": 3.5},
        "it passes every public check; low is below high, but what it says is never true of other sentences",
    ),
    Variant(
        "an endless loop",
        body("temperature", "while True:", "    pass"),
        {"test-temperature": 4},
        "every test of the part is stopped",
    ),
    Variant(
        "ends the notebook",
        body("layer-rates", "raise SystemExit"),
        {"test-layer-rates": 4},
        "an exit is an ordinary failure",
    ),
    Variant(
        "replaces what reads the predictions",
        {"predictions": 'PREDICTIONS = ""\ndef unpack(*given):\n    return np.ones(3000)'},
        {"test-predictions": 7},
        "the hidden tests take their own",
    ),
    Variant(
        "a text that claims to have the right length",
        {
            "predictions": f"{REFERENCE}\nclass Text(str):\n    def split(self): return ['x' * 4000]\n"
            "PREDICTIONS = Text('')"
        },
        {"test-predictions": 7},
        "the letter x everywhere, which says the same of every sentence",
    ),
]
