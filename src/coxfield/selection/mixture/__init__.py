"""Covariances learned as mixtures: a bank of members, their leave-one-out sums, and one concave problem."""
