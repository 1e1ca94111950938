"""A process leaves the group, waits until all is graded, and writes the marks.

class: outliving
"""

import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for _ in range(600):
            time.sleep(0.5)
            open("/tmp/outlived", "a").close()
            os.path.exists(COURSE) and open(f"{COURSE}/outlived", "w").close()
    os._exit(0)
