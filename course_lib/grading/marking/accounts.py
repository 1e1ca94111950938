"""Whose account each folder in the exchange belongs to, and what that tells of who handed in."""

import sys
from pathlib import Path

NAMED = 10  # in one sentence


def telling(wrote: list[tuple[str | None, str]], students: set[str], inbound: Path) -> tuple[set[str], list[str]]:
    """The accounts that wrote in the name of others and may be students', and sentences on these and on the others.

    On many a drive all belongs to one account, and containers of all students run as one. What belongs to an account
    that is no student's and wrote for several, or that the exchange itself belongs to, says nothing of anybody; nor
    does any, where nobody's folder belongs to an account with the student's name.

    wrote : the account and the student of each folder
    students : all who ever handed something in in this course
    """
    others: dict[str, list[str]] = {}
    for owner, student in wrote:
        if owner not in (student, None):
            others.setdefault(owner, []).append(student)
    if not others:
        return set(), []
    course = owner_of(inbound)
    strangers = {
        owner: whose
        for owner, whose in others.items()
        if owner in students or (len(set(whose)) == 1 and owner != course and any(o == s for o, s in wrote))
    }
    said = [_strange(owner, whose) for owner, whose in strangers.items()]
    if silent := sorted(others.keys() - strangers):
        number = sum(len(others[owner]) for owner in silent)
        named = ", ".join(silent[:NAMED]) + (f" and {len(silent) - NAMED} more" if len(silent) > NAMED else "")
        many = f"{number} folders in the exchange belong" if number > 1 else "A folder in the exchange belongs"
        said.append(
            f"{many} to {named}, by whom nobody can be told: the account is no student's, as on a drive or in "
            "containers that have one for all. Whose work it is, is known by the folder's name alone"
        )
    return set(strangers), said


def _strange(owner: str, students: list[str]) -> str:
    """What to say of the folders in the exchange that one account wrote in the names of others."""
    names = list(dict.fromkeys(students))
    named = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    many = f"{len(students)} folders in the exchange were" if len(students) > 1 else "A folder in the exchange was"
    return f"{many} written by {owner} in the name of {named}: ask whose work it is"


def owner_of(folder: Path) -> str | None:
    """The account that wrote a folder, by its name or else its number; None where the system has none.

    Raises
    ------
    OSError : the folder is gone.
    """
    if sys.platform == "win32":
        return None
    try:
        return folder.owner()
    except KeyError:
        return f"user {folder.stat().st_uid}"
