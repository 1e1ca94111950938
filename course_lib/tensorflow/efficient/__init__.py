"""Attention for long inputs in TensorFlow: exact by blocks, of a window, and linear."""
