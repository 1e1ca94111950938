"""Mark the solutions of a bank from outside, without kernels: the student's side runs in a thread of a fork.

    python -m tests.support.outside_bank                       all assignments that are marked so; some minutes each
    python -m tests.support.outside_bank question-answering    one of them

Says of which solution the marks are others than the bank has them. Solutions of different parts are handed in as one
work, which loses in each part what it loses there alone; where it does not, each is tried by itself, and that counts.
"""

import argparse
import contextlib
import importlib
import io
import multiprocessing
import sys

from course_lib.grading.outside.tests import HiddenTests, names_asked_for
from tests.assignments.variants import Bank, Variant
from tests.assignments.variants.banks import BANKS
from tests.support.course import ROOT, grade_id, maximum
from tests.support.examinees import InThisProcess
from tests.support.quick import source_of

LIMIT_S = 600
# IPython's own settings are no matter of the tests from outside, and here is no IPython
NOT_HERE = {"notebook-wide display settings", "an exit in the middle of the notebook"}


def outside() -> list[Bank]:
    """The banks of the assignments that the course marks from outside."""
    text = (ROOT / "assignments" / "nbgrader_config.py").read_text(encoding="utf-8")
    named = text.partition("c.ExecuteOutside.assignments = {")[2].partition("}")[0]
    return [bank for bank in BANKS if f'"{bank.assignment}"' in named]


def solutions(bank: Bank) -> list[Variant]:
    """All that can be tried here."""
    return [each for each in bank.right + bank.wrong + bank.tricks if each.name not in NOT_HERE]


def part(bank: Bank) -> list[Variant]:
    """The first trick, every ninth, and all that change what they are given: from outside, that is seen another way.

    Without the endless loop: nothing interrupts a thread, so that here each call of it is waited for, minutes in all.
    The tests that grade whole notebooks have loops in kernels, which are interrupted.
    """
    return [
        each
        for number, each in enumerate(solutions(bank))
        if each.name != "an endless loop"
        and (
            number % 9 == 0
            or each == bank.tricks[0]
            or any(word in each.name for word in ("argument", "in place", "taken off"))
        )
    ]


def together(bank: Bank, variants: list[Variant]) -> list[list[Variant]]:
    """All of these, in one list those that have no cell and no price in common.

    Two kinds stay alone: tricks, which may be meant for the whole notebook, and what is written in another framework,
    which the reference's cells would not understand.
    """
    alone = [each for each in variants if each in bank.tricks or "framework" in each.cells]
    groups: list[list[Variant]] = []
    for variant in variants:
        if variant in alone:
            continue
        for group in groups:
            taken = {name for each in group for name in (*each.cells, *each.loses)}
            if taken.isdisjoint((*variant.cells, *variant.loses)):
                group.append(variant)
                break
        else:
            groups.append([variant])
    return groups + [[each] for each in alone]


def one_work(group: list[Variant]) -> Variant:
    """The work that has the cells of all of these."""
    cells = {name: code for each in group for name, code in each.cells.items()}
    loses = {name: points for each in group for name, points in each.loses.items()}
    return Variant("; ".join(each.name for each in group), cells, loses)


def lost_outside(bank: Bank, variant: Variant) -> dict[str, float]:
    """The points that a solution loses where its tests run outside of its process, by graded cell."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, bank, variant))
    process.start()
    sender.close()
    try:
        assert receiver.poll(LIMIT_S), f"{variant.name} did not end"
        return receiver.recv()
    finally:
        process.kill()
        process.join()


def _send(sender, bank: Bank, variant: Variant) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        sender.send(_lost(bank, variant))


def _lost(bank: Bank, variant: Variant) -> dict[str, float]:
    source = source_of(bank.assignment)
    most, examinee = maximum(source), InThisProcess("")
    to_come = {grade_id(cell): names_asked_for(cell.source) for cell in source.cells if grade_id(cell) in most}
    lost = {}
    for cell in source.cells:
        name = grade_id(cell)
        if name in most:
            del to_come[name]
            outputs = HiddenTests(cell.source, examinee, 1, set().union(*to_come.values())).outputs()
            earned = float(outputs[-1]["data"]["text/plain"]) if "data" in outputs[-1] else 0.0
            lost |= {name: most[name] - earned} if earned != most[name] else {}
            examinee.begin_again()
        elif cell.cell_type == "code" and not cell.metadata.get("nbgrader", {}).get("grade"):
            with contextlib.suppress(Exception, SystemExit):  # as in a notebook, the next cell runs all the same
                code = compile(variant.cells.get(name, cell.source), "<ipython-input-1>", "exec")
                exec(code, examinee.namespace)
    return lost


def main(arguments: list[str]) -> int:
    """Mark them, and say what is wrong; 1 where anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of assignments")
    parser.add_argument("--part", action="store_true", help="some of the solutions; see `part`")
    chosen, wrong = parser.parse_args(arguments), False
    for bank in outside():
        if chosen.names and bank.assignment not in chosen.names:
            continue
        for module in bank.modules:
            importlib.import_module(module)  # once, and not in each fork
        tried = part(bank) if chosen.part else solutions(bank)
        for group in together(bank, tried):
            work = one_work(group)
            found = lost_outside(bank, work)
            if found == work.loses:
                continue
            for variant in group:
                lost = found if len(group) == 1 else lost_outside(bank, variant)
                if lost != variant.loses:
                    wrong = True
                    print(f"  {variant.name}: loses {lost}, should lose {variant.loses}", flush=True)
        print(f"{bank.assignment}: {len(tried)} solutions", flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
