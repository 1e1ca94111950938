"""Public checks that stop and explain, and a score of hidden checks that nbgrader reads as it is meant."""

import contextlib
import math
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from course_lib.grading.compare import CheckFailed
from course_lib.grading.contain import LIMIT_S, Stopped, contained

SEED = "COURSE_GRADING_SEED"  # the environment variable that gives the hidden tests other inputs


def seeded(number: int) -> np.random.Generator:
    """A new generator of random inputs, the same for the same number and COURSE_GRADING_SEED (0 when unset).

    Raises:
        ValueError: where COURSE_GRADING_SEED is no whole number from 0.
    """
    seed = os.environ.get(SEED, "0")
    if not seed.isdecimal():
        raise ValueError(f"{SEED} is {seed!r}; set it to a whole number, such as 2027, or unset it.")
    return np.random.default_rng([int(seed), number])


def check(what: str, limit_s: float = LIMIT_S):
    """Decorate a test function to run it at once, and say what holds or what is wrong.

        @check("equal scores share the weight")
        def _():
            expect_array(softmax(np.zeros(2)), [0.5, 0.5])

    Raises:
        CheckFailed: where the test does, with the check's name in front.
    """

    def run(test) -> None:
        try:
            with contained(limit_s):
                test()
        except CheckFailed as failure:
            raise CheckFailed(f"{what}\n{failure}") from None
        print(f"ok  {what}")

    return run


class Slip(NamedTuple):
    """A mistake that many tests would notice, and what undoes it, so that it is charged once.

        Slip("weights before context", 0.5, "attend", lambda attend: lambda *given: attend(*given)[::-1])

    what: the mistake, for the report.
    price: the points that it costs.
    name: the student's function.
    undo: given that function, returns one without the mistake; what else is wrong with it must stay wrong.
    """

    what: str
    price: float
    name: str
    undo: Callable


class Score:
    """Partial credit for one graded cell: decorate the tests with `check`, end the cell with `total()`.

        def hidden_tests():  # so that no name of the tests can hide a student's own
            score = Score(4, follow_through={"softmax": right_softmax}, namespace=globals())

            @score.check(1, "values")
            def _():
                x = score.rng(101).normal(size=(3, 5))
                ...

            return score.total()

        hidden_tests()

    A test that fails is tried once more with the functions of `follow_through` in the place of the
    student's own. A mistake made in one part is then charged in that part, and not again in every part
    that builds on it.

    Where tests fail, each of the `slips` is undone in turn, and all tests run again. If that earns more than the slip's
    price, the price is charged in the place of what the tests would have taken: one mistake, one price.

    A test that would notice what earlier ones have charged can ask for `lost`, the points that these did not give. It
    holds within a test.

    Args:
        points: what the cell is worth; the points of its checks must add up to it.
        follow_through: names of functions written in earlier parts, and right versions of them.
        namespace: the notebook's `globals()`, where the names are replaced for another try.
        limit_s: seconds given to each try of each check.
        slips: mistakes in the function under test that have one price.

    Raises:
        ValueError: where `follow_through` or `slips` come without `namespace`, or (from `total`) where the points of
            the checks do not add up to `points`.
        CheckFailed: where the notebook has switched off the display of results. nbgrader would then see no
            score, and give full marks.
    """

    def __init__(self, points: float, follow_through=None, namespace: dict | None = None, limit_s=LIMIT_S, slips=()):
        if (follow_through or slips) and namespace is None:
            raise ValueError("follow_through and slips need namespace=globals(), where the names are to be replaced.")
        _make_results_readable()
        self.points = float(points)
        self.limit_s = limit_s
        self.follow_through = dict(follow_through or {})
        self.namespace = namespace if namespace is not None else {}
        self.slips = tuple(slips)
        self.lost = 0.0
        self._endless = False
        self._tests: list[tuple[float, str, Callable]] = []  # of, what, the test
        self.results: list[tuple[float, float, str, str]] = []  # earned, of, what, why

    def check(self, points: float, what: str):
        """Decorate a test worth `points`; it runs at once and earns all of them or none."""

        def run(test) -> None:
            self._tests.append((float(points), what, test))
            self.results.append(self._result(*self._tests[-1], {}))

        return run

    def rng(self, number: int) -> np.random.Generator:
        """See `seeded`."""
        return seeded(number)

    def total(self) -> float:
        """Print one line per check, and return the points earned: a plain float from 0 to `points`."""
        available = math.fsum(of for _, of, _, _ in self.results)
        if not math.isclose(available, self.points):
            raise ValueError(f"The checks of this cell are worth {available:g} points, the cell {self.points:g}.")
        slips = self._undo_slips()
        earned = min(max(_earned(self.results, slips), 0.0), self.points)
        print(f"{earned:g} of {self.points:g} points")
        for got, of, what, why in self.results:
            print(f"  {got:g} of {of:g}  {what}")
            for line in why.splitlines():
                print(f"            {line}")
        for slip in slips:
            print(f"  -{slip.price:g}  {slip.what} (charged here alone: the tests above ran with this put right)")
        return float(earned)

    def _undo_slips(self) -> list[Slip]:
        """The slips whose undoing earned more than their price; the results are then those without them."""
        undone, functions = [], {}
        while not self._endless and _earned(self.results, undone) < self.points:
            best = None
            for slip in self.slips:
                if slip in undone or slip.name not in self.namespace:
                    continue
                repaired = functions | {slip.name: slip.undo(functions.get(slip.name, self.namespace[slip.name]))}
                self.lost = 0.0
                results = [self._result(*test, repaired) for test in self._tests]
                earned = _earned(results, [*undone, slip])
                if earned > (best[0] if best else _earned(self.results, undone)):
                    best = earned, slip, repaired, results
            if best is None:
                break
            _, slip, functions, self.results = best
            undone.append(slip)
        return undone

    def _result(self, points: float, what: str, test: Callable, functions: dict) -> tuple[float, float, str, str]:
        """What a test earned with these functions in the place of the student's own, and why."""
        tries = [functions, functions | self.follow_through] if self.follow_through else [functions]
        if self._endless:
            tries.reverse()  # the student's own versions of earlier parts may hang in every check
        reasons = {}
        for replaced in tries:
            with _replaced(self.namespace, replaced):
                why = self._failure(test)
            if not why:
                note = "" if replaced is functions else "with right versions of the earlier parts"
                return points, points, what, note
            reasons[replaced is functions] = why
        self.lost += points
        return 0.0, points, what, reasons[True]

    def _failure(self, test) -> str:
        try:
            with contained(self.limit_s):
                test()
        except CheckFailed as failure:
            self._endless |= isinstance(failure, Stopped)
            return str(failure) or "failed"
        return ""


def _earned(results: list[tuple[float, float, str, str]], slips: list[Slip]) -> float:
    return math.fsum(got for got, _, _, _ in results) - math.fsum(slip.price for slip in slips)


@contextlib.contextmanager
def _replaced(namespace: dict, functions: dict):
    before = {name: namespace[name] for name in functions if name in namespace}
    namespace.update(functions)
    try:
        yield
    finally:
        for name in functions:
            namespace.pop(name, None)
        namespace.update(before)


def _make_results_readable() -> None:
    """Undo notebook-wide display settings that would change or hide the number nbgrader reads."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    shell.display_formatter.formatters["text/plain"].float_precision = ""
    if shell.ast_node_interactivity == "none":
        shell.ast_node_interactivity = "last_expr"
        raise CheckFailed(
            "This notebook sets ast_node_interactivity to 'none', which hides the score from nbgrader. Remove "
            "that line."
        )
