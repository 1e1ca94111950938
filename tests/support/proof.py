"""Prove the graders: every solution of every bank, with twenty seeds, and every generated change of the reference.

Of every solution it is also seen what the public checks say of it, and of every hidden test, that a mistake fails it.

    python -m tests.support.proof                              all assignments; one to twenty minutes each
    python -m tests.support.proof attention-from-scratch       one of them

What was found is written to tests/assignments/proofs.json, which the book shows. The tests of tests/assignments try a
part of it anew each time, and ask for this command where the assignment or its bank has changed since.
"""

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.assignments.variants import Bank, Variant
from tests.assignments.variants.banks import BANKS
from tests.support.course import ROOT, grade_id, maximum, reference_answers
from tests.support.mutants import Mutant, mutants, own_part
from tests.support.quick import QuickScorer, scores, source_of

RECORD = ROOT / "tests" / "assignments" / "proofs.json"
SEEDS = range(20)
GRADERS = ("closed.py", "compare.py", "contain.py", "score.py")
# What grades only those assignments that name it
OF_SOME = {
    "kept.py": "expect_kept", "packed.py": "unpack", "tensors.py": "Tensors", "untouched.py": "expect_untouched",
}  # fmt: skip


def one_of_each(items: Iterable, kind: Callable) -> list:
    """One for each value of `kind`: the middle one of those that have it."""
    groups: dict = {}
    for each in items:
        groups.setdefault(kind(each), []).append(each)
    return [group[len(group) // 2] for group in groups.values()]


def tried_anew(bank: Bank) -> dict[str, list[Variant]]:
    """The solutions that the tests try each time, by kind; the record has all, as they are now.

    Of the wrong ones it is one for each cell that some of them change, of the right ones every eighth, and one trick.
    """
    wrong = one_of_each(bank.wrong, lambda variant: next(iter(variant.cells)))
    return {"right": bank.right[::8], "wrong": wrong, "tricks": bank.tricks[:1]}


class Fate(NamedTuple):
    """What became of a generated wrong solution."""

    caught: bool
    outside: dict[str, float]  # points lost in cells of other parts
    whole: bool  # all points of its own part are lost


def lost(scorer: QuickScorer, notebook) -> dict[str, float]:
    """The points that an executed notebook lost, by graded cell; cells that lost none are left out."""
    earned = scores(notebook)
    return {name: of - earned[name] for name, of in maximum(scorer.graded).items() if earned[name] != of}


def fate(scorer: QuickScorer, mutant: Mutant) -> Fate:
    """Grade one change of the reference."""
    own, of = own_part(scorer.graded)[mutant.cell], maximum(scorer.graded)
    gone = lost(scorer, scorer.run({mutant.cell: mutant.source}))
    outside = {cell: points for cell, points in gone.items() if cell not in own}
    return Fate(bool(gone), outside, gone == {cell: of[cell] for cell in own})


def failures(notebook) -> dict[str, str]:
    """What each failing public cell says, white space made even."""
    said = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and (grade_id(cell) or "").startswith("check-"):
            errors = [output for output in cell.outputs if output.output_type == "error"]
            said |= {grade_id(cell): " ".join(" ".join(error.traceback).split()) for error in errors}
    return said


def misnamed(bank: Bank, scorer: QuickScorer, variants: list) -> list[str]:
    """What the public checks say otherwise than the bank has it, of some of its solutions: a sentence for each."""
    found = []
    for variant in variants:
        said = failures(scorer.outcome(variant))
        cell, words = bank.says.get(variant.name, (None, ""))
        if variant in bank.right and said:
            found.append(f"{variant.name}: right, and the public checks say {said}")
        if cell and not (words in said.get(cell, "") and said[cell].startswith("CheckFailed")):
            found.append(f"{variant.name}: {cell} should say {words!r}; it says {said.get(cell)!r}")
        if cell and "Traceback" in said.get(cell, ""):
            found.append(f"{variant.name}: {cell} shows a traceback")
        if variant in bank.wrong and bool(said) == (variant.name in bank.unseen):
            found.append(f"{variant.name}: the public checks {'see' if said else 'do not see'} it")
    return found


def reported(notebook, mark: str) -> set[tuple[str, str]]:
    """The hidden tests, by cell and name, whose line in the report begins with this mark."""
    return _lines(notebook, rf"^  (?:{mark}) of [\d.]+  (.*)$")


def reported_slips(notebook) -> set[tuple[str, str]]:
    """The mistakes that were charged once, by cell and name."""
    return _lines(notebook, r"^  -[\d.]+  (.*) \(charged here alone")


def _lines(notebook, pattern: str) -> set[tuple[str, str]]:
    found = set()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            lines = re.findall(pattern, output.get("text", ""), re.MULTILINE)
            found |= {(cell.metadata.nbgrader.grade_id, line) for line in lines}
    return found


def unused_tests(bank: Bank, scorer: QuickScorer) -> set[tuple[str, str]]:
    """The hidden tests, by cell and name, that no wrong solution fails."""
    missing = reported(scorer.outcome(bank.right[0]), r"[\d.]+")
    missing -= set().union(*(reported(scorer.outcome(variant), "0") for variant in bank.wrong))
    if missing:  # for those that fail only for a mistake with a price of its own, which is undone first
        source = source_of(bank.assignment)
        for cell in source.cells:
            cell.source = cell.source.replace(", slips=slips)", ")")
        with contextlib.closing(QuickScorer(source, bank.modules)) as strict:
            for variant in bank.wrong:
                if missing and reported_slips(scorer.outcome(variant)):
                    missing -= reported(strict.run(variant.cells), "0")
    return missing


def unused_slips(bank: Bank, scorer: QuickScorer) -> set[tuple[str, str]]:
    """The mistakes with a price of their own, by cell and name, that no wrong solution makes."""
    cells = [cell for cell in scorer.graded.cells if "nbgrader" in cell.metadata]
    every = {(grade_id(cell), what) for cell in cells for what in re.findall(r'Slip\(\s*"([^"]+)"', cell.source)}
    return every - set().union(*(reported_slips(scorer.outcome(variant)) for variant in bank.wrong))


def fingerprint(bank: Bank) -> str:
    """Sixteen letters that change where the assignment, its bank or what grades it does."""
    source = [cell.source for cell in source_of(bank.assignment).cells]
    files = [*GRADERS, *(name for name, word in OF_SOME.items() if any(word in cell for cell in source))]
    graders = [(ROOT / "course_lib" / "grading" / name).read_text(encoding="utf-8") for name in files]
    text = json.dumps([source, graders, repr(bank), mutants(reference_answers(source_of(bank.assignment)))])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def prove(bank: Bank, scorer: QuickScorer) -> dict:
    """What the record keeps of one assignment.

    Args:
        bank: its solutions.
        scorer: that of its notebook.
    """
    of = maximum(scorer.graded)
    graded = [
        {
            "kind": kind, "name": variant.name, "price": sum(variant.loses.values()), "why": variant.why,
            "lost": [sum(of.values()) - sum(earned.values()) for earned in scorer.by_seed(variant.cells, seeds)],
        }
        for kind, seeds in (("right", SEEDS), ("wrong", SEEDS), ("tricks", SEEDS[:1]))
        for variant in getattr(bank, kind)
    ]  # fmt: skip
    made = mutants(reference_answers(source_of(bank.assignment)))
    fates = {mutant[:2]: fate(scorer, mutant) for mutant in made if mutant[:2] not in bank.equivalent}
    return {
        "fingerprint": fingerprint(bank),
        "points": sum(of.values()),
        "solutions": graded,
        "misnamed": misnamed(bank, scorer, bank.right + bank.wrong + bank.tricks),
        "unused": [list(key) for key in sorted(unused_tests(bank, scorer) | unused_slips(bank, scorer))],
        "mutants": {
            "made": len(made),
            "equivalent": [[*key, reason] for key, reason in bank.equivalent.items()],
            "caught": sum(found.caught for found in fates.values()),
            "whole part": sum(found.whole for found in fates.values()),
            "survived": [list(key) for key, found in fates.items() if not found.caught],
            "charged outside": [[*key, found.outside] for key, found in fates.items() if found.outside],
        },
    }


def main(names: list[str]) -> None:
    """Prove these assignments, or all; write the record, and say what is wrong."""
    made = {}
    for bank in BANKS:
        if names and bank.assignment not in names:
            continue
        scorer = QuickScorer(source_of(bank.assignment), bank.modules)
        found = made[bank.assignment] = prove(bank, scorer)
        scorer.close()
        changes = found["mutants"]
        print(f"{bank.assignment}: {len(found['solutions'])} solutions, {changes['made']} changes of the reference")
        for solution in found["solutions"]:
            if set(solution["lost"]) != {solution["price"]}:
                print(f"  {solution['name']}: loses {sorted(set(solution['lost']))}, should lose {solution['price']}")
        for entry in found["misnamed"]:
            print(f"  {entry}")
        for entry in found["unused"]:
            print(f"  no wrong solution meets {entry}")
        print(f"  caught {changes['caught']}, of them {changes['whole part']} with the whole part lost")
        for kind in ("survived", "charged outside"):
            for entry in changes[kind]:
                print(f"  {kind}: {entry}")
    # read as late as this: another proof may have ended meanwhile
    record = (json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}) | made
    record = {bank.assignment: record[bank.assignment] for bank in BANKS if bank.assignment in record}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
