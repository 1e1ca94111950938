"""The gradebook is locked while others are graded.

class: gradebook and others
"""

import sqlite3

try:
    base = sqlite3.connect(COURSE + "/gradebook.db", isolation_level=None)
    base.execute("begin exclusive")
except sqlite3.OperationalError:
    pass
