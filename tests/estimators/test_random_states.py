"""Every estimator that draws takes a random_state as scikit-learn does."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import PermanentalClassifier, SLGCPClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
Y = np.arange(20) % 2
SOME = np.where(np.arange(20) < 6, Y, -1)


def distributions(**params):
    clf = SLGCPClassifier(0.3 * RBF(1.0), n_draws=40, **params)
    return lambda random_state: clf.set_params(random_state=random_state).fit(X, SOME).label_distributions_


def permanental(random_state):
    clf = PermanentalClassifier(RBF(1.0), method="importance", n_samples=20, selection=None, random_state=random_state)
    return clf.fit(X, Y).predict_proba(X[:3])


DRAWS = {
    "marginals": distributions(selection=None, inference="marginals"),
    "marginals with selection": distributions(inference="marginals", length_scales=[0.7], n_folds=2),
    "perturb-and-MAP": distributions(selection=None, inference="perturb_and_map"),
    "permanental": permanental,
}
pytestmark = pytest.mark.filterwarnings(
    "ignore::coxfield.estimators.trivial.TrivialLabellingWarning",
    "ignore::coxfield.estimators.trivial.ChainsDisagreeWarning",
)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_int_generator_random_state_and_none(draw):
    first = draw(5)
    for same in (5, np.int64(5), np.random.default_rng(5)):
        np.testing.assert_array_equal(draw(same), first)
    assert not np.array_equal(draw(6), first)
    legacy = np.random.RandomState(5)
    second, third = draw(legacy), draw(legacy)
    np.testing.assert_array_equal(draw(np.random.RandomState(5)), second)
    assert not np.array_equal(second, third)
    assert not np.array_equal(draw(None), draw(None))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize(
    ("wrong", "words"), [("dice", "random_state='dice' must be"), (-1, "random_state=-1 is negative")]
)
def test_anything_else_is_refused(draw, wrong, words):
    with pytest.raises(ValueError, match=words):
        draw(wrong)


def test_the_most_probable_labelling_needs_no_luck():
    clf = SLGCPClassifier(0.3 * RBF(1.0), selection=None)
    one, two = (clf.set_params(random_state=seed).fit(X, SOME).transduction_ for seed in (1, np.random.default_rng(2)))
    np.testing.assert_array_equal(one, two)
