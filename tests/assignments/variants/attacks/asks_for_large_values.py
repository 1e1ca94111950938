"""A right version of an earlier part is made to compute for long.

class: resources
cell: attention
"""


def attention(q, k, v, mask=None):
    return softmax(np.zeros((10_000, 1_000))), softmax(np.zeros((10_000, 1_000)))
