"""Submissions that try for points they did not earn, or end the notebook. Each earns what its answers deserve."""

from tests.assignments.variants import Variant
from tests.assignments.variants.question_answering.changed import body, measures

VARIANTS = [
    Variant(
        "returns None",
        body("answer-tokens", "tokens = np.argmax(offsets[:, 0] == answer[0])"),
        {"test-answer-tokens": 4},
        "no result",
    ),
    Variant(
        "imports the library's measures",
        measures(
            ("from course_lib.evaluation import answers as known", "return known.exact_match(said, answers)"),
            ("from course_lib.evaluation.answers import answer_f1", "return answer_f1(said, answers)"),
        ),
        {"test-measures": 3},
        "the import is closed",
    ),
    Variant(
        "imports the library's words",
        {
            "normalise": "from course_lib.evaluation.answers import normalized\ndef normalise(text):\n"
            "    return normalized(text).split()"
        },
        {"test-normalise": 2},
        "the import is closed",
    ),
    Variant(
        "an endless loop",
        body("windows", "while True:", "    pass"),
        {"test-windows": 5},
        "every test of the part is stopped",
    ),
    Variant("ends the notebook", body("scores-at", "raise SystemExit"), {"test-scores-at": 2}, "an ordinary failure"),
    Variant(
        "an answer that equals everything",
        {
            "normalise": "class Words(list):\n    def __eq__(self, other):\n        return True\n"
            "    __hash__ = None\ndef normalise(text):\n    return Words(['x'])"
        },
        {"test-normalise": 2},
        "a plain list of the words is compared",
    ),
    Variant(
        "words that equal everything",
        {
            "normalise": "class Word(str):\n    def __eq__(self, other):\n        return True\n"
            "    __hash__ = None\n    def __str__(self):\n        return self\n"
            "def normalise(text):\n    return [Word('x') for _ in text.split()]"
        },
        {"test-normalise": 2},
        "plain texts of the words are compared",
    ),
    Variant(
        "remembers the public examples",
        body("choose-threshold", "return -1.0 if len(margins) == 4 and abs(margins[1]) == 1 else -np.inf"),
        {"test-choose-threshold": 2},
        "no other questions have this threshold",
    ),
    Variant(
        "replaces what holds the scores of the real model",
        {
            "find-answer": "def find_answer(context, windows, longest):\n    return asked['answers'][0], 0.0\n"
            "asked = {'answers': ['']}"
        },
        {"test-find-answer": 3},
        "the hidden tests have texts of their own",
    ),
]
