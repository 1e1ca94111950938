"""What comes back is text with half a surrogate pair, which no file can be written with.

class: values that lie
"""


def softmax(x):
    return "\ud800" * 10
