"""Text to token ids, and sequences of ids to arrays."""
