"""What a model is before a framework computes it: its sizes, what it returns, how its weights and folders are named.

The models themselves stand in each framework's own `models`.
"""
