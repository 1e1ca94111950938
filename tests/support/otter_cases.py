"""The head of every file of tests for otter-grader: its own cases in the place of the course's `Score`."""

import numpy as np
from otter.test_files import test_case

OK_FORMAT = False
ANSWERS = (
    "softmax", "padding_mask", "causal_mask", "attention", "split_heads", "merge_heads", "multi_head_attention",
)  # fmt: skip


class Cases:
    """Makes a case of otter's of every test; one that fails is tried again with right versions of earlier parts."""

    def __init__(self, points, follow_through=None, namespace=None):
        self.right = follow_through or {}

    def rng(self, number):
        """The same inputs as `Score` has."""
        return np.random.default_rng([0, number])

    def check(self, points, what):
        """Decorate a test worth `points`."""

        def add(test):
            def case(env):
                globals().update({name: env[name] for name in ANSWERS if name in env})
                try:
                    test()
                except Exception:
                    if not self.right:
                        raise
                    globals().update(self.right)
                    test()

            number = sum(name.startswith("case_") for name in globals())
            globals()[f"case_{number}"] = test_case(name=what, points=points, hidden=True)(case)

        return add

    def total(self):
        """Nothing: otter adds the points."""
