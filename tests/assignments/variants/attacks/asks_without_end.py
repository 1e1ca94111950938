"""A right version of an earlier part is asked for without end.

class: resources
cell: attention
"""


def attention(q, k, v, mask=None):
    while True:
        softmax(np.zeros((3, 3)))
