"""Attention for long inputs in PyTorch: exact by blocks, of a window, and linear."""
