"""The attacks of `tests/assignments/variants/attacks/`: what each of them says of itself, and what it deserves.

- `attacks_on_ours`: some of them, graded together by our grader
- `attack_container`: a container in which another grader may be attacked, and what is seen of it from outside
- `other_graders`: what stock nbgrader and otter-grader need for the same assignment
- `attack_traces`: what is read of its files afterwards
- `attack_outcomes`: what became of an attack, in one word of a few
- `attack_table`: the command that hands in every attack to every grader, and writes the record
"""

import hashlib
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "assignments" / "variants" / "attacks"
ATTACKS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
CLASSES = {
    "accidents", "answer key and tests", "files", "gradebook and others", "interpreter and shell", "outliving",
    "patched libraries", "protocol", "resources", "surroundings", "values that lie",
}  # fmt: skip
CELL_S, NOTEBOOK_S = 10, 60  # the limits that graders are given here
LONGEST_S = 2 * NOTEBOOK_S  # from one student to the next, on a busy machine
FIRST = "attention-from-scratch"  # for which an attack is handed in that names no assignment; course.py takes long


def said_of(attack: str) -> dict[str, str]:
    """The lines of its docstring that say what is to be done with it."""
    docstring = attack.split('"""')[1]
    return dict(line.split(": ", 1) for line in docstring.splitlines()[1:] if ": " in line)


def assignment_of(attack: str) -> str:
    """For which assignment it is handed in. On others than the first, our own grader alone is tried."""
    return said_of(attack).get("on", FIRST)


def tries(attack: str) -> str:
    """The sentence that says what it tries."""
    return attack.split('"""')[1].partition("\n")[0]


def points(text: str) -> dict[str, float]:
    """Points by cell, of a line such as `test-softmax 1, test-attention 2`."""
    return {name: float(of) for name, of in (part.split() for part in text.split(", ") if part)}


def answers(attack: str, known: str, solutions: dict[str, str]) -> dict[str, str]:
    """The cells that it hands in.

    Args:
        attack: its text.
        known: lines that define what attacks may ask for, `COURSE`, `HOME` and `PORT`.
        solutions: right answers.
    """
    said = said_of(attack)
    others = solutions if said.get("others") == "solved" else {}
    return {**others, said.get("cell", "softmax"): known + attack}


def fingerprint(attack: str) -> str:
    """Sixteen letters that change where the attack does."""
    return hashlib.sha256(attack.encode()).hexdigest()[:16]
