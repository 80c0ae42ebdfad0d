import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from coxfield import LGCPClassifier
from coxfield.datasets import make_circles
from coxfield.engine.store import Labelled
from coxfield.selection import pseudo_likelihood as learning
from coxfield.selection.pseudo_likelihood import pseudo_likelihood


def noisy(n=120, seed=0):
    """Two classes along the first feature; the second says nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None] * [1, 0], y


@pytest.mark.parametrize(
    "kernel",
    [None, RBF([1.0, 1.0]), {0: RBF(1.0), 1: Matern([1.0, 1.0])}, 0.5 * RBF(0.5) + 0.1 * RBF(2.0)],
    ids=["isotropic", "ARD", "a kernel per class", "called"],
)
def test_learning_ends_at_a_maximum(kernel, monkeypatch):
    monkeypatch.setattr(learning, "TOLERANCE", 1e-9)
    X, y = noisy()
    clf = LGCPClassifier(kernel, selection="pseudo_likelihood").fit(X, y)
    path = clf.learning_path_
    assert (np.diff(path["log_posterior"]) > 0).all()
    found = pseudo_likelihood(Labelled(X, y, 2), clf._covariances, clf.mean_, smoothing=1 / len(y))
    assert found.value == pytest.approx(path["log_pseudo_likelihood"][-1], rel=1e-9)
    p = clf.loo_predict_proba()[np.arange(len(y)), y]
    assert np.log(p).sum() == pytest.approx(found.value, rel=1e-9)
    assert clf.mean_.sum() == pytest.approx(0, abs=1e-9)
    assert found.by_mean - clf.mean_ == pytest.approx(0, abs=0.01)  # derivative of the posterior, in nats


def test_means_stay_unless_they_are_learned():
    X, y = noisy()
    clf = LGCPClassifier(mean={1: 0.7}, selection="pseudo_likelihood", learn_mean=False).fit(X, y)
    assert clf.mean_.tolist() == [0, 0.7]
    free = LGCPClassifier(mean={1: 0.7}, selection="pseudo_likelihood").fit(X, y)
    assert free.mean_.sum() == pytest.approx(0.7)
    assert free.mean_[1] != 0.7


def test_fixed_parameters_stay_and_bounds_hold():
    X, y = noisy()
    bounded = RBF([1.0, 1.0], [(0.5, 5.0), (0.1, 1.2)])
    first, second = LGCPClassifier(bounded, selection="pseudo_likelihood").fit(X, y).kernel_.k2.length_scale
    assert 0.5 <= first < 5
    assert second == pytest.approx(1.2)  # it would be longer
    learned = LGCPClassifier(ConstantKernel(0.3, "fixed") * bounded, selection="pseudo_likelihood").fit(X, y).kernel_
    assert learned.k1.constant_value == 0.3
    assert learned.k2.length_scale[0] != 1.0
    fixed = LGCPClassifier(2.0 * RBF(0.8, "fixed"), selection="pseudo_likelihood").fit(X, y).kernel_
    assert fixed.k2.length_scale == 0.8
    assert fixed.k1.constant_value != 2.0
    nothing = ConstantKernel(0.3, "fixed") * RBF(1.0, "fixed")
    with pytest.raises(ValueError, match="nothing to learn"):
        LGCPClassifier(nothing, selection="pseudo_likelihood", learn_mean=False).fit(X, y)


def test_separable_classes_have_finite_parameters():
    X, y = make_circles(2, 40, random_state=0)
    clf = LGCPClassifier(selection="pseudo_likelihood").fit(X, y)
    assert clf.loo_error_ == 0
    assert clf.kernel_.k1.constant_value < 1e4
    assert np.isfinite(clf.predict_log_proba(X)).all()


def test_pure_noise_is_not_fitted_by_a_hundred_length_scales():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 40)), np.arange(80) % 2
    clf = LGCPClassifier(RBF(np.ones(40)), selection="pseudo_likelihood").fit(X, y)
    new, truth = rng.normal(size=(400, 40)), rng.integers(2, size=400)
    loss = -np.mean(clf.predict_log_proba(new)[np.arange(400), truth])
    assert loss < np.log(2) + 0.1


def test_units_of_a_feature_do_not_matter_to_length_scales_per_feature():
    X, y = noisy()
    p, q = (
        LGCPClassifier(RBF([1.0, 1.0]), selection="pseudo_likelihood").fit(X * units, y).loo_predict_proba()
        for units in (np.array([1.0, 1.0]), np.array([1e-3, 1e3]))
    )
    np.testing.assert_allclose(p, q, atol=0.02)


def test_a_sample_of_rows_learns_nearly_the_same(monkeypatch):
    X, y = noisy(600)
    whole = LGCPClassifier(selection="pseudo_likelihood").fit(X, y)
    monkeypatch.setattr(learning, "MOST_ROWS", 300)
    part = LGCPClassifier(selection="pseudo_likelihood").fit(X, y)
    assert 0 < np.abs(part.predict_proba(X) - whole.predict_proba(X)).max() < 0.1


def test_progress_is_shown(capsys):
    X, y = noisy(40)
    LGCPClassifier(selection="pseudo_likelihood", verbose=1).fit(X, y)
    assert "learning, 100 steps at most" in capsys.readouterr().err


def test_classes_share_what_is_learned_if_they_share_a_kernel():
    X, y = noisy()
    own = LGCPClassifier({0: RBF(1.0), 1: RBF(1.0)}, selection="pseudo_likelihood").fit(X, y).kernel_
    assert own[0] != own[1]
    kernel = RBF(1.0)
    shared = LGCPClassifier({0: kernel, 1: kernel}, selection="pseudo_likelihood").fit(X, y).kernel_
    assert shared[0] == shared[1]
