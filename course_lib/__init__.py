"""Attention and Transformers: every model of the course in NumPy, PyTorch and TensorFlow."""

from course_lib import _triton_first

_triton_first.install()  # before anything imports TensorFlow
