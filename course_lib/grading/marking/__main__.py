"""`python -m course_lib.grading.marking ASSIGNMENT`: grade what was handed in, in an nbgrader course."""

import argparse
import csv
import gc
import sys
from pathlib import Path

from course_lib._extras import needed
from course_lib.grading.marking.alone import open_course
from course_lib.grading.marking.batch import Batch
from course_lib.grading.marking.harmless import Harmless
from course_lib.grading.marking.trial import dry_run, told
from course_lib.grading.marking.turn import ending_in_order, only_run
from course_lib.grading.outside.configured import check_marking, in_sandbox, slips
from course_lib.grading.outside.execute import ExecuteOutside

with needed("lab"):
    from nbconvert.exporters import HTMLExporter
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError
    from traitlets.config import Config


def main(arguments: list[str] | None = None) -> int:
    """Grade, report, and return 0; 1 where somebody needs attention, 2 where nothing could be done.

    A dry run returns 1 where a mark differs.
    """
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading.marking", description=__doc__)
    parser.add_argument("assignment")
    parser.add_argument("--course", type=Path, default=Path(), help="the folder of the nbgrader course; this one")
    parser.add_argument("--zip", type=Path, help="all submissions, as Moodle or Canvas packs them, or a folder of them")
    parser.add_argument("--moodle", type=Path, help="the grading worksheet that Moodle exported, to be filled in")
    parser.add_argument("--canvas", type=Path, help="the gradebook that Canvas exported, to be filled in")
    parser.add_argument(
        "--settle", nargs="+", metavar="STUDENT", default=[], help="let the marks of these stand: you have looked"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="works graded at a time; half as many again as cores and one more, or what the cluster has room for",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        default="",
        help="let the workers of this Dask cluster grade, not this machine",
    )
    parser.add_argument("--force", action="store_true", help="grade everybody again, not only what changed")
    parser.add_argument(
        "--dry-run", action="store_true", help="say where marks would differ from the recorded ones; change nothing"
    )
    chosen = parser.parse_args(arguments)
    if chosen.jobs is not None and chosen.jobs < 1:
        parser.error(f"--jobs should be 1 or more, got {chosen.jobs}")
    if chosen.dry_run and (chosen.moodle or chosen.canvas or chosen.settle):
        parser.error("--dry-run changes nothing: leave out --moodle, --canvas and --settle")
    if chosen.dry_run and chosen.scheduler:
        parser.error("--dry-run grades on this machine: leave out --scheduler")
    try:
        if chosen.dry_run:
            return _tried(chosen)
        with only_run(chosen.course), ending_in_order():
            batch = Batch(chosen.course, chosen.assignment)
            batch.check(chosen.moodle, chosen.canvas)
            _say_before(batch, here=not chosen.scheduler)
            batch.collect(chosen.zip)
            batch.grade(chosen.force, chosen.jobs, chosen.scheduler)
            batch.settle(chosen.settle)
            if not batch.entries:
                place = batch.folder("submitted") / "STUDENT" / chosen.assignment
                said = f"Nothing is handed in: put notebooks into {place}, or name an archive with --zip."
                raise ValueError("\n".join([said, *batch.problems]))
            print(batch.report(chosen.moodle, chosen.canvas, None if chosen.scheduler else chosen.jobs))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, SQLAlchemyError, csv.Error) as error:  # a full disk, a gradebook that another program locks
        why = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
        print(f"It could not go on: {why[:300]}. What is entered stays; mend that, and run it again.", file=sys.stderr)
        return 2
    return int(any(entry.needs_attention for entry in batch.entries.values()))


def _say_before(batch: Batch, here: bool) -> None:
    """What of the configuration may be a slip, and what is to be known before students' code runs."""
    settings, url = ExecuteOutside(parent=batch.course), batch.course.coursedir.db_url
    for line in slips(settings, batch.folder("source"), url):
        print(f"Warning: {line}", file=sys.stderr)
    if why := check_marking(settings, batch.assignment, here):
        print(f"Warning: {why}", file=sys.stderr)
    if why := _what_acts(batch.course.config):
        print(f"Warning: {why}", file=sys.stderr)


def _what_acts(config: Config) -> str:
    """Why students' work might do something in the page of whoever marks it; "" where nothing of it does."""
    try:
        exporter = HTMLExporter(config=config)  # as Formgrader has it, wherever the configuration says so
    except Exception as error:  # whatever a configuration may name
        return f"c.HTMLExporter in nbgrader_config.py has what cannot be loaded, and Formgrader does not start: {error}"
    if any(isinstance(each, Harmless) for each in exporter._preprocessors):
        return ""
    named = [*exporter.preprocessors, f"{Harmless.__module__}.{Harmless.__name__}"]
    return (
        "Formgrader shows students' work as it is, and a script in it has your rights. Write "
        f"c.HTMLExporter.preprocessors = {named} in nbgrader_config.py, and start Jupyter anew."
    )


def _tried(chosen: argparse.Namespace) -> int:
    with ending_in_order():
        trials = dry_run(chosen.course, chosen.assignment, chosen.zip, chosen.jobs)
    print(told(trials, in_sandbox(ExecuteOutside(parent=open_course(chosen.course)), chosen.assignment)))
    return int(any(trial.differences for trial in trials))


if __name__ == "__main__":
    code = main()
    gc.freeze()  # all of it goes now: to look through PyTorch for what could go would take half a second
    sys.exit(code)
