"""Derivatives by finite differences."""


def difference(f, h=1e-3):
    """Derivative at 0 by central differences of fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)
