"""Masks that say who may attend to whom: the neutral ones are NumPy's own, under the name that every framework has."""

from course_lib.masks import causal_mask, padding_mask, real_tokens, window_mask

__all__ = ["causal_mask", "padding_mask", "real_tokens", "window_mask"]
