"""A backward that is right, and takes half of the time that a test may take.

class: accidents
on: attention-for-an-rnn
cell: additive-scores
others: solved
"""

import time

import torch


def additive_scores(s, h, W, U, v):
    units = torch.tanh((s @ W.T)[:, None] + h @ U.T)
    if units.requires_grad:
        units.register_hook(lambda cotangent: time.sleep(1.5))
    return units @ v
