"""The process stops itself, and goes on only when told to.

class: interpreter and shell
"""

import os
import signal


def softmax(x):
    os.kill(os.getpid(), signal.SIGSTOP)
