"""Ctrl-C during a training: it waits for the end of the update, so that what is saved can be gone on with exactly."""

import signal
import threading


class Interruption:
    """A block in which the first Ctrl-C sets `asked`, and only the second one interrupts at once.

    Torn out of an update, a model has some new weights and some old ones, and the dropout of half a batch is drawn.
    Whoever works inside looks at `asked` where it can stop. If all came to its end, the block ends in the
    KeyboardInterrupt that was asked for. Outside the main thread, which alone gets signals, and where somebody else
    handles Ctrl-C already, everything stays as it is.
    """

    def __init__(self):
        self.asked, self._before = False, None

    def __enter__(self) -> "Interruption":
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, kind, *rest) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if kind is None and self.asked:
            raise KeyboardInterrupt

    def _ask(self, signum, frame) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
