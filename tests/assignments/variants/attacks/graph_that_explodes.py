"""What is differentiated has a graph that doubles until there is no memory.

class: resources
on: attention-for-an-rnn
cell: additive-scores
others: solved
loses: test-additive-scores 1
"""

import torch


def additive_scores(s, h, W, U, v):
    units = torch.tanh((s @ W.T)[:, None] + h @ U.T)
    while units.requires_grad:
        units = torch.cat([units.exp(), units.exp()])
    return units @ v
