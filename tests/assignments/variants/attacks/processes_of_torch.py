"""PyTorch starts processes that run on, and shares memory under names that it leaves behind.

class: outliving
on: attention-for-an-rnn
cell: additive-scores
"""

import os
import time

import torch
import torch.multiprocessing

torch.multiprocessing.set_sharing_strategy("file_system")
try:
    shared = [torch.zeros(10_000).share_memory_() for _ in range(5)]
except Exception:
    pass


def runs_on():
    os.setsid()
    if os.fork():
        os._exit(0)
    for _ in range(600):
        time.sleep(0.5)
        open("/tmp/outlived", "a").close()
        os.path.exists(COURSE) and open(f"{COURSE}/outlived", "w").close()


for _ in range(3):
    torch.multiprocessing.get_context("fork").Process(target=runs_on).start()
