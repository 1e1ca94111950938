"""A long call inside of NumPy, which no signal interrupts.

class: accidents
cell: causal-mask
others: solved
loses: test-causal-mask 2
"""


def causal_mask(T):
    np.sort(np.random.default_rng(0).normal(size=60_000_000))
    return np.ones((2000, 2000)) @ np.ones((2000, 2000))
