"""C-hat and C-tilde against what defines them; ratios against fractions, and leave-one-out against refits."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from covariance_doubles import RowCovariance
from coxfield.geometry.window import Window
from coxfield.kernels.radial import recognise
from coxfield.permanents import alpha_permanent
from coxfield.permanents.cyclic import TOLERANCE
from coxfield.permanents.ratios import (
    NODES,
    ProductKernel,
    ScaledRows,
    Units,
    check_window,
    excess_sums,
    fit_class,
    local_kernel,
    localise,
    log_ratios,
    loo_log_ratios,
    loo_path,
    quadrature,
)
from rational import excess
from tolerances import assert_close

OF_CLASS, NEW = np.random.default_rng(0).uniform(0, 2, size=(5, 2)), np.array([[0.3, 0.9]])


def process(variance, alpha, method, length_scale=0.4):
    kernel = ProductKernel(recognise(variance * RBF(length_scale), 2))
    return fit_class(kernel, OF_CLASS, alpha, method, cycles=4, n_samples=50, rng=np.random.default_rng(0))


@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e300])
@pytest.mark.parametrize("length_scale", [0.1, 0.4])
def test_exact_ratios_of_extreme_alpha_are_those_of_fractions(alpha, length_scale):
    one = process(1.0, alpha, "exact", length_scale)
    A = one.kernel.matrix(np.vstack([OF_CLASS, NEW]))
    expected = np.logaddexp(np.log(alpha) + np.log(2), np.log(excess(A, alpha)))
    # Logarithms of up to five powers of alpha, and distances computed by products, relative to the length scale.
    scale = 1 + 5 * abs(np.log(alpha)) + 16 / length_scale**2
    assert_close(log_ratios([one], NEW).values, [[expected]], terms=36, scale=scale)


@pytest.mark.parametrize("method", ["exact", "cyclic", "importance"])
@pytest.mark.parametrize("factor", [1e-280, 1e280])
def test_a_factor_of_all_variances_comes_out_of_the_ratio(method, factor):
    plain, scaled = (log_ratios([process(variance, 1.5, method)], NEW).values for variance in (1.0, factor))
    np.testing.assert_allclose(scaled - np.log(factor), plain, rtol=0, atol=1e-7)


def test_units_make_covariances_correlations():
    deviations = np.array([1e-120, 3.0, 1e120])
    A = np.outer(deviations, deviations) * (0.5 + 0.5 * np.eye(3))
    units = Units.of(A)
    assert_close(units.matrix(A), 0.5 + 0.5 * np.eye(3))
    assert_close(units.relative * np.exp(units.log_largest), deviations, condition=1 + units.log_largest)
    rows = units.rows(ScaledRows.of(np.array([2e-7 * deviations]), leave_out=False))
    assert_close(rows.values, np.ones((1, 3)))
    assert_close(np.exp(rows.log_scale), [2e-7], condition=1 + 2 * units.log_largest)


def test_an_excess_may_exceed_the_prior_by_more_than_floating_point_can_say():
    sums = excess_sums(np.array([[-1000.0, -1000.0, 1000.0]]), np.ones((1, 3)), np.zeros((1, 3)))
    assert_close(sums.values, [[1000.0, 1000.0, 0.0]])


def test_the_excess_may_be_negative_as_long_as_the_ratio_is_positive():
    prior = np.log([[2.0, 2.0]])
    sums = excess_sums(prior, np.array([[1.0, -1.0]]), np.log([[3.0, 0.5]]))
    np.testing.assert_allclose(np.exp(prior + sums.values), [[5.0, 1.5]])
    assert_close(sums.logs, [[np.log(3.0), -np.inf]])


def test_a_ratio_that_is_not_positive_gets_a_sentence():
    with pytest.raises(ValueError, match="no permanental process for this alpha and covariance"):
        excess_sums(np.zeros((1, 1)), -np.ones((1, 1)), np.zeros((1, 1)))


RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(9, 2)), np.arange(9) % 2
ALPHA = np.array([0.7, 1.6])


def kernels(length_scale=0.8):
    return [ProductKernel(recognise(kernel, 2)) for kernel in (RBF(length_scale), 0.5 * RBF(0.6 * length_scale))]


def refitted(left_out, cycles):
    """Log ratios of one point from processes that were fitted without it."""
    kept = np.arange(9) != left_out
    parts = [(kernel, X[kept & (c == Y)], ALPHA[c]) for c, kernel in enumerate(kernels())]
    processes = [fit_class(*part, "cyclic", cycles=cycles, n_samples=0, rng=None) for part in parts]
    return log_ratios(processes, X[left_out : left_out + 1]).values[0]


def test_two_cycles_are_refits():
    found = loo_log_ratios(X, Y, kernels(), ALPHA, 2).values
    # Ratios are sums over at most five points. Distances come from products of coordinates.
    condition = 4 * np.square(X / 0.48).sum(axis=1).max()
    for i in range(9):
        assert_close(np.exp(found[i]), np.exp(refitted(i, 2)), terms=5, condition=condition)


@pytest.mark.parametrize("cycles", [3, 4])
def test_to_other_classes_a_point_is_new(cycles):
    found = loo_log_ratios(X, Y, kernels(), ALPHA, cycles).values
    for i in range(9):
        # The same equations, solved to within TOLERANCE from the same start.
        np.testing.assert_allclose(found[i, 1 - Y[i]], refitted(i, cycles)[1 - Y[i]], rtol=0, atol=10 * TOLERANCE)
        assert abs(found[i, Y[i]] - refitted(i, cycles)[Y[i]]) < 0.1


def test_the_path_has_the_losses_of_each_length_scale_and_ends_where_there_is_none():
    tried = []

    def at(factor):
        tried.append(factor)
        return kernels(factor) if factor > 0.3 else None

    path = loo_path(X, Y, ALPHA, 4, np.array([1.6, 0.8, 0.2, 0.1]), at, ("loo_error", "loo_log_loss"))
    assert tried == [1.6, 0.8, 0.2]
    assert path["factor"].tolist() == [1.6, 0.8]
    assert path["variance"].tolist() == [1.0, 1.0]
    for k, factor in enumerate(path["factor"]):
        scores = loo_log_ratios(X, Y, kernels(factor), ALPHA, 4)
        assert path["loo_error"][k] == np.mean(scores.decisions != Y)
        naive = -np.log([p[y] / p.sum() for p, y in zip(np.exp(scores.values), Y, strict=True)]).mean()
        assert_close(path["loo_log_loss"][k], naive, terms=9, scale=1.0, condition=10)


def test_classes_are_told_of_by_their_size():
    told = []
    loo_log_ratios(X, Y, kernels(), ALPHA, 3, told.append)
    assert told == pytest.approx([5 / 9, 4 / 9])


OBSERVED = np.array([[0.0, 5.0], [2.0, 1.0], [1.0, 3.0]])


def test_the_window_of_the_data_is_a_gap_wider():
    assert_close(check_window(None, OBSERVED), np.array([[-1.0, 3.0], [-1.0, 7.0]]))


def test_points_in_a_row_lie_a_gap_inside_of_their_window():
    box = check_window(None, np.linspace(0, 1, 11)[:, None])
    assert_close(box, np.array([[-0.1, 1.1]]))


def test_a_given_window_is_taken_as_it_is():
    np.testing.assert_array_equal(check_window(((0, 1), (2, 3)), OBSERVED), [[0, 1], [2, 3]])
    assert check_window([[0, 1], [2, 3]], OBSERVED).dtype == float


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ([[0, 1]], r"pair \(low, high\) for each of 2 features, got shape \(1, 2\)"),
        ((0, 1), r"pair \(low, high\) for each of 2 features, got shape \(2,\)"),
        ([[0, 1], [2, 2]], "empty: along axis 2"),
        ([[1, 0], [0, 1]], "inverted along axis 1"),
        ([[0, 1], [0, np.inf]], "must be finite"),
    ],
)
def test_other_windows_are_refused(window, message):
    with pytest.raises(ValueError, match=message):
        check_window(window, OBSERVED)


def test_too_many_features_are_refused():
    with pytest.raises(ValueError, match='at most 3 dimensions, but the data have 4 features: give density="product"'):
        check_window(None, np.zeros((5, 4)))


def test_equal_points_have_no_window_of_their_own():
    with pytest.raises(ValueError, match="the window is empty"):
        check_window(None, np.ones((5, 1)))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_nodes_integrate_polynomials(d):
    box = np.stack([np.arange(d) - 0.5, np.arange(d) + 1.0], axis=1)
    rule = quadrature(box)
    values = np.prod(rule.nodes**3, axis=1)
    # NumPy computes the nodes of order n to within about n^2 units, and each axis has a power of three of them.
    assert_close(
        rule.weights @ values,
        np.prod((box[:, 1] ** 4 - box[:, 0] ** 4) / 4),
        terms=len(values),
        scale=rule.weights @ np.abs(values),
        condition=3 * d * NODES[d] ** 2,
    )
    assert_close(np.square(rule.roots), rule.weights)


def test_a_share_of_the_nodes_per_axis():
    assert len(quadrature(Window([(0, 1), (0, 1)])).nodes) == 32**2
    assert len(quadrature([(0, 1), (0, 1)], 0.75).nodes) == 24**2


@pytest.mark.parametrize("size", [1e-290, 1e287])
def test_points_whose_volume_is_no_number_are_refused(size):
    with pytest.raises(ValueError, match=r"feature 0 has values from .* so that the volume of the window is beyond"):
        check_window(None, size * np.array([[1.0], [2.0]]))


BOX = np.array([[-1.0, 2.0]])


def doubled(kernel, d=1):
    return ProductKernel(recognise(kernel, d))


def test_the_product_density_is_a_moment_of_squared_gaussian_processes():
    """With intensity f_1^2 + ... + f_k^2, E of the product of intensities is Per of alpha = k/2 and C-hat = 2 C."""
    X, rng = np.array([[0.0], [0.4], [1.5]]), np.random.default_rng(0)
    for k in (1, 2, 3):
        f = rng.multivariate_normal(np.zeros(3), RBF(1.0)(X), size=(200_000, k))
        products = np.square(f).sum(axis=1).prod(axis=1)
        expected = alpha_permanent(doubled(RBF(1.0)).matrix(X), k / 2)
        assert abs(products.mean() - expected) <= 4 * products.std() / np.sqrt(len(products))


@pytest.mark.parametrize("kernel", [3.0 * RBF(0.5), 0.2 * RBF(2.0), RBF(0.4) + 0.5 * RBF(1.0)])
def test_c_tilde_is_the_sum_over_eigenfunctions(kernel):
    """The paper's definition, with eigenfunctions from a rule of other nodes (Nystrom's method)."""
    X = np.array([[-0.9], [0.0], [0.3], [1.7]])
    rule = quadrature(BOX, share=0.6)
    whole = doubled(kernel)
    values, vectors = np.linalg.eigh(whole.matrix(rule.nodes) * np.outer(rule.roots, rule.roots))
    kept = values > 1e-10 * values.max()
    values, vectors = values[kept], vectors[:, kept]
    functions = whole.values(X, rule.nodes) @ (rule.roots[:, None] * vectors) / values
    local = localise(whole, quadrature(BOX))
    np.testing.assert_allclose(local.matrix(X), (functions * (values / (1 + values))) @ functions.T, atol=1e-4)
    np.testing.assert_allclose(local.log_void, np.log1p(values).sum(), rtol=1e-6)
    np.testing.assert_allclose(local.diagonal(X), np.diagonal(local.matrix(X)))
    rows = local.rows(X[:2], X)
    np.testing.assert_allclose(rows.values * np.exp(rows.log_scale)[:, None], local.matrix(X)[:2], atol=1e-12)


def test_janossy_densities_sum_to_one():
    """Sum over n of the integrals of exp(-alpha D) Per_alpha(C-tilde) / n! is exp(-alpha D) det(1 - C-tilde)^-alpha."""
    local = localise(doubled(2.0 * Matern(0.7, nu=2.5)), quadrature(BOX))
    rule = local.quadrature
    removed = np.eye(len(rule.nodes)) - local.matrix(rule.nodes) * np.outer(rule.roots, rule.roots)
    assert -np.linalg.slogdet(removed)[1] == pytest.approx(local.log_void, rel=1e-9)


def test_the_probability_of_an_empty_window_by_simulation():
    local = localise(doubled(RBF(0.8)), quadrature(BOX))
    rule, rng = quadrature(BOX, share=0.1), np.random.default_rng(0)
    f = rng.multivariate_normal(np.zeros(len(rule.nodes)), RBF(0.8)(rule.nodes), size=20_000, method="eigh")
    empty = np.exp(-np.square(f) @ np.square(rule.roots))  # intensity f^2 is alpha = 1/2
    assert abs(empty.mean() - np.exp(-local.log_void / 2)) <= 4 * empty.std() / np.sqrt(len(empty))


def test_far_from_the_window_c_tilde_is_c_hat():
    local, X = localise(doubled(RBF(0.3)), quadrature(BOX)), np.array([[9.0], [9.2]])
    np.testing.assert_allclose(local.matrix(X), doubled(RBF(0.3)).matrix(X), rtol=1e-12)


def test_a_sparse_process_is_hardly_thinned():
    whole, X = doubled(1e-9 * RBF([0.5, 0.7]), 2), np.random.default_rng(0).uniform(-1, 1, size=(5, 2))
    np.testing.assert_allclose(
        localise(whole, quadrature(np.array([[-1, 1], [-1, 1]]))).matrix(X), whole.matrix(X), rtol=1e-6
    )


def test_covariances_too_short_for_the_nodes_are_noticed():
    X = np.random.default_rng(0).uniform(-1, 1, size=(30, 2))
    box = check_window([[-1, 1], [-1, 1]], X)
    assert local_kernel(doubled(50.0 * RBF(0.3), 2), box, X) is not None
    for length_scale in (0.05, 0.01, 1e-6):
        assert local_kernel(doubled(50.0 * RBF(length_scale), 2), box, X) is None


def test_kernels_that_tell_a_point_from_its_copies_keep_their_diagonal():
    kernel = doubled(RBF(1.0) + WhiteKernel(0.5))
    X = np.zeros((2, 1))
    np.testing.assert_allclose(kernel.matrix(X), [[3, 2], [2, 3]])
    np.testing.assert_allclose(kernel.rows(X, X, leave_out=True).values, [[0, 1], [1, 0]])


@pytest.mark.parametrize(("variance", "shown"), [(1e280, r"1e\+280"), (1e14, r"1e\+14")])
def test_variances_too_large_for_a_window_get_a_sentence(variance, shown):
    """C-tilde is a difference of numbers of the size of C-hat, and must keep some digits."""
    with pytest.raises(ValueError, match=f"has variance {shown}, too large for Janossy densities: give a smaller"):
        localise(doubled(variance * RBF(0.5)), quadrature(BOX)).diagonal(np.array([[0.0]]))


@pytest.mark.parametrize(("variance", "shown"), [(0.0, "0"), (-1.0, "-1"), (1.5e308, r"1.5e\+308")])
def test_variances_that_are_not_positive_or_too_large_get_a_sentence(variance, shown):
    kernel = ProductKernel(RowCovariance(variance * np.eye(3)))
    with pytest.raises(ValueError, match=rf"has variance {shown} at a point: it must be positive and below 8e\+307"):
        kernel.diagonal(np.arange(3)[:, None])
