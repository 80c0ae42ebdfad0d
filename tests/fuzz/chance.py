"""Small choices that several strategies make."""

from hypothesis import strategies as st


def happens(draw, percent):
    """Whether something happens that should happen in so many of a hundred cases. The simplest answer is no."""
    return draw(st.integers(0, 99)) >= 100 - percent


def mostly(draw, usual, rare, percent=10):
    """A draw from the usual values, or, in so many of a hundred cases, from the rare ones."""
    return draw(st.sampled_from(rare if happens(draw, percent) else usual))


def generator_seeds():
    """Seeds of the numbers of a case. Drawing numbers one by one would take most of the time."""
    return st.integers(0, 2**32 - 1)
