"""Weights in and out: names, files, and models that load and save themselves."""
