"""Representations of points: compressed, whitened, and by a user's transformer, which is checked."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from coxfield.kernels.distances import Stretch
from coxfield.kernels.transforms import Compression, NormalScores, Transformer, Whitening, ledoit_wolf, winsorised
from misbehaving import FaultError
from mixtures import problem

RNG = np.random.default_rng(0)


def test_it_is_linear_near_the_median_and_logarithmic_far_from_it():
    X = RNG.normal(size=(1000, 1)) + 5
    fitted = Compression().fit(X)
    near = fitted.centre_ + np.array([[-1e-3], [0.0], [1e-3]])
    np.testing.assert_allclose(fitted.transform(near), (near - fitted.centre_) / fitted.scale_, atol=1e-5)
    far = fitted.transform(fitted.centre_ + np.array([[1e6], [1e9]]))
    assert (far[1] - far[0]).item() == pytest.approx(np.log(1000), rel=1e-6)


def test_any_finite_number_is_compressed():
    fitted = Compression().fit(RNG.normal(size=(50, 2)))
    assert np.isfinite(fitted.transform(np.array([[1e307, -1e307]]))).all()


def test_columns_without_quartiles():
    X = np.zeros((40, 2))
    X[:3, 0] = [1.0, 2.0, 50.0]
    Z = Compression().fit(X).transform(X)
    assert np.isfinite(Z).all()
    assert Z[2, 0] > Z[1, 0] > Z[0, 0] > Z[3, 0] == 0
    assert not Z[:, 1].any()


def test_the_precision_of_the_points_is_kept():
    X = RNG.normal(size=(50, 2)).astype(np.float32)
    assert Compression().fit(X).transform(X).dtype == np.float32


def test_scores_are_normal_quantiles_of_ranks_and_equal_values_share_theirs():
    X = RNG.normal(size=(200, 1)) ** 5
    scores, exact = NormalScores().fit(X).transform(X).ravel(), norm.ppf((np.arange(200) + 0.5) / 200)
    assert (np.argsort(scores) == np.argsort(X.ravel())).all()
    gaps = np.diff(exact, prepend=exact[0] - 1, append=exact[-1] + 1)
    assert (np.abs(np.sort(scores) - exact) <= 3 * np.maximum(gaps[:-1], gaps[1:])).all()
    tied = np.array([[0.0], [0.0], [1.0], [1.0]])
    np.testing.assert_allclose(NormalScores().fit(tied).transform(tied).ravel(), norm.ppf([0.25, 0.25, 0.75, 0.75]))


def test_values_whose_spread_overflows_stay_where_they_are():
    X = np.array([[1e308, 0.0], [-1e308, 1.0], [0.0, 2.0], [3e307, 3.0]])
    np.testing.assert_array_equal(winsorised(X), X)


@pytest.mark.parametrize("size", [5e-321, 1e-300, 1e300])
def test_ranks_are_scores_of_ranks_at_any_magnitude(size):
    """Slopes between subnormal numbers overflow."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=20), rng.normal(size=19) * size])[:, None]
    scores = NormalScores().fit(X).transform(X).ravel()
    limit = norm.ppf((len(X) - 0.5) / len(X)) + 1e-9
    assert np.abs(scores).max() <= limit
    assert (np.diff(scores[np.argsort(X.ravel(), kind="stable")]) >= 0).all()


def test_scores_of_new_values_are_linear_between_and_beyond_the_values():
    fitted = NormalScores().fit(np.arange(101.0)[:, None])
    ends = fitted.transform(np.array([[0.0], [0.5], [1.0], [100.0], [150.0], [200.0]])).ravel()
    assert ends[0] < ends[1] < ends[2]
    assert ends[5] - ends[4] == pytest.approx(50 / (50 / 1.349))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_extreme_and_constant_features_are_finite(dtype):
    X = np.column_stack([np.full(30, 7.0), np.r_[np.zeros(29), 1e30], np.linspace(-1e-30, 1e-30, 30)]).astype(dtype)
    fitted = NormalScores().fit(X)
    assert fitted.transform(X).dtype == dtype
    far = np.finfo(dtype).max * np.array([[1, -1, 1], [-1, 1, -1]], dtype)
    assert np.isfinite(fitted.transform(far)).all()


def test_many_values_have_few_knots():
    X = RNG.normal(size=(5000, 1))
    fitted = NormalScores().fit(X)
    assert 50 < len(fitted.values_) <= 100
    assert not np.isin(X, fitted.values_).any()  # no value of a row is kept
    exact = norm.ppf((np.argsort(np.argsort(X.ravel())) + 0.5) / 5000)
    assert np.abs(fitted.transform(X).ravel() - exact).max() < 0.1


def test_ordinary_values_are_where_they_were_and_far_ones_are_moved():
    X = RNG.normal(size=(300, 3))
    assert (winsorised(X) == X).all()
    X[:2, 0] = 1e9, -np.inf
    found = winsorised(X)
    assert (found[2:] == X[2:]).all()
    low, high = np.quantile(X[:, 0], [0.25, 0.75])
    spread = (high - low) / (norm.ppf(0.75) - norm.ppf(0.25))
    np.testing.assert_allclose(found[:2, 0] - np.median(X[:, 0]), [8 * spread, -8 * spread])
    rare = (np.arange(100) < 2)[:, None] * 5.0  # two values of a hundred
    assert (winsorised(rare) == rare).all()


