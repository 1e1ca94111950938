"""From what students hand in to a table of marks: no honest mark is lost, and what is missing has a name.

`python -m course_lib.grading.marking ASSIGNMENT`, run in an nbgrader course (`make grade` does), goes this way:

1. *incoming* reads what the exchange or an archive of Moodle's or Canvas's brings, through no link (`unread`), where
   `accounts` tells who wrote in whose name, and *laying* lays it into `submitted/STUDENT/ASSIGNMENT/` as it came, where
   it is never changed. What it replaces is kept in `replaced/`, and in `undecided/` where no time tells which is the
   later work. `collecting` notes what became of it.
2. *normalise*: `files` finds the notebook among a student's files, `reading` makes a notebook of its bytes, and `cells`
   puts the student's answers into the released notebook, which `released` has from the gradebook, with what `strays`
   takes out of cells that are not theirs. `recognised` tells which cell is which, `changed` what was changed of the
   course's own, and `programs` which data are none. The result stands in `normalised/STUDENT/ASSIGNMENT/`.
3. *gradings*: more works than there are cores are graded at a time, and their marks entered by one writer. *alone*:
   nbgrader's own Autograde runs in a process and a gradebook of its own, for one student, within a limit; `apart` has
   such processes, and `in_memory` such gradebooks. `execute` is nbgrader's Execute, with points that outlive their
   kernel, and `course_lib.grading.outside` has one that no code can forge. `standing` says what a gradebook has of a
   student, and enters it into another. *cluster* lets the workers of a Dask cluster grade instead; `answers` looks at
   what comes back.
4. *record*: `marks/ASSIGNMENT.json` says what was graded, when, what it replaced, and what went wrong.
5. *report*: `grades.csv` with a status beside every score, feedback where something changed, and a summary. `dates` has
   the roster, due dates, extensions and late days, `moments` reads times; `lms` fills in Moodle's and Canvas's own
   tables.

*trial* is a dry run: all this in a copy, and where its marks differ from those that the gradebook has.

*harmless* is for Formgrader, where a person marks: nothing that a student handed in acts in that person's browser.

`turn` lets one run at a time into a course, and takes care that one that is ended from outside ends in order.

Gradebook, formgrader and sources are nbgrader's: a course goes on without this package. A student's names and texts are
data here. None is given to a shell, and none becomes a path before `files.safe_name` has passed it.
"""

import contextlib
import importlib
import sys


def import_without(slow: str, name: str) -> None:
    """Import a module, if there is one, without another that it would import, and can do without."""
    if slow in sys.modules:
        return
    sys.modules[slow] = None
    try:
        with contextlib.suppress(ImportError):  # whoever needs it says so
            importlib.import_module(name)
    finally:
        del sys.modules[slow]


# For addresses in all alphabets, of which notebooks have none, jsonschema would import it. It makes a parser of its
# grammar, which takes longer than all the rest of a start.
import_without("rfc3987_syntax", "nbformat")
