"""Labellings of least energy by minimum cuts, with proofs of how good they are."""
