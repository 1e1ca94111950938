"""From probabilities to text."""
