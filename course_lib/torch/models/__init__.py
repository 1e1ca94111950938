"""The models in PyTorch."""
