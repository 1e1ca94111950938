"""How good a model is, with intervals where there are some, and what it has to beat."""
