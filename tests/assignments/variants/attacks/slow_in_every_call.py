"""Every call takes nearly the time that a test may take.

class: interpreter and shell
"""

import time


def softmax(*given, **named):
    time.sleep(2.5)


padding_mask = causal_mask = softmax
