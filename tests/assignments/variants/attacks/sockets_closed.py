"""The kernel closes the sockets by which it is asked.

class: interpreter and shell
"""


def softmax(x):
    import os

    os.closerange(3, 1000)
