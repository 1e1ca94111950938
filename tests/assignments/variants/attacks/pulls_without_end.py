"""A backward that asks for values of the tests' function, and for derivatives of these, for ever.

class: protocol
on: attention-for-an-rnn
cell: annotations
"""

import torch


def annotations(x, mask, forward, backward, zero):
    found = 0 * torch.cat([x, x], dim=2) + 0 * zero.sum()

    def asks(cotangent):
        while True:
            given = torch.ones(2, 2, requires_grad=True)
            forward(given, given).sum().backward()

    if found.requires_grad:
        found.register_hook(asks)
    return found
