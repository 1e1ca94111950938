"""Import TensorFlow without its start-up banner, which no setting of TensorFlow's own turns off.

The banner (oneDNN, missing CUDA drivers) is written by C++ to file descriptor 2 before any log level is read, so
the descriptor itself is held while TensorFlow loads. If the import fails, what was held is written out again.
"""

import contextlib
import os
import sys
import tempfile

from course_lib._extras import needed


@contextlib.contextmanager
def banner_hidden():
    """Hold file descriptor 2 for the duration of the block; give its contents back when the block raises."""
    if sys.stderr is not None:
        sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(kept, held.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # after the import; level 2 reports a missing GPU as an error
if "tensorflow" not in sys.modules:
    with needed("tensorflow"), banner_hidden():
        import tensorflow  # noqa: F401
