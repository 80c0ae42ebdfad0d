"""Covariance functions, as everything else sees them."""
