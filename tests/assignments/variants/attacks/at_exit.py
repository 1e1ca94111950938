"""What runs when the process ends, which it does by itself, forks one that stays.

class: outliving
"""

import atexit
import os
import time


@atexit.register
def stay():
    if os.fork() == 0:
        os.setsid()
        for _ in range(600):
            time.sleep(0.5)
            open("/tmp/outlived", "a").close()


def softmax(x):
    atexit._run_exitfuncs()
    os._exit(0)
