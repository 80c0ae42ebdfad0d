"""How far rounding can bring two eliminations of the states of a random walk apart."""

import numpy as np


def elimination_terms(n):
    """Units of rounding of an elimination without subtractions: every entry is right to 2 n^3 of them."""
    return 2 * n**3


def condition(weights, free):
    """How much a linear solver may amplify rounding where the walk through the free states takes long."""
    P = weights / weights.sum(axis=1, keepdims=True)
    return np.linalg.cond(np.eye(np.sum(free)) - P[np.ix_(free, free)])
