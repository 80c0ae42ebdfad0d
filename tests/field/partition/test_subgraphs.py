import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.field import LabelField, log_partition
from coxfield.field.partition.subgraphs import matchings, weigh_subgraphs

REPETITIONS = 60


def field_without_pull(seed, n, kernel, n_classes=2):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return LabelField.from_points(X, kernel, [-1] * n, mean=0.3, n_classes=n_classes)


@pytest.mark.parametrize("n", range(9))
def test_rounds_hold_every_pair_once_and_no_node_twice(n):
    rounds = matchings(n)
    pairs = [frozenset(pair) for i, j in rounds for pair in zip(i.tolist(), j.tolist(), strict=True)]
    assert len(pairs) == len(set(pairs)) == n * (n - 1) // 2
    assert all(len({*i, *j}) == 2 * len(i) for i, j in rounds)


@pytest.mark.parametrize("kernel", [RBF(0.5), 3.0 * RBF(1.0), Matern(1.0, nu=0.5)])
@pytest.mark.parametrize("n", [2, 5, 8, 12])
def test_subgraphs_agree_with_enumeration(n, kernel):
    field = field_without_pull(n, n, kernel)
    exact = log_partition(field, method="enumerate")
    estimate = log_partition(field, method="subgraphs", n_particles=256, random_state=n)
    assert 0 < estimate.standard_error < 0.1
    assert abs(estimate.log_z - exact.log_z) < 4 * estimate.standard_error


def test_reported_errors_are_the_errors_made():
    field = field_without_pull(0, 6, RBF(1.0))
    exact = log_partition(field, method="enumerate").log_z
    estimates = [log_partition(field, method="subgraphs", n_particles=128, random_state=k) for k in range(REPETITIONS)]
    z = [(estimate.log_z - exact) / estimate.standard_error for estimate in estimates]
    assert abs(np.mean(z)) < 4 / np.sqrt(REPETITIONS)
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], REPETITIONS - 1) / (REPETITIONS - 1)
    assert low < np.var(z, ddof=1) < high


def test_the_mean_weight_is_unbiased_however_few_the_levels():
    field = field_without_pull(1, 7, 2.0 * RBF(1.0))
    exact = log_partition(field, method="enumerate").log_z
    weighed = weigh_subgraphs(field, np.random.default_rng(0), 10000, 3)
    ratios = np.exp(weighed.log_start + weighed.log_weights - exact)
    assert ratios.std() > 0.1
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(10000)


def test_labels_and_subgraphs_agree_beyond_enumeration():
    field = field_without_pull(2, 30, RBF(0.3))
    one, other = (
        log_partition(field, method=method, n_particles=128, random_state=0) for method in ("annealing", "subgraphs")
    )
    error = np.hypot(one.standard_error, other.standard_error)
    assert abs(one.log_z - other.log_z) < 4 * error < 1


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (field_without_pull(0, 4, RBF(1.0), n_classes=3), "two classes that share a covariance, got 3 classes: use"),
        (field_without_pull(0, 4, [RBF(1.0), RBF(2.0)]), "got 2 classes with covariances of their own: use annealing"),
        (LabelField.from_points(np.eye(3), RBF(1.0), [0, -1, -1]), "without labelled points.*differ by up to 0.368"),
        (LabelField.from_points(np.eye(3), RBF(1.0), [-1] * 3, mean=[0, 1]), "equal means.*differ by up to 1:"),
        (field_without_pull(0, 257, RBF(1.0)), "257 nodes are too many"),
    ],
)
def test_fields_without_such_an_expansion_are_refused_with_a_sentence(field, words):
    with pytest.raises(ValueError, match=words):
        log_partition(field, method="subgraphs")
