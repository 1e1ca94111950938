"""A list holds itself thirty-two times, thirty-two deep.

class: resources
"""


def softmax(x):
    made = [1.0]
    for _ in range(32):
        made = [made] * 32
    return made
