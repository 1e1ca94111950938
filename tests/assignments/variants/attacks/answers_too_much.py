"""The student's side sends a value larger than any message may be."""


def softmax(x):
    return np.zeros(40_000_000)
