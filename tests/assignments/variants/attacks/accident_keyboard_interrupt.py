"""A function raises KeyboardInterrupt.

class: accidents
cell: split-heads
others: solved
loses: test-split-heads 2
"""


def split_heads(x, n_heads):
    raise KeyboardInterrupt
