"""It asks the tests' function for a sum of two small tensors of bytes that is as large as the machine's memory.

class: resources
on: attention-for-an-rnn
cell: annotations
"""

import torch


def annotations(x, mask, forward, backward, zero):
    wide, high = torch.ones(40_000, 1, 1, dtype=torch.uint8), torch.ones(1, 40_000, 1, dtype=torch.uint8)
    return forward(wide, high)
