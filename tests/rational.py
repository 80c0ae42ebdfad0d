"""Alpha-permanents by the sum over permutations, in fractions: no rounding, no overflow, no underflow."""

from fractions import Fraction
from itertools import permutations
from math import prod

import numpy as np


def n_cycles(sigma):
    seen, count = set(), 0
    for start in range(len(sigma)):
        count += start not in seen
        while start not in seen:
            seen.add(start)
            start = sigma[start]
    return count


def permanent(A, alpha):
    """The alpha-permanent of a matrix of floating point numbers, as a fraction."""
    A, alpha = [[Fraction(value) for value in row] for row in np.asarray(A).tolist()], Fraction(alpha)
    everyone = range(len(A))
    return sum(
        (alpha ** n_cycles(sigma) * prod(A[j][sigma[j]] for j in everyone) for sigma in permutations(everyone)),
        Fraction(0),
    )


def excess(A, alpha):
    """The ratio of the permanents of A with and without its last row and column, minus alpha times its last entry."""
    A = np.asarray(A)
    ratio = permanent(A, alpha) / permanent(A[:-1, :-1], alpha)
    return float(ratio - Fraction(alpha) * Fraction(float(A[-1, -1])))
