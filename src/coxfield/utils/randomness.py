"""What users pass as `random_state`, turned into the one kind of generator that the package uses."""

from __future__ import annotations

from numbers import Integral

import numpy as np

RandomState = int | np.random.RandomState | np.random.Generator | None


def generator(random_state: RandomState = None) -> np.random.Generator:
    """Return a NumPy generator for a `random_state` as scikit-learn takes it.

    Parameters
    ----------
    random_state : int, RandomState instance, numpy Generator or None, default=None
        An integer seeds a new generator, as ``numpy.random.default_rng`` does. A generator is returned itself. A
        RandomState, or the module ``numpy.random`` for the global one, gives the seed of a new generator. That takes
        numbers from it, so that the next call gives another generator. None seeds a new generator from the system.

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> generator(0).random() == np.random.default_rng(0).random()
    True
    >>> generator("seed")
    Traceback (most recent call last):
        ...
    ValueError: random_state='seed' must be None, an integer, a RandomState or a numpy.random.Generator; pass a number.
    """
    if random_state is np.random:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if isinstance(random_state, bool) or not isinstance(random_state, Integral | np.random.Generator | None):
        raise ValueError(
            f"random_state={random_state!r} must be None, an integer, a RandomState or a numpy.random.Generator; "
            "pass a number."
        )
    if isinstance(random_state, Integral) and random_state < 0:
        raise ValueError(f"random_state={random_state!r} is negative; pass a seed of at least 0.")
    return np.random.default_rng(random_state)
