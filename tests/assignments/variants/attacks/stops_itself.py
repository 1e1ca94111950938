"""The process stops itself, and goes on only when told to."""

import os
import signal


def softmax(x):
    os.kill(os.getpid(), signal.SIGSTOP)
