"""Labellings of least energy by minimum cuts, with proofs."""
