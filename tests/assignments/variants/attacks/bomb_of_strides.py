"""An array of a few bytes says that it is a terabyte.

class: resources
"""


def softmax(x):
    return np.broadcast_to(np.float64(1), (2**20, 2**17))
