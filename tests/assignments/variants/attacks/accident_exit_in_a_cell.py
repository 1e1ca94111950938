"""A cell in the middle ends the process.

class: accidents
cell: causal-mask
others: solved
loses: test-causal-mask 2
"""

import os

os._exit(1)
