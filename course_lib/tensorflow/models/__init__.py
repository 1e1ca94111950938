"""The models in TensorFlow."""
