"""Class sums of a mixture in one pass."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.engine.class_sums import log_sums
from coxfield.engine.weights import Segments, Shares
from coxfield.kernels.mixture_ladder import Member, inverse
from mixtures import by_loops, example, ladder, problem
from tolerances import assert_close

DATA = problem()
MIXTURE = example(DATA)
ORDER = np.argsort(DATA.y, kind="stable")


def total(rows, columns, weights):
    sums = [log_sums(path, np.full(len(rows), -1)) for path in rows.paths(columns, weights)]
    return rows.total(sums).values[0, 0]


@pytest.mark.parametrize("soft", [False, True])
def test_densities_of_queries_come_from_the_same_pass(soft):
    columns = MIXTURE.bind_reference()[ORDER]
    rows = columns.at(DATA.X[:4] + 0.02)
    one_hot = np.eye(3)[DATA.y[ORDER]]
    weights = Shares(one_hot) if soft else Segments(np.array([0, 8, 16]), np.ones(24))
    expected = by_loops(MIXTURE, DATA.X[:4] + 0.02, DATA.X[ORDER]) @ one_hot
    np.testing.assert_allclose(total(rows, columns, weights), expected, rtol=1e-9)
    assert "log_densities" not in rows.__dict__


def test_without_all_reference_points_there_is_a_pass_of_its_own():
    columns = MIXTURE.bind_reference()[ORDER[:16]]
    rows = columns.at(DATA.X[:4])
    weights = Segments(np.array([0, 5, 8]), np.linspace(1, 2, 16))
    expected = by_loops(MIXTURE, DATA.X[:4], DATA.X[ORDER[:16]]) * np.linspace(1, 2, 16)
    expected = np.add.reduceat(expected, [0, 5, 8], axis=1)
    np.testing.assert_allclose(total(rows, columns, weights), expected, rtol=1e-9)


def test_what_a_member_divides_by():
    part, log_q = ladder(alphas=(0.0, 0.5, 0.75), floors=(0.0, 0.0, 3.0)), np.array([0.0, 2.0, -np.inf])
    assert part.log_divisor(0, log_q).tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(inverse(part.log_divisor(1, log_q[:2])), [1.0, np.exp(-1)])
    np.testing.assert_allclose(inverse(part.log_divisor(2, log_q)), (np.exp(log_q) + 3) ** -0.75)
    with np.errstate(over="raise"):
        assert np.isfinite(inverse(np.array([-1e6]))).all()


def test_scores_of_members_with_a_variance_are_sums_of_the_covariance():
    rng = np.random.default_rng(5)
    y = np.arange(30) % 2
    X, queries = rng.normal(size=(30, 2)) + y[:, None], rng.normal(size=(7, 2))
    model = LGCPClassifier([Member(4.0 * RBF(1.0), alphas=(0.5,)), Member(0.3 * RBF(0.5), alphas=(0.75,))]).fit(X, y)
    values = model.kernel_(queries, X)
    sums = np.stack([values[:, y == c].sum(axis=1) for c in (0, 1)], axis=1)
    # The variances differ from the given ones by the weights; both sides have them.
    assert_close(model.class_scores(queries) - model.mean_, sums, terms=30, scale=np.abs(sums).max(), condition=10)
