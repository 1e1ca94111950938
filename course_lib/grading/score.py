"""Public checks that stop and explain, and a score of hidden checks that nbgrader reads as it is meant."""

import contextlib
import math
import sys

from course_lib.grading.compare import CheckFailed
from course_lib.grading.contain import LIMIT_S, Stopped, contained


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


class Score:
    """Partial credit for one graded cell: decorate the tests with `check`, end the cell with `total()`.

        score = Score(4, follow_through={"softmax": right_softmax}, namespace=globals())

        @score.check(1, "values")
        def _():
            ...

        score.total()

    A test that fails is tried once more with the functions of `follow_through` in the place of the
    student's own. A mistake made in one part is then charged in that part, and not again in every part
    that builds on it.

    Args:
        points: what the cell is worth; the points of its checks must add up to it.
        follow_through: names of functions written in earlier parts, and right versions of them.
        namespace: the notebook's `globals()`, where the names are replaced for the second try.
        limit_s: seconds given to each try of each check.

    Raises:
        ValueError: where `follow_through` comes without `namespace`, or (from `total`) where the points of
            the checks do not add up to `points`.
        CheckFailed: where the notebook has switched off the display of results. nbgrader would then see no
            score, and give full marks.
    """

    def __init__(self, points: float, follow_through=None, namespace: dict | None = None, limit_s=LIMIT_S):
        if follow_through and namespace is None:
            raise ValueError("follow_through needs namespace=globals(), where the names are to be replaced.")
        _make_results_readable()
        self.points = float(points)
        self.limit_s = limit_s
        self.follow_through = dict(follow_through or {})
        self.namespace = namespace if namespace is not None else {}
        self._endless = False
        self.results: list[tuple[float, float, str, str]] = []  # earned, of, what, why

    def check(self, points: float, what: str):
        """Decorate a test worth `points`; it runs at once and earns all of them or none."""

        def run(test) -> None:
            tries = [{}, self.follow_through] if self.follow_through else [{}]
            if self._endless:
                tries.reverse()  # the student's own versions of earlier parts may hang in every check
            reasons = {}
            for functions in tries:
                with _replaced(self.namespace, functions):
                    why = self._failure(test)
                if not why:
                    note = "with right versions of the earlier parts" if functions else ""
                    self.results.append((float(points), float(points), what, note))
                    return
                reasons[bool(functions)] = why
            self.results.append((0.0, float(points), what, reasons[False]))

        return run

    def total(self) -> float:
        """Print one line per check, and return the points earned: a plain float from 0 to `points`."""
        available = math.fsum(of for _, of, _, _ in self.results)
        if not math.isclose(available, self.points):
            raise ValueError(f"The checks of this cell are worth {available:g} points, the cell {self.points:g}.")
        earned = min(max(math.fsum(got for got, _, _, _ in self.results), 0.0), self.points)
        print(f"{earned:g} of {self.points:g} points")
        for got, of, what, why in self.results:
            print(f"  {got:g} of {of:g}  {what}")
            for line in why.splitlines():
                print(f"            {line}")
        return float(earned)

    def _failure(self, test) -> str:
        try:
            with contained(self.limit_s):
                test()
        except CheckFailed as failure:
            self._endless |= isinstance(failure, Stopped)
            return str(failure) or "failed"
        return ""


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
