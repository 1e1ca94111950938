"""What became of an attack, in one word or several of these, the gravest first.

- `forged`: more points in a cell than its values deserve
- `stopped`: the student after it has no marks, or waited longer than two limits of a notebook
- `lost`: a student beside it, or an honest accident, has fewer points than it earned
- `read`: it printed what it must not see, or what came from another server
- `outlived`: a process of its own ran on after the last submission
- `changed`: it changed work, sources, the library, or what Python runs when it starts
- `took`: more memory, processes or disk than our sandbox gives, in a grader that gives no limit
- `held`: none of these
- `does not apply`: it aims at a part that this grader does not have; `reason_not_to_apply` has the rule
"""

import contextlib
import re
import time

from tests.support.attacks import ATTACKS, LONGEST_S, points, said_of
from tests.support.attacks_on_ours import Batch
from tests.support.course import maximum

HELD, NO_MATTER = "held", "does not apply"
ORDER = ("forged", "stopped", "lost", "read", "outlived", "changed", "took", HELD, NO_MATTER)

ANSWERING = r"from course_lib\.grading import (answering|values)\b"
SECRET = "it looks for the secret of our seeds"
SCORE = "it replaces our class that keeps the score, or what that one calls; otter keeps its own"
NBGRADER = "it names what nbgrader alone has"
ABSENT = {
    "ours": {},
    "nbgrader": {
        "gains_rights": "it tries to leave a sandbox, and there is none",
        "secret_lost": SECRET, "seed_and_secret": SECRET,
    },
}  # fmt: skip
ABSENT["otter"] = ABSENT["nbgrader"] | {
    **dict.fromkeys(("contained_swallows", "score_class", "score_failure", "score_total"), SCORE),
    **dict.fromkeys(("gradebook", "gradebook_locked", "knows_that_it_is_graded"), NBGRADER),
}


def reason_not_to_apply(name: str, grader: str) -> str:
    """Why an attack has nothing to aim at in this grader; "" where it has.

    It has nothing where it imports the module by which the student's process answers our grader from outside, which no
    other grader has, or where `ABSENT` names the part that is missing. All others are handed in.
    """
    if grader != "ours" and re.search(ANSWERING, ATTACKS[name]):
        return "it speaks for the student's side of our grader, and here nobody listens"
    return ABSENT[grader].get(name, "")


def deserved(attack: str, source) -> dict[str, float]:
    """The points of every graded cell that its values deserve."""
    said, most = said_of(attack), maximum(source)
    if said.get("others") == "solved":
        return most | {name: most[name] - of for name, of in points(said.get("loses", "")).items()}
    return dict.fromkeys(most, 0.0) | points(said.get("earns", ""))


def judged(**found: bool) -> list[str]:
    """The words that hold, the gravest first."""
    return [word for word in ORDER if found.get(word)] or [HELD]


def of_seen(name: str, seen: dict, source, usual: float) -> list[str]:
    """What became of an attack on a grader in a container.

    Args:
        name: of the attack.
        seen: what was seen of the container.
        source: the source notebook.
        usual: seconds that the grader takes without an attack.
    """
    most, right = maximum(source), deserved(ATTACKS[name], source)
    earned = {student: {cell: seen["marks"].get(student, {}).get(cell) for cell in most} for student in
              ("a-good", "m-attack", "z-good")}  # fmt: skip
    honest = said_of(ATTACKS[name])["class"] == "accidents"

    def less(student, than):
        return any((earned[student][cell] or 0) < of for cell, of in than.items())

    unmarked = None in earned["z-good"].values()
    return judged(
        forged=any((earned["m-attack"][cell] or 0) > of for cell, of in right.items()),
        stopped=unmarked or seen["seconds"] - usual > LONGEST_S,
        lost=less("a-good", most) or (not unmarked and less("z-good", most)) or (honest and less("m-attack", right)),
        read=bool(seen["leaked"]), outlived=bool(seen["left"]), changed=bool(seen["changed"]),
        took=bool(seen["taken"]),
    )  # fmt: skip


def of_ours(batch: Batch, names: list[str]) -> dict[str, list[str]]:
    """What became of the attacks of a batch; what harms all of it is everybody's."""
    most = maximum(batch.source)

    def earned(student):
        with contextlib.suppress(Exception):  # one who was not graded has no marks
            return {cell: score for cell, score in batch.earned(student).items() if score is not None}
        return {}

    time.sleep(1)
    last = earned("z-good")
    unmarked = set(last) != set(most)
    harmed = earned("a-good") != most or (not unmarked and last != most)
    left, found = batch.left(), {}
    for name in names:
        right, own = deserved(ATTACKS[name], batch.source), earned(f"m-{name}")
        honest = said_of(ATTACKS[name])["class"] == "accidents"
        found[name] = judged(
            forged=any(own.get(cell, 0) > of for cell, of in right.items()),
            stopped=unmarked or batch.took[name] > LONGEST_S,
            lost=harmed or (honest and any(own.get(cell, 0) < of for cell, of in right.items())),
            read=bool(batch.leaked(name) or batch.asked), outlived=bool(left), changed=bool(batch.changed),
        )  # fmt: skip
    return found
