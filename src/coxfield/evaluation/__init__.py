"""Measures of how good predicted probabilities are."""
