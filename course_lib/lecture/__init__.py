"""What a notebook needs and no model: listings, figures, kernels."""
