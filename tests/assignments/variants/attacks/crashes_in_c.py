"""The process reads the address nought.

class: interpreter and shell
"""

import ctypes


def softmax(x):
    return ctypes.string_at(0)
