"""A function runs for ever, and is deaf to every signal that may be ignored.

class: interpreter and shell
"""


def softmax(x):
    import signal

    for number in (signal.SIGINT, signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass
