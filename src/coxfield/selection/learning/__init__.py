"""Parameters by maximum pseudo-likelihood."""
