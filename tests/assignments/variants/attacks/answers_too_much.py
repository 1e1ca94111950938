"""The student's side sends a value larger than any message may be.

class: resources
"""


def softmax(x):
    return np.zeros(40_000_000)
