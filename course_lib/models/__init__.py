"""What a model is before a framework computes it: its configuration, what it returns, how its weights are named."""
