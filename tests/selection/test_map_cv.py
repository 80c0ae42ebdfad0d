import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.datasets import make_circles
from coxfield.field import LabelField, map_labels
from coxfield.kernels.protocol import PerClass
from coxfield.kernels.radial import recognise
from coxfield.kernels.sklearn_tree import rescale_length
from coxfield.selection.few_labels import cv_path
from coxfield.selection.grid import folds, hide
from tolerances import assert_close, decided


def covariances(kernels):
    return PerClass.of(kernels).map(lambda kernel: recognise(kernel, 2))


def cv_error_alone(X, codes, kernels, mean, n_folds):
    """Labels recovered fold by fold, each fold a field of its own."""
    hidden, wrong = folds(codes, n_folds), 0
    for rows in hidden:
        field = LabelField.from_points(X, kernels, hide(codes, rows), mean=mean)
        labels = codes.copy()
        labels[field.nodes] = map_labels(field).labels
        wrong += int((labels[rows] != codes[rows]).sum())
    return wrong / sum(map(len, hidden))


@pytest.mark.parametrize("kernels", [[RBF(0.8)] * 2, [RBF(0.5), 2.0 * Matern(1.0)]], ids=["shared", "per class"])
def test_cross_validation_error_is_that_of_the_best_labellings_by_enumeration(kernels):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(11, 2)), np.array([0, 1, 0, 1, 0, 1, -1, -1, -1, -1, -1])
    mean, wrong = np.array([0.1, 0.0]), 0
    for rows in folds(codes, 2):
        visible = hide(codes, rows)
        field = LabelField.from_points(X, kernels, visible, mean=mean)
        labellings, energies = field.enumerate()
        labels = visible.copy()
        labels[field.nodes] = labellings[energies.argmin()]
        assert decided(-energies[None], terms=11**2, at_least=1.0)
        wrong += (labels[rows] != codes[rows]).sum()
    path = cv_path(X, codes, covariances(kernels), mean, np.ones(1), n_folds=2)
    assert_close(path["cv_error"][0], wrong / 6)


def test_path_tries_each_factor_and_marks_the_trivial_ones():
    X, truth = make_circles(2, random_state=3)
    codes = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    kernels, mean, heard = [RBF(1.0)] * 2, np.zeros(2), []
    path = cv_path(X, codes, covariances(kernels), mean, np.array([30.0, 1.0]), n_folds=5, done=heard.append)
    assert sum(heard) == 2 * 6
    assert path["trivial"].tolist() == [True, False]
    assert np.isnan(path["cv_error"][0])
    assert path["cv_error"][1] == cv_error_alone(X, codes, kernels, mean, 5)
    assert path.best == 1


def test_hidden_labels_are_not_used_even_if_all_labellings_tie():
    X, truth = make_circles(2, random_state=3)
    codes = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    kernels, mean = [RBF(1.0)] * 2, np.zeros(2)
    of = covariances(kernels)
    errors = [cv_path(X, c, of, mean, np.array([1e-5]))["cv_error"][0] for c in (codes, _swapped(codes))]
    # No points are coupled, so any guess is right for exactly one of two opposite labellings.
    assert sum(errors) == pytest.approx(1)


def _swapped(codes):
    return np.where(codes >= 0, 1 - codes, -1)


def test_when_all_length_scales_are_trivial_all_are_cross_validated():
    X, truth = make_circles(2, random_state=3)
    codes = np.where(np.arange(len(truth)) % 60 == 0, truth, -1)
    kernels, mean = [RBF(1.0)] * 2, np.zeros(2)
    path = cv_path(X, codes, covariances(kernels), mean, np.array([40.0, 30.0]), n_folds=5)
    assert path["trivial"].all()
    for factor, error in zip(path["factor"], path["cv_error"], strict=True):
        scaled = [rescale_length(kernel, factor) for kernel in kernels]
        assert error == cv_error_alone(X, codes, scaled, mean, 5)
