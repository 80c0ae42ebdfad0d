import numpy as np
import pytest
from coxfield.kernels.covariance import rescale_length
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.datasets import make_circles
from coxfield.field import LabelField
from coxfield.selection.map_cv import CvPath, cv_error, cv_path, folds, relabel
from tolerances import assert_close, decided


def test_folds_partition_the_labelled_rows_and_share_out_the_classes():
    codes = np.array([0, 1, -1, 0, 0, 1, -1, 1, 0, 1, 2, 2])
    hidden = folds(codes, 2)
    assert sorted(np.concatenate(hidden)) == [0, 1, 3, 4, 5, 7, 8, 9, 10, 11]
    for rows in hidden:
        assert np.bincount(codes[rows]).tolist() == [2, 2, 1]
    assert [len(rows) for rows in folds(codes, 50)] == [1] * 10


@pytest.mark.parametrize("kernels", [[RBF(0.8)] * 2, [RBF(0.5), 2.0 * Matern(1.0)]], ids=["shared", "a kernel a class"])
def test_cross_validation_error_is_that_of_the_best_labellings_by_enumeration(kernels):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(11, 2)), np.array([0, 1, 0, 1, 0, 1, -1, -1, -1, -1, -1])
    mean, hidden = np.array([0.1, 0.0]), [np.array([0, 1, 2]), np.array([3, 4, 5])]
    wrong = 0
    for rows in hidden:
        visible = codes.copy()
        visible[rows] = -1
        field = LabelField.from_points(X, kernels, visible, mean=mean)
        labellings, energies = field.enumerate()
        labels = visible.copy()
        labels[field.nodes] = labellings[energies.argmin()]
        assert decided(-energies[None], terms=11**2, at_least=1.0)
        np.testing.assert_array_equal(relabel(X, visible, kernels, mean), labels)
        wrong += (labels[rows] != codes[rows]).sum()
    assert_close(cv_error(X, codes, kernels, mean, hidden), wrong / 6)


def test_path_tries_each_factor_and_knows_the_trivial_ones():
    X, truth = make_circles(2, random_state=3)
    codes = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    kernels, mean, heard = [RBF(1.0)] * 2, np.zeros(2), []
    path = cv_path(X, codes, kernels, mean, np.array([30.0, 1.0]), n_folds=5, done=heard.append)
    assert sum(heard) == 2 * 6
    assert path.trivial.tolist() == [True, False]
    assert np.isnan(path.cv_error[0])
    assert path.cv_error[1] == cv_error(X, codes, kernels, mean, folds(codes, 5))
    assert path.best() == 1


def test_where_every_labelling_is_as_good_hidden_labels_are_not_known_all_the_same():
    X, truth = make_circles(2, random_state=3)
    codes = np.where(np.arange(len(truth)) % 20 == 0, truth, -1)
    kernels, mean = [RBF(1.0)] * 2, np.zeros(2)
    errors = [cv_path(X, c, kernels, mean, np.array([1e-5])).cv_error[0] for c in (codes, _swapped(codes))]
    # Nothing is coupled to anything: whatever is guessed, it is right for one of two opposite labellings.
    assert sum(errors) == pytest.approx(1)


def _swapped(codes):
    return np.where(codes >= 0, 1 - codes, -1)


def test_when_all_length_scales_are_trivial_all_are_cross_validated():
    X, truth = make_circles(2, random_state=3)
    codes = np.where(np.arange(len(truth)) % 60 == 0, truth, -1)
    kernels, mean = [RBF(1.0)] * 2, np.zeros(2)
    path = cv_path(X, codes, kernels, mean, np.array([40.0, 30.0]), n_folds=5)
    assert path.trivial.all()
    for factor, error in zip(path.factor, path.cv_error, strict=True):
        scaled = [rescale_length(kernel, factor) for kernel in kernels]
        assert error == cv_error(X, codes, scaled, mean, folds(codes, 5))


def test_the_longest_length_scale_of_least_error_wins():
    factor, nothing = np.array([8.0, 4.0, 2.0, 1.0, 0.5]), np.zeros(5, dtype=bool)
    assert CvPath(factor, np.array([0.5, 0.2, 0.1, 0.0, 0.0]), nothing).best() == 3
    untried = np.array([np.nan, np.nan, 0.2, 0.3, 0.2])
    assert CvPath(factor, untried, np.isnan(untried)).best() == 2
