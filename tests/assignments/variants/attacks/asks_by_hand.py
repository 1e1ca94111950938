"""The code asks for input.

class: protocol
"""


def softmax(x):
    return input("the right values? ")
