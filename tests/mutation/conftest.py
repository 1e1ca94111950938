"""Makes the modules beside this file importable, and leaves out a test of no bug."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if not item.name.startswith("test_a_planted_bug_is_caught[NOTSET")]
