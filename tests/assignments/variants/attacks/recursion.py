"""Frames are stacked up until the stack of C ends.

class: interpreter and shell
"""

import sys


def softmax(x):
    sys.setrecursionlimit(10**9)

    class Deep:
        def __repr__(self):
            return repr(self)

    return repr(Deep())
