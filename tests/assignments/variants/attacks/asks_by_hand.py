"""The code asks for input."""


def softmax(x):
    return input("the right values? ")
