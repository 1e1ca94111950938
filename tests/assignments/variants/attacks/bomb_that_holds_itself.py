"""A list is its own first entry.

class: resources
"""


def softmax(x):
    made = []
    made.append(made)
    return made
