"""Submissions that do not get far, or try what is closed."""

from tests.assignments.variants import Variant

EVERYTHING = {
    "parameters": 3,
    "position-ids": 3,
    "embed": 4,
    "student-state": 3,
    "distillation-loss": 6,
    "difference": 4,
}
OF_TENSORS = {f"test-{name}": EVERYTHING[name] for name in ("position-ids", "embed", "distillation-loss")}
YES = """
class Yes({of}):
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
    __hash__ = None
    def __sub__(self, other):
        return self
    __rsub__ = __add__ = __radd__ = __sub__

def parameters(*sizes, **more):
    return Yes()
"""
VARIANTS = [
    Variant("no framework imported", {"framework": ""}, OF_TENSORS, "the other parts need none"),
    Variant(
        "an answer that equals everything",
        {"parameters": YES.format(of="")},
        {"test-parameters": 3},
        "it is no number",
    ),
    Variant(
        "a number that equals everything",
        {"parameters": YES.format(of="int")},
        {"test-parameters": 3},
        "the number in it is compared",
    ),
    Variant(
        "imports the library's embeddings",
        {"embed": "from course_lib.torch.models.albert import AlbertModel"},
        {"test-embed": 4},
        "the import is closed",
    ),
    Variant(
        "returns None",
        {"difference": "def difference(a, b):\n    a.mean()"},
        {"test-difference": 4},
        "no result",
    ),
    Variant(
        "an endless loop",
        {"front": "def front(models):\n    while True:\n        pass"},
        {"test-front": 2},
        "every test of the part is stopped",
    ),
]
