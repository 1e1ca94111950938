"""Attention and Transformers: every model of the course in NumPy, PyTorch and TensorFlow."""
