"""What is known of every submission beside nbgrader's gradebook: marks/ASSIGNMENT.json, and the status in words."""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from course_lib.files import replacing

# How the notes begin that tell of a change in what only the course writes. It may be an accident, and changes no mark.
TEST, READ_ONLY, POINTS, UNLOCKED, KIND = CHANGES = (
    "a test was changed, and is the released one again",
    "a read-only cell was changed, and is the released one again",
    "the points of a cell were changed, and the released ones count",
    "a read-only cell was unlocked, and is read-only again",
    "what a cell is for was changed, and is as it was released",
)
BY_ANOTHER = "exchange, written by "  # the origin of work that lay in another account's folder, with that account
UNDECIDED = "undecided"  # the way of such work
GRADED, WAITING, ATTENTION, NOTHING = "graded", "waiting for a hand mark", "needs attention", "not handed in"


@dataclass
class Entry:
    """One student's part in one assignment."""

    work: str = ""  # a digest of what was handed in last
    marked: str = ""  # of that whose marks stand in the gradebook; "" where there are none
    tests: str = ""  # of the tests that gave these marks
    trouble: str = ""  # why somebody must look
    settled: str = ""  # what `seen` was when somebody had looked, and let the marks stand
    origin: str = ""  # how it came
    replaces: str = ""  # what it replaced: when, and how many points that had
    late: str = ""  # how late it is
    feedback: str = ""  # of what the feedback shows
    laid: str = ""  # a digest of the work of which `origin` and `lacks` tell
    unlaid: dict[str, str] = field(default_factory=dict)  # by which way what is not in submitted/ came -> why
    others: dict[str, str] = field(default_factory=dict)  # which work that is, and which the undecided one
    lacks: str = ""  # what of the work in submitted/ did not come
    undecided: str = ""  # that two works came, of which nobody knows which is later
    seconds: float = 0.0  # that its grading took
    came: list[str] = field(default_factory=list)  # digests of all that came
    notes: list[str] = field(default_factory=list)  # what was repaired or left behind

    def __post_init__(self):
        if isinstance(self.unlaid, str):  # of an older version, which did not know by which way
            self.unlaid = {"": self.unlaid} if self.unlaid else {}

    @property
    def seen(self) -> str:
        """What somebody looks at who settles it: other work, or another trouble, is not settled by that."""
        others = [self.others.get(way) for way in (*sorted(self.unlaid), *([UNDECIDED] if self.undecided else []))]
        return " ".join([self.marked, self.trouble, *self.collecting, *filter(None, others)])

    @property
    def collecting(self) -> list[str]:
        """What went wrong with it before it could be graded."""
        unlaid = [self.unlaid[way] for way in sorted(self.unlaid)]  # the last that came is not always the same
        return [each for each in (*unlaid, self.lacks, self.undecided) if each]

    @property
    def troubles(self) -> list[str]:
        """All for which somebody must look, or has looked."""
        return [*self.collecting, self.trouble] if self.trouble else self.collecting

    @property
    def needs_attention(self) -> bool:
        """Whether its score, if it has one, cannot be final."""
        return bool(self.troubles) and self.settled != self.seen

    def unsettle(self) -> None:
        """Forget that somebody looked where that is over, or something else is there: what is new may read the same."""
        if self.settled != self.seen:
            self.settled = ""

    @property
    def by_another(self) -> str:
        """A sentence where another account handed in; "" where none did."""
        return f"it came from the {self.origin}: ask whose work it is" if self.origin.startswith(BY_ANOTHER) else ""

    @property
    def changed(self) -> list[str]:
        """What tells of a change in what only the course writes, or of another account."""
        changes = [note for note in self.notes if note.startswith(CHANGES)]
        return [self.by_another, *changes] if self.by_another else changes

    @property
    def why(self) -> str:
        """One line for the table."""
        late = [self.origin if self.origin.endswith("LATE") else "", self.late]
        parts = [*self.troubles, self.replaces, *late, self.by_another, *self.notes]
        settled = "settled by hand: " if self.troubles and not self.needs_attention else ""
        return settled + ". ".join(part.rstrip(".") for part in parts if part)


def load(path: Path) -> dict[str, Entry]:
    """The entries by student; none where there is no file.

    Raises
    ------
    ValueError : the file is damaged; the message says what to do.
    """
    if not path.exists():
        return {}
    known = {each.name for each in fields(Entry)}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {student: Entry(**{k: v for k, v in entry.items() if k in known}) for student, entry in data.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} cannot be read ({error}). Remove it: everything is then graded once more.") from None


def save(path: Path, entries: dict[str, Entry]) -> None:
    """Write the entries, whole or not at all."""
    text = json.dumps({student: asdict(entry) for student, entry in sorted(entries.items())}, indent=1)
    with replacing(path.parent) as scratch:
        (scratch / path.name).write_text(text + "\n", encoding="utf-8")


def status(submission, entry: Entry | None) -> str:
    """What to call a submission: one of four names, with "resubmitted, " before it where it replaced a graded one.

    Parameters
    ----------
    submission : nbgrader's SubmittedAssignment, None where the gradebook has none
    entry : None where nbgrader graded it without this package
    """
    if entry is None:
        if submission is None:
            return NOTHING
        return WAITING if submission.needs_manual_grade else GRADED
    if entry.needs_attention or submission is None:
        name = ATTENTION
    else:
        name = WAITING if submission.needs_manual_grade else GRADED
    return f"resubmitted, {name}" if entry.replaces else name
