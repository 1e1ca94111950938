"""The last function ends the process.

class: accidents
cell: multi-head-attention
others: solved
loses: test-multi-head-attention 4
"""

import os


def multi_head_attention(*given, **named):
    os._exit(1)
