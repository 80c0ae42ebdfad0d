"""What a fit can be asked: draws, bootstrap intervals, and the classifier of several types."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield import LGCPClassifier
from coxfield.process import Bootstrap, Grid, LogGaussianCoxProcess, PolygonWindow, Window, superpose, thin
from tolerances import assert_close

WINDOW = Window([(0, 1), (0, 1)])
A = LogGaussianCoxProcess(1.5 * RBF(0.15), np.log(100) - 0.75).sample(WINDOW, resolution=64, random_state=0)
B = LogGaussianCoxProcess(1.0 * RBF(0.1), np.log(150) - 0.5).sample(WINDOW, resolution=64, random_state=1)
FIT = LogGaussianCoxProcess.fit(A, RBF(1.0))
TYPES = LogGaussianCoxProcess.fit_types(superpose({"a": A, "b": B}), RBF(1.0))


def test_the_fitted_intensity_adds_up_to_the_points():
    assert_close(FIT.intensity().integral, float(len(A)), terms=10**5)
    assert_close(FIT.process_.expected_count(WINDOW), float(len(A)), terms=20)
    assert FIT.intensity(Grid.over(WINDOW, 8)).values.shape == (8, 8)


def test_simulations_are_in_the_window_of_the_pattern():
    one, several = FIT.simulate(random_state=0), FIT.simulate(3, random_state=0)
    assert one.window == WINDOW
    assert len(several) == 3
    triangle = PolygonWindow([(0, 0), (1, 0), (0, 1)])
    cut = LogGaussianCoxProcess.fit(A.clipped(triangle), RBF(1.0)).simulate(random_state=1)
    assert cut.window == triangle
    assert triangle.contains(cut.points).all()


def test_refitting_the_same_pattern_changes_nothing():
    assert FIT.refit(A).estimates_ == FIT.estimates_


def test_bootstrap_is_reproducible_and_about_the_fit():
    found = FIT.bootstrap(12, random_state=0)
    again = FIT.bootstrap(12, random_state=0)
    np.testing.assert_array_equal(found.estimates, again.estimates)
    assert found.names == ("variance", "correlation_length", "mean")
    assert all(error > 0 for error in found.standard_errors.values())
    for low, high in found.intervals(0.9).values():
        assert low < high
    with pytest.raises(ValueError, match="n must be a whole number of at least 2, got 1"):
        FIT.bootstrap(1)


def test_intervals_are_normal_and_those_of_positive_numbers_are_of_logarithms():
    drawn = np.linspace(1, 3, 101)[:, None] * [1.0, 1.0]
    found = Bootstrap(("variance", "mean"), np.array([2.0, 2.5]), drawn)
    half = 1.6448536269514722
    factor = np.exp(half * np.std(np.log(drawn[:, 0]), ddof=1))
    assert_close(
        np.array(found.intervals(0.9)["variance"]), np.array([2 / factor, 2 * factor]), terms=101, condition=10
    )
    spread = half * np.std(drawn[:, 1], ddof=1)
    assert_close(np.array(found.intervals(0.9)["mean"]), np.array([2.5 - spread, 2.5 + spread]), terms=101, scale=4.0)
    assert_close(found.bias["mean"], -0.5, terms=101, scale=3.0)


def test_the_classifier_is_the_papers_with_fitted_kernels_and_means():
    clf = TYPES.classifier()
    assert isinstance(clf, LGCPClassifier)
    new = np.array([[0.3, 0.4], [0.9, 0.1]])
    scores = []
    for mark, points in (("a", A.points), ("b", B.points)):
        fit = TYPES[mark]
        scores.append(fit.mean_ + fit.variance_ / 2 + fit.kernel_(new, points).sum(axis=1))  # eq. activationFunction
    odds = np.log(clf.predict_proba(new)) @ [-1, 1]
    assert_close(odds, scores[1] - scores[0], terms=400, scale=np.abs(scores).max(), condition=4)


def test_the_classifier_learns_from_the_points_that_it_is_given():
    some = thin(TYPES.pattern, 0.2, random_state=0)
    clf = TYPES.classifier(some)
    assert len(clf.X_fit_) == len(some) < len(TYPES.pattern)


def test_maps_and_labels_of_types():
    grid, shares = TYPES.posterior_probabilities(Grid.over(WINDOW, 16))
    assert_close(sum(shares.values()), np.ones(grid.shape), terms=4)
    corner = A.points[:1]
    drawn = TYPES.sample_labels(np.concatenate([corner, [[0.5, 0.5]]]), 400, random_state=0)
    assert drawn.shape == (400, 2)
    assert set(np.unique(drawn)) <= {"a", "b"}
    # One new point alone has the probability of the classifier; 400 draws of a chain, 4 standard errors of 100.
    alone = TYPES.sample_labels([[0.5, 0.5]], 400, random_state=1)
    p = TYPES.classifier().predict_proba([[0.5, 0.5]])[0, 0]
    assert abs((alone == "a").mean() - p) <= 4 * np.sqrt(max(p * (1 - p), 0.01) / 100)


def test_what_types_refuse():
    with pytest.raises(ValueError, match="one type only, 'a': use fit"):
        LogGaussianCoxProcess.fit_types(superpose({"a": A}))
    trended = LogGaussianCoxProcess.fit_types(superpose({"a": A, "b": B}), Matern(nu=1.5), trend="x")
    with pytest.raises(ValueError, match="one mean per type, but 'a' has a trend"):
        trended.classifier()
