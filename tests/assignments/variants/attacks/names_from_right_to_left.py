"""Types, names and messages are of letters that turn the text around, and of others that look like Latin ones.

class: values that lie
"""

Turned = type(
    "\u202eerocS", (Exception,), {"__str__": lambda self: "\u202e4 fo 4\u202c \u0000\ud800 <script>alert(1)</script>"}
)


def softmax(x):
    raise Turned


def ѕoftmax(x):  # its first letter is Cyrillic
    return x