def test_features_are_moved_a_few_at_a_time_as_if_each_were_alone():
    X = RNG.standard_cauchy(size=(200, 150)).astype(np.float32)
    found = winsorised(X)
    assert found.dtype == np.float32
    assert (found != X).any()
    np.testing.assert_array_equal(found, np.column_stack([winsorised(column[:, None]) for column in X.T]))


def test_whitening_holds_few_copies_of_the_points_and_leaves_them_as_they_are():
    X, y = RNG.normal(size=(4000, 200)).astype(np.float32), np.arange(4000) % 2
    X[0, 0] = 1e9  # it is moved
    before = X.copy()
    tracemalloc.start()
    try:
        Whitening().fit(X, y)
        copies = tracemalloc.get_traced_memory()[1] / X.nbytes
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(X, before)
    assert copies < 3  # the points, a copy in which rows have weights, and matrices


def residuals_of(Z, y):
    return Z - np.stack([Z[y == c].mean(axis=0) for c in range(y.max() + 1)])[y]


def test_the_covariance_within_classes_becomes_the_identity_up_to_shrinkage():
    data = problem(n=300)
    whitening = Whitening().fit(data.X, data.y)
    within = residuals_of(whitening.transform(data.X), data.y)
    S = within.T @ within / 300
    rho = whitening.shrinkage_
    # (1 - rho) S + rho target is whitened to the identity, so S itself is less wide, by at most 1 / (1 - rho).
    values = np.linalg.eigvalsh(S)
    assert (values <= 1 / (1 - rho) + 1e-12).all()
    assert 0 < rho < 0.1
    assert values.mean() > 0.8


def test_the_shrinkage_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    E = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6))
    ours = ledoit_wolf(E.T @ E / 40, E, np.ones(40))
    assert ours == pytest.approx(ledoit_wolf_shrinkage(E, assume_centered=True), rel=1e-10)


def test_units_of_the_features_do_not_matter():
    data = problem(n=40)
    one = Whitening().fit(data.X, data.y).transform(data.X)
    other = Whitening().fit(data.X * [1e-9, 1.0, 1e12], data.y).transform(data.X * [1e-9, 1.0, 1e12])
    np.testing.assert_allclose(
        np.linalg.norm(one[:, None] - one, axis=2), np.linalg.norm(other[:, None] - other, axis=2), rtol=1e-9, atol=1e-9
    )


def test_a_point_of_weight_two_counts_as_two_points():
    data = problem(n=20)
    weights = np.ones(20)
    weights[3] = 2
    twice = np.append(np.arange(20), 3)
    one = Whitening().fit(data.X, data.y, weights)
    other = Whitening().fit(data.X[twice], data.y[twice])
    assert one.shrinkage_ == pytest.approx(other.shrinkage_, rel=1e-10)
    distances = [np.linalg.norm(of.transform(data.X)[:, None] - of.transform(data.X), axis=2) for of in (one, other)]
    np.testing.assert_allclose(*distances, rtol=1e-10)


@pytest.mark.parametrize(("d", "weighted"), [(3, False), (3, True), (40, False)])
def test_distances_from_a_point_that_is_left_out_are_those_of_a_whitening_without_it(d, weighted):
    data = problem(n=25, d=d, weighted=weighted)
    weights = data.counts
    whitening = Whitening().fit(data.X, data.y, data.weights)
    Z = whitening.transform(data.X)
    directions, factors = whitening.left_out(Z, np.arange(25))
    added = Stretch(directions, factors).added(Z, Z)
    for j in range(25):
        # The covariance in the whitened coordinates, with everything held but the scatter of the class of j.
        E = Z - whitening.class_means_[data.y]
        full = (E * weights[:, None]).T @ E / weights.sum()
        without = np.delete(np.arange(25), j)
        means = np.stack(
            [
                np.average(Z[without][data.y[without] == c], axis=0, weights=weights[without][data.y[without] == c])
                for c in range(3)
            ]
        )
        E = (Z - means[data.y])[without]
        left = (E * weights[without][:, None]).T @ E / weights.sum()
        sigma = np.eye(Z.shape[1]) - (1 - whitening.shrinkage_) * (full - left)
        steps = Z[j] - Z
        expected = np.einsum("td,td->t", steps, np.linalg.solve(sigma, steps.T).T)
        np.testing.assert_allclose(np.square(steps).sum(axis=1) + added[j], expected, rtol=1e-10, atol=1e-10)


def test_the_only_point_of_its_class_leaves_nothing_behind():
    X, y = np.random.default_rng(0).normal(size=(9, 2)), np.array([0] * 8 + [1])
    whitening = Whitening().fit(X, y)
    _, factors = whitening.left_out(whitening.transform(X), np.arange(9))
    assert factors[8] == 0
    assert (factors[:8] > 0).all()


