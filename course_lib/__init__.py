"""Attention and Transformers: every model of the course in NumPy, PyTorch and TensorFlow."""

try:
    import _course_triton_first as _triton_first  # where the course is installed: a wheel has it there and only there
except ModuleNotFoundError:
    from course_lib import _triton_first

__version__ = "0.1.0"  # here alone; pyproject.toml reads it

_triton_first.install()  # before anything imports TensorFlow
