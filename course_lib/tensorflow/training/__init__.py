"""Training in TensorFlow."""
