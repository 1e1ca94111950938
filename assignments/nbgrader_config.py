"""The nbgrader course; book/instructor.md explains the work flow.

ExecuteOutside, ExecuteToTheEnd and LateDays are this library's, HTMLExporter nbconvert's, all other settings nbgrader's
own.
"""

import importlib.util
import os
from pathlib import Path

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.course_id = os.environ.get("NBGRADER_COURSE_ID", "attention")
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# The exchange is a folder that instructor and students share: one machine, or one network drive.
c.Exchange.root = os.environ.get("NBGRADER_EXCHANGE", "/usr/local/share/nbgrader/exchange")

# Seconds. A right answer needs about one second for the whole notebook; a check stops itself after three,
# so the limit per cell is reached only by an endless loop outside the checks.
c.Execute.timeout = 60
c.Execute.startup_timeout = 120
c.Execute.iopub_timeout = 30  # after a cell's end: on a busy machine, one that was stopped takes its time to say so
c.Execute.kernel_name = "python3"
c.ExecuteToTheEnd.notebook_limit = 300

# Of PyTorch and TensorFlow, those that are installed
FRAMEWORKS = [name for name in ("torch", "tensorflow") if importlib.util.find_spec(name)]

# Assignments that are marked from outside, and the packages that their notebooks may import. Without bubblewrap nothing
# is graded, unless COURSE_GRADING_SANDBOX is "off": then students' code may read and write whatever you may. Nor is an
# assignment that is not named here, unless `as_nbgrader` names it: its tests then run in the student's process.
c.ExecuteOutside.assignments = {
    "attention-from-scratch": ["numpy"],
    "fine-tune-bert": ["numpy", "scipy"],
    "question-answering": ["numpy"],
    "attention-for-an-rnn": ["numpy", *FRAMEWORKS],
    "build-the-transformer": ["numpy", *FRAMEWORKS],
    "the-family-compared": ["numpy", "scipy", *FRAMEWORKS],
}
# What their kernels have imported when they start: once for all works, and not once for each.
c.ExecuteOutside.warm = {
    name: [package for package in packages if package in ("numpy", "torch")]
    for name, packages in c.ExecuteOutside.assignments.items()
}
# Each released notebook names its packages, so that its checks say which import will not be there.
c.GenerateAssignment.preprocessors.insert(0, "course_lib.grading.named.NamePackages")
c.ExecuteOutside.sandbox = os.environ.get("COURSE_GRADING_SANDBOX", "required")

# One runaway print must not fill the disk.
c.LimitOutput.max_lines = 300
c.LimitOutput.max_traceback = 60

# As nbgrader's own list, with RestoreCells for OverwriteCells: deleted cells come back, and nobody's
# submission is lost for one missing cell.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "course_lib.grading.restore.RestoreCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# As nbgrader's own list, with ExecuteOutside for Execute: points earned before a kernel dies stay, and the hidden tests
# of the assignments named above run outside the student's process, which runs in a sandbox.
c.Autograde.autograde_preprocessors = [
    "course_lib.grading.outside.execute.ExecuteOutside",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# What Formgrader shows of students' work does nothing in your browser, where it would have your rights.
c.HTMLExporter.preprocessors = ["course_lib.grading.marking.harmless.Harmless"]

# `nbgrader export` writes a status beside every score, and a blank where nothing could be graded.
c.ExportApp.plugin_class = "course_lib.grading.marking.report.StatusExport"

# Days after the due date: so many cost nothing in the whole course; each further one costs this share of the points.
c.LateDays.free = 0
c.LateDays.share = 0.0
