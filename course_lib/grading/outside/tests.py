"""A cell of hidden tests, run in this process: its names of the student's functions are stand-ins."""

import ast
import builtins
import contextlib
import functools
import io
import os
import re
import symtable
import sys
import types
from collections.abc import Callable, Collection
from unittest import mock

from course_lib import grading
from course_lib._extras import needed
from course_lib.grading.compare import CheckFailed
from course_lib.grading.contain import LIMIT_S
from course_lib.grading.frameworks import as_tensor
from course_lib.grading.outside.channel import MOST_S
from course_lib.grading.outside.examinee import NoKernel
from course_lib.grading.score import SEED, Score
from course_lib.grading.tensors import FRAMEWORKS, Tensors

with needed("lab"):
    from nbformat import NotebookNode
    from nbformat.v4 import new_output

IN_GLOBALS = re.compile(r"""\bglobals\(\)(?:\[|\.get\()["'](?P<name>\w+)["']""")  # a name as a text


class StandIn:
    """A function of the student's, as the tests see it: a call of it is one in the student's kernel."""

    def __init__(self, name: str, call: Callable):
        self.name, self._call = name, call

    def __call__(self, *given, **named):
        return self._call(self.name, given, named)


class HiddenTests:
    """One cell of hidden tests.

    source : as the gradebook has it, never as it was handed in
    examinee : answers calls; see `examinee.Examinee`
    seed : of the inputs
    to_come : functions whose own tests are still to come; of these no right value is sent
    """

    def __init__(self, source: str, examinee, seed: int, to_come: Collection[str] = ()):
        self.source, self.examinee, self.seed, self.to_come = source, examinee, seed, frozenset(to_come)
        self.namespace: dict = {"__name__": "hidden_tests"}
        self.standing_in = {name: StandIn(name, self._call) for name in names_asked_for(source)}
        self._right: dict[str, Callable] = {}  # of earlier parts, as `Score` has them

    def outputs(self) -> list[NotebookNode]:
        """Run it; what a kernel would have shown: the report, and the score as the last value.

        Raises
        ------
        SyntaxError, ValueError : see `compiled`.
        NoKernel : no kernel can be started.
        """
        body, last = compiled(self.source)  # a slip here is nobody's fault who is graded: no mark comes of it
        printed = io.StringIO()
        try:
            self._look()
            with contextlib.redirect_stdout(printed), self._surroundings():
                exec(body, self.namespace)
                score = eval(last, self.namespace)
            result = new_output("execute_result", {"text/plain": repr(float(score))}, execution_count=1)
        except NoKernel:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            result = new_output("error", ename=type(error).__name__, evalue=str(error), traceback=[said])
        shown = [new_output("stream", name="stdout", text=printed.getvalue())] if printed.getvalue() else []
        return [*shown, result]

    def _look(self) -> None:
        """Stand-ins for the functions that the tests name; what else they name, as it is now."""
        if "Tensors" in self.source:  # first, so that what is a tensor can be read
            self.examinee.look_for_a_framework()
        values, missing = self.examinee.values(self.standing_in)
        for name in (*values, *missing):
            del self.standing_in[name]
        self.namespace |= self.standing_in | values

    def _call(self, name: str, given: tuple, named: dict):
        return self.examinee.call(name, given, named, self._served())

    def _served(self) -> dict[str, Callable]:
        """Right versions of earlier parts that `Score` has put in the place of the student's own for another try.

        And what stands there while a mistake is undone, which calls the student's own. These alone: what else the tests
        define, no student's code may ask for.
        """
        found = {name: right for name, right in self._right.items() if self.namespace.get(name) is right}
        for name, own in self.standing_in.items():
            now = self.namespace.get(name)
            if now is not own and callable(now):
                found[name] = now
        return {name: function for name, function in found.items() if name not in self.to_come}

    @contextlib.contextmanager
    def _surroundings(self):
        """What the tests import of `course_lib.grading`, where that must know of the kernel; their seed."""
        examinee, right = self.examinee, self._right

        class ScoreFromOutside(Score):
            """Its limits are for the student's code; what a busy machine takes is on top of them."""

            def __init__(self, *given, limit_s: float = LIMIT_S, **named):
                super().__init__(*given, limit_s=limit_s + MOST_S, **named)
                right.update(self.follow_through)

            def _failure(self, test) -> str:
                examinee.prepare()
                examinee.changed.clear()
                examinee.derivatives.forget()
                examinee.seconds = self.limit_s - MOST_S
                examinee.end = examinee.clock() + examinee.seconds
                why, stopped = super()._failure(test), f"Stopped after {self.limit_s:g} seconds"
                if why.startswith(stopped) and examinee.clock() < examinee.end:  # and not for what the student did
                    why = f"{stopped}: the machine was busy with other work most of the time. Grade it again."
                return why

        class TensorsFromOutside(Tensors):
            """Of the framework in which the tests compute, where derivatives go through the student's calls."""

            def __init__(self, namespace: dict):
                name = examinee.derivatives.frameworks.tests
                if name is None:
                    super().__init__({})  # says what to do
                self.framework, self._make, self._sum, take, _ = FRAMEWORKS[name]
                self._module = sys.modules[name]
                self._differentiate = lambda module, function, given: take(
                    module, examinee.derivatives.of_all(function), given
                )

            def _weighed(self, result):
                """Arrays pass as constants, so that who left the framework is told of gradients that do not arrive."""
                parts = result if isinstance(result, tuple | list) else [result]
                return super()._weighed([as_tensor(part, self.framework) for part in parts])

        def expect_closed(*names: str) -> None:
            loaded = examinee.loaded(names)
            if loaded:
                raise CheckFailed(
                    f"This notebook loaded {', '.join(loaded)}, which the assignment's rules close. Remove the import, "
                    "restart the kernel and run all cells."
                )

        def from_outside(expect_left: Callable) -> Callable:
            """The tests' own value never changes, so that nobody can empty what they compute with: see `changed`."""

            def check(given, *about) -> None:
                for value in [given, *(after for own, after in examinee.changed if own is given)]:
                    expect_left(value, *about)

            return check

        patched = {
            "Score": ScoreFromOutside,
            "Tensors": TensorsFromOutside,
            "expect_closed": expect_closed,
            "expect_differentiable": from_outside(grading.expect_differentiable),
            "expect_kept": from_outside(grading.expect_kept),
            "expect_unchanged": from_outside(grading.expect_unchanged),
            "expect_untouched": from_outside(grading.expect_untouched),
        }
        with (
            mock.patch.multiple(grading, **patched),
            mock.patch.dict(os.environ, {SEED: str(self.seed)}),
        ):
            yield


@functools.cache
def compiled(source: str) -> tuple[types.CodeType, types.CodeType]:
    """A cell of hidden tests as Python runs it: all that comes before its last expression, and that.

    Raises
    ------
    SyntaxError : it is no Python.
    ValueError : it does not end with an expression, which is the score.
    """
    *body, last = ast.parse(source).body or [None]
    if not isinstance(last, ast.Expr):
        raise ValueError("the last line of a cell of hidden tests has to be the score, an expression")
    before, score = ast.Module(body, []), ast.Expression(last.value)
    return compile(before, "<hidden tests>", "exec"), compile(score, "<hidden tests>", "eval")


@functools.cache
def names_asked_for(source: str) -> frozenset[str]:
    """The global names that a cell reads and does not set: what it expects of the notebook."""
    top = symtable.symtable(source, "<hidden tests>", "exec")
    own = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    found, tables = set(), [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        own |= {each.get_name() for each in table.get_symbols() if each.is_declared_global() and each.is_assigned()}
        found |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    found |= {match["name"] for match in IN_GLOBALS.finditer(source)}
    return frozenset(name for name in found - own if not hasattr(builtins, name))
