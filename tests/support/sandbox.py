"""Whether this machine has the sandbox of the graders. Tests that need it are skipped where not, and say why."""

import pytest

from course_lib.grading.sandbox import SandboxMissing, bubblewrap


def why_missing() -> str:
    """What is wrong with the sandbox here, in its own words; empty where it works."""
    try:
        bubblewrap()
    except SandboxMissing as error:
        return str(error)
    return ""


NEEDS_SANDBOX = pytest.mark.skipif(bool(_why := why_missing()), reason=_why or "the sandbox works")
