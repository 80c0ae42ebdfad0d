"""Everything that draws takes a random_state as scikit-learn does."""

from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import PermanentalClassifier, SLGCPClassifier
from coxfield.field import (
    Gibbs,
    LabelField,
    PerturbAndMap,
    RandomisedCut,
    SwendsenWang,
    log_joint_predictive,
    log_partition,
    log_predictive_density,
    sample,
)
from coxfield.process import (
    LogGaussianCoxProcess,
    Pattern,
    poisson_process,
    sample_gaussian_field,
    thin,
    thinned_label_distribution,
)

X = np.random.default_rng(0).normal(size=(20, 2))
Y = np.arange(20) % 2
SOME = np.where(np.arange(20) < 6, Y, -1)
FIELD = LabelField.from_points(np.linspace(0, 3, 6)[:, None], 0.3 * RBF(0.5), labels=[-1] * 6)
ENDS = LabelField.from_points(np.linspace(0, 3, 8)[:, None], RBF(0.5), labels=[0, *[-1] * 6, 1])
QUICK = {"method": "annealing", "n_particles": 8, "n_temperatures": 4}
PROCESS = LogGaussianCoxProcess(RBF(1.0), mean=2.0)
CROWD = Pattern(np.linspace(0, 1, 1000)[:, None], (0, 1))


def distributions(random_state, **params):
    clf = SLGCPClassifier(0.3 * RBF(1.0), n_draws=40, random_state=random_state, **params)
    return clf.fit(X, SOME).label_distributions_


def permanental(random_state):
    clf = PermanentalClassifier(RBF(1.0), method="importance", n_samples=20, selection=None, random_state=random_state)
    return clf.fit(X, Y).predict_proba(X[:3])


def thinned_labels(random_state):
    processes = [PROCESS, LogGaussianCoxProcess(RBF(0.5))]
    how = {"n_samples": 100, "resolution": 16, "random_state": random_state}
    return thinned_label_distribution(processes, [[1.0]], (0, 4), 0.5, **how).probabilities


DRAWS = {
    "marginals": partial(distributions, selection=None, inference="marginals"),
    "marginals with selection": partial(distributions, inference="marginals", length_scales=[0.7], n_folds=2),
    "distributions by perturb-and-MAP": partial(distributions, selection=None, inference="perturb_and_map"),
    "permanental": permanental,
    "Gibbs": lambda seed: sample(Gibbs(FIELD), 20, random_state=seed).labels,
    "Swendsen-Wang": lambda seed: sample(SwendsenWang(FIELD), 20, random_state=seed).labels,
    "perturb-and-MAP": lambda seed: sample(PerturbAndMap(FIELD), 20, burn_in=0, random_state=seed).labels,
    "randomised cuts": lambda seed: sample(RandomisedCut(ENDS), 20, random_state=seed).labels,
    "annealing": lambda seed: log_partition(FIELD, random_state=seed, **QUICK).log_z,
    "subgraphs": lambda seed: log_partition(FIELD, random_state=seed, **{**QUICK, "method": "subgraphs"}).log_z,
    "joint predictive": lambda seed: log_joint_predictive(FIELD, [0, 1, *[-1] * 4], random_state=seed, **QUICK).value,
    "predictive density": lambda seed: log_predictive_density(FIELD, [1], random_state=seed, **QUICK).value,
    "Gaussian field": lambda seed: sample_gaussian_field(RBF(1.0), (0, 4), resolution=16, random_state=seed),
    "Poisson process": lambda seed: poisson_process(50.0, (0, 1), random_state=seed).points,
    "thinning": lambda seed: thin(CROWD, 0.5, random_state=seed).points,
    "Cox process": lambda seed: PROCESS.sample((0, 4), resolution=16, random_state=seed).points,
    "labels of thinned processes": thinned_labels,
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
