"""A model made of a state that was checked, and tried out before anybody relies on it."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from coxfield import LGCPClassifier
from coxfield.io.requirements import Unsound, quoted, require
from coxfield.kernels.mixture import Mixture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

ROWS = 16
VALUES = 10**8  # kernel values that a trial may take
LARGEST = 1e250  # of a score of a mixture: far from the points it is a product with factors that are larger


def revived(state: dict) -> LGCPClassifier:
    """The model of a state, after a trial."""
    if "feature_names_in_" in state:  # as scikit-learn has them
        state = {**state, "feature_names_in_": state["feature_names_in_"].astype(object)}
    model = LGCPClassifier.__new__(LGCPClassifier)
    with _refusing():
        model.__setstate__(state)
    try_out(model)
    return model


def try_out(model: LGCPClassifier) -> None:
    """Predict some of the training points. The probabilities must be finite numbers.

    The trial finds what no other check can know, such as a transformer whose parts do not fit together.
    """
    with _refusing():
        model.get_params(deep=True)  # as `set_params` and `repr` need it
        X = model.X_fit_
        if any(X.shape[0] * mixture.n_reference > VALUES for mixture in _given_mixtures(model)):
            return  # the densities of all points would be computed first
        points = X[_rows(model)]
        labels, found = model.predict_with_proba(points)
        complete = found.shape == (points.shape[0], len(model.classes_))
        require(complete, "it does not predict a probability for each class")
        require(bool(np.isfinite(found).all()), "the probabilities that it predicts are not finite")
        require(bool(np.isin(labels, model.classes_).all()), "it does not predict its classes")
        largest = LARGEST if isinstance(model.kernel_, Mixture) else np.finfo(float).max
        require(bool((np.abs(model._scores(points).values) <= largest).all()), "its scores are too large to be added")


def _rows(model: LGCPClassifier) -> NDArray:
    """Training points to predict: some of them, and those of the least densities, where scores are the largest."""
    mixture = model.kernel_
    densities = mixture.log_densities if isinstance(mixture, Mixture) and hasattr(model, "mixture_") else ()
    remote = [int(row) for log_q in densities or () for row in log_q.argmin(axis=1)[:ROWS]]
    return np.unique([*np.linspace(0, model.X_fit_.shape[0] - 1, ROWS).astype(int).tolist(), *remote])


@contextmanager
def _refusing() -> Iterator[None]:
    """A context in which all that arrays which do not fit together can cause is `Unsound`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Unsound:
        raise
    except Exception as error:
        raise Unsound(f"it cannot predict its own points ({type(error).__name__}: {quoted(str(error))})") from error


def _given_mixtures(model: LGCPClassifier) -> list[Mixture]:
    """Mixtures that were given as kernels. One that was learned knows the densities of the points already."""
    kernels = model.kernel_.values() if isinstance(model.kernel_, dict) else [model.kernel_]
    return [kernel for kernel in kernels if isinstance(kernel, Mixture) and not hasattr(model, "mixture_")]