def test_more_features_than_points():
    data = problem(n=12, d=200)
    Z = Whitening().fit(data.X, data.y).transform(data.X)
    assert Z.shape[1] <= 12
    assert np.isfinite(Z).all()


def test_constant_columns_are_ignored():
    data = problem(n=30)
    constant = np.column_stack([data.X, np.full(30, 1e9)])
    whitening = Whitening().fit(constant, data.y)
    constant[:, 3] += 1e-3  # new points differ in the last digit, which must not be blown up
    moved = whitening.transform(constant)
    assert np.abs(moved - whitening.transform(constant - [0, 0, 0, 1e-3])).max() < 1


def test_single_points_have_no_covariance_within_classes():
    with pytest.raises(ValueError, match="every class is a single point"):
        Whitening().fit(np.eye(3), np.arange(3))


X, y = RNG.normal(size=(6, 2)), np.arange(6) % 2

FAULTS = {
    "": lambda X: 2 * X,
    "frame": lambda X: pd.DataFrame(2 * X),
    "list": lambda X: (2 * X).tolist(),
    "rows": lambda X: X[1:],
    "flat": np.ravel,
    "text": lambda X: X.astype(str),
    "object": lambda X: X.astype(object),
    "nan": lambda X: np.where(X.max() == X, np.nan, X),
    "inf": lambda X: np.where(X.max() == X, np.inf, X),
    "sparse nan": lambda X: sparse.csr_array(np.where(X.max() == X, np.nan, 0)),
}


class Doubled(TransformerMixin, BaseEstimator):
    """Twice the points, with a fault."""

    def __init__(self, fault=""):
        self.fault = fault

    def fit(self, X, y=None):  # a user may forget to return self
        if self.fault == "fit raises":
            raise FaultError("mine")

    def transform(self, X):
        if self.fault == "raises":
            raise FaultError("mine")
        found = FAULTS.get(self.fault, FAULTS[""])(X)
        if self.fault == "writes":
            X[:] = 0
        return found


def fitted(transformer):
    return Transformer.fitted_to(transformer, X, y)


@pytest.mark.parametrize("fault", ["", "frame", "list", "writes"])
def test_what_is_right_becomes_an_array(fault):
    before = X.copy()
    found = fitted(Doubled(fault)).transform(X)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, 2 * before)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(("given", "kept"), [(np.float32, np.float32), (np.int64, np.float64), (bool, np.float64)])
def test_single_precision_stays_and_other_numbers_become_double(given, kept):
    assert Transformer(FunctionOf(lambda X: X.astype(given))).transform(X).dtype == kept


class FunctionOf:
    """A fitted transformer that is a function."""

    def __init__(self, transform):
        self.transform = transform


def test_sparse_rows_stay_sparse():
    found = Transformer(FunctionOf(lambda X: sparse.csc_matrix(X))).transform(X)
    assert isinstance(found, sparse.csr_array)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("rows", r"Doubled\(fault='rows'\) returned an array of shape \(5, 2\) for 6 points: it must return a row for"),
        ("flat", r"returned an array of shape \(12,\) for 6 points"),
        ("text", r"Doubled\(fault='text'\) returned text: it must return real numbers"),
        ("object", r"returned values of type object"),
        ("nan", r"Doubled\(fault='nan'\) returned nan for the point \("),
        ("inf", r"returned inf for the point \("),
        ("sparse nan", r"returned nan for the point \("),
    ],
)
def test_what_is_wrong_is_one_sentence(fault, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        fitted(Doubled(fault)).transform(X)
    if hasattr(caught.value, "name_rows"):
        caught.value.name_rows({"points": X})
        assert f"for row {X.max(axis=1).argmax()} of the points: features must be finite" in str(caught.value)


@pytest.mark.parametrize(("fault", "how"), [("raises", "called on 6 points"), ("fit raises", "fitted to 6 points")])
def test_an_exception_of_the_transformer_passes_with_a_note(fault, how):
    with pytest.raises(FaultError, match="mine") as caught:
        fitted(Doubled(fault)).transform(X)
    assert caught.value.__notes__ == [f"(raised by Doubled(fault={fault!r}), {how})"]


def test_the_name_of_a_pipeline_is_one_line():
    pipeline = make_pipeline(StandardScaler(with_mean=False), FunctionTransformer(FAULTS["rows"])).fit(X)
    assert "\n" in repr(pipeline)
    with pytest.raises(ValueError, match=r"^Pipeline\(.*\) returned an array of shape \(5, 2\)"):
        Transformer(pipeline).transform(X)


def test_the_given_transformer_is_not_fitted():
    given = PCA(1)
    fitted(given)
    assert not hasattr(given, "components_")


def test_steps_and_corrections_are_those_of_the_transformer():
    assert fitted(PCA(1)).steps is None
    assert fitted(PCA(1)).left_out is None
    assert [name for name, _ in fitted(make_pipeline(StandardScaler(), PCA(1))).steps] == ["standardscaler", "pca"]
    assert fitted(Whitening()).left_out.__func__ is Whitening.left_out


def test_it_can_be_pickled():
    before = fitted(PCA(1))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(before)).transform(X), before.transform(X))
