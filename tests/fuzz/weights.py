"""Weights of points, from the smallest numbers there are to the largest."""

import numpy as np
from hypothesis import strategies as st

from fuzz.chance import generator_seeds, happens


@st.composite
def weights(draw, n):
    """None in most cases, else n weights of one magnitude or of many, sometimes with one that is refused."""
    if not happens(draw, 35):
        return None
    rng = np.random.default_rng(draw(generator_seeds()))
    low = draw(st.sampled_from([0, 0, -5, -150, -320]))
    high = draw(st.sampled_from([0, 0, 5, 150, 308]))
    values = rng.uniform(0.5, 1.5, n) * 10.0 ** rng.uniform(low, high, n)
    if happens(draw, 30):
        values = rng.integers(0, 4, n).astype(float)
    if happens(draw, 20):
        values[rng.random(n) < 0.5] = 0.0
    if happens(draw, 6):
        values[draw(st.integers(0, n - 1))] = draw(st.sampled_from([-1.0, np.nan, np.inf, -5e-324]))
    if happens(draw, 2):
        values = values[:-1]
    return tuple(values.tolist())
