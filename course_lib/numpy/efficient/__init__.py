"""Attention for long inputs in NumPy: exact by blocks, of a window, and linear."""
