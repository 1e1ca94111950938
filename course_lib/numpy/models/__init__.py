"""The models in NumPy."""
