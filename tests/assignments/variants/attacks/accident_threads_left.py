"""Threads are left running, and write to standard error.

class: accidents
cell: merge-heads
others: solved
"""

import sys
import threading
import time


def merge_heads(x):
    def write():
        for _ in range(20):
            print("working", file=sys.stderr)
            time.sleep(0.05)

    threading.Thread(target=write, daemon=True).start()
    B, H, T, d_head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * d_head)
