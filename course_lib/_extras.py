"""What to say where a package is missing that only a part of the course needs.

`pip install .` brings NumPy and light packages. PyTorch, TensorFlow and what the lectures draw with
are extras, in the words of Python packaging: pyproject.toml lists them.
"""

import contextlib


@contextlib.contextmanager
def needed(extra: str):
    """A block of imports that needs the extra `extra`.

    Raises
    ------
    ModuleNotFoundError : something that the block imports is not installed; the message says how to install it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        advice = f'in the folder of the course, run pip install ".[{extra}]"'
        message = f"{error.name} is not installed, and this part of the course needs it: {advice}"
        raise ModuleNotFoundError(message, name=error.name) from None
