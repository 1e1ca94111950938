"""Token ids in batches."""
