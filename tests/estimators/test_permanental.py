import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, ExpSineSquared, Matern

from coxfield import LGCPClassifier, PermanentalClassifier
from coxfield.datasets import load_pima, load_synth
from coxfield.kernels.radial import recognise
from coxfield.permanents import alpha_permanent
from coxfield.permanents.ratios import ProductKernel, localise, loo_log_ratios, quadrature
from coxfield_paper.studies import permanental
from rational import excess
from strategies import RECOGNISED, UNRECOGNISED, labelled_points
from tolerances import assert_close, assert_same_decisions, rounding

# Largest (|x|^2 + |z|^2) / l^2 of these data. Rounding of distances computed by products is relative to it.
EXPONENTS = 140
NAMES = np.array(["ant", "bee", "cat", "dog"])


def ratios(X, y, queries, kernel, alpha):
    """Ratios of alpha-permanents, one permanent of a matrix at a time."""
    found = np.empty((len(queries), y.max() + 1))
    for c in range(found.shape[1]):
        own = X[y == c]
        for q, x in enumerate(queries):
            larger = kernel.matrix(np.vstack([own, x]))
            found[q, c] = alpha_permanent(larger, alpha) / alpha_permanent(larger[:-1, :-1], alpha)
    return found


@settings(max_examples=25, deadline=None)
@given(data=labelled_points(), seed=st.integers(0, 2**20), alpha=st.sampled_from([0.5, 1.0, 2.7]))
def test_probabilities_are_ratios_of_alpha_permanents(data, seed, alpha):
    X, y = data
    rng = np.random.default_rng(seed)
    kernel = [*RECOGNISED, *UNRECOGNISED][rng.integers(len(RECOGNISED) + len(UNRECOGNISED))]
    queries = rng.normal(size=(4, 3)) * X.std()
    clf = PermanentalClassifier(kernel, alpha=alpha, selection=None).fit(X, NAMES[y])
    expected = ratios(X, y, queries, ProductKernel(recognise(kernel, 3)), alpha)
    assert set(clf.methods_) == {"exact"}
    np.testing.assert_allclose(clf.class_scores(queries), np.log(expected), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(clf.predict_proba(queries), expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(queries)), clf.predict_proba(queries))
    assert set(clf.predict(queries)) <= set(NAMES)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5])
def test_janossy_probabilities_are_ratios_with_c_tilde(alpha):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(12, 2)), np.arange(12) % 2
    box = [[-0.5, 1.5], [0.0, 1.0]]
    kernel = ConstantKernel(3.0) * RBF(0.4)
    clf = PermanentalClassifier(kernel, alpha=alpha, density="janossy", window=box, selection=None).fit(X, y)
    queries = rng.uniform(-0.5, 1.5, size=(5, 2))  # some outside the window
    expected = ratios(X, y, queries, localise(ProductKernel(recognise(kernel, 2)), quadrature(np.array(box))), alpha)
    np.testing.assert_allclose(clf.predict_proba(queries), expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)
    plain = PermanentalClassifier(kernel, alpha=alpha, selection=None).fit(X, y)
    assert np.abs(plain.predict_proba(queries) - clf.predict_proba(queries)).max() > 0.01


@settings(max_examples=25, deadline=None)
@given(
    data=labelled_points(max_n=40),
    seed=st.integers(0, 2**20),
    method=st.sampled_from(["cyclic", "importance"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_probabilities_sum_to_one_and_order_does_not_matter(data, seed, method, dtype):
    X, y = data[0].astype(dtype), NAMES[data[1]]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    queries = (rng.normal(size=(5, 3)) * X.std()).astype(dtype)
    clf = PermanentalClassifier(RBF(0.7), method=method, selection=None, random_state=0, n_samples=50).fit(X, y)
    probabilities = clf.predict_proba(queries)
    assert probabilities.dtype == dtype
    assert (probabilities >= 0).all()
    assert_close(probabilities.sum(axis=1), 1, terms=len(clf.classes_))
    decided = np.searchsorted(clf.classes_, clf.predict(queries))
    assert_close(probabilities[np.arange(5), decided], probabilities.max(axis=1))
    if method == "cyclic":
        shuffled = clone(clf).fit(X[order], y[order]).predict_proba(queries)
        np.testing.assert_allclose(shuffled, probabilities, atol=1e-6 if dtype == np.float32 else 1e-8)


def test_cyclic_and_sampled_probabilities_approach_the_exact():
    rng = np.random.default_rng(3)
    X, y, queries = rng.uniform(0, 2, size=(28, 2)), np.arange(28) % 2, rng.uniform(0, 2, size=(50, 2))

    def error(**parameters):
        clf = PermanentalClassifier(RBF(0.4), selection=None, random_state=0, **parameters).fit(X, y)
        return np.abs(clf.predict_proba(queries) - exact).mean()

    exact = PermanentalClassifier(RBF(0.4), method="exact", selection=None).fit(X, y).predict_proba(queries)
    two, three, four = (error(method="cyclic", cycles=cycles) for cycles in (2, 3, 4))
    assert two > three > four
    few, many = (error(method="importance", n_samples=n) for n in (30, 10_000))
    assert few > many
    assert four < 0.01


def test_two_cycles_decide_as_lgcp_does_at_a_length_scale_shorter_by_the_root_of_two():
    """Both then compare sums of exp(-d^2 / (2 l^2)) over the classes."""
    synth = load_synth()
    lgcp = LGCPClassifier(selection="loo_error").fit(synth.X_train, synth.y_train)
    two = PermanentalClassifier(method="cyclic", cycles=2).fit(synth.X_train, synth.y_train)
    assert two.kernel_.length_scale == pytest.approx(np.sqrt(2) * lgcp.kernel_.k2.length_scale)
    scores = lgcp.class_scores(synth.X_test)
    assert_same_decisions(two.predict(synth.X_test), lgcp.predict(synth.X_test), scores, terms=250, condition=EXPONENTS)
    np.testing.assert_allclose(two.selection_path_["loo_error"].min(), lgcp.loo_error_)


def test_a_common_variance_cancels_in_the_product_form_only():
    rng = np.random.default_rng(0)
    X, y, queries = rng.uniform(size=(40, 1)), np.arange(40) % 2, rng.uniform(size=(20, 1))

    def probabilities(variance, density):
        kernel = ConstantKernel(variance) * RBF(0.2)
        return PermanentalClassifier(kernel, density=density, selection=None).fit(X, y).predict_proba(queries)

    np.testing.assert_allclose(probabilities(0.01, "product"), probabilities(100, "product"), rtol=1e-8)
    assert np.abs(probabilities(0.01, "janossy") - probabilities(100, "janossy")).max() > 0.01


def test_alpha_may_differ_between_classes_and_is_the_odds_far_away():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["a", "a", "b", "b"])
    clf = PermanentalClassifier(RBF(0.5), alpha={"a": 3.0}, selection=None).fit(X, y)
    np.testing.assert_array_equal(clf.alpha_, [3.0, 1.0])
    np.testing.assert_allclose(clf.predict_proba([[1e6]]), [[0.75, 0.25]])


@pytest.mark.parametrize("length_scale", [0.2, 1.0])
def test_the_limit_of_small_alpha_is_that_of_fractions(length_scale):
    """Near points decide: without cycles of their own, all points of a clump are one cycle."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 2, size=(10, 2)), np.arange(10) % 2
    kernel, queries = ProductKernel(recognise(RBF(length_scale), 2)), rng.uniform(0, 2, size=(3, 2))
    clf = PermanentalClassifier(RBF(length_scale), alpha=1e-300, selection=None).fit(X, y)
    larger = [[kernel.matrix(np.vstack([X[y == c], x])) for c in (0, 1)] for x in queries]
    expected = np.array([[excess(A, 1e-300) for A in row] for row in larger])
    # Sums of logarithms up to 5 x 690, and distances computed by products.
    how = {"terms": 36, "condition": 5 * 690 + 16 / length_scale**2}
    assert_close(clf.predict_proba(queries), expected / expected.sum(axis=1, keepdims=True), **how)


@pytest.mark.parametrize("options", [{}, {"method": "cyclic"}, {"method": "importance", "n_samples": 20}])
def test_in_the_limit_of_large_alpha_probabilities_are_uniform(options):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    probabilities = PermanentalClassifier(alpha=1e99, random_state=0, **options).fit(X, y).predict_proba(X)
    assert_close(probabilities, np.full((40, 2), 0.5), condition=np.log(1e99))


def test_two_cycles_take_any_alpha():
    """The ratio is alpha C-hat + the sum of C-hat(x, x_j)^2 / C-hat, and the first vanishes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    clf = PermanentalClassifier(alpha=1e-300, method="cyclic", cycles=2).fit(X, y)
    length = clf.kernel_.length_scale
    squares = np.square(X[:, None] - X).sum(axis=2) / length**2
    sums = np.stack([np.exp(-squares[:, y == c]).sum(axis=1) for c in (0, 1)], axis=1)
    how = {"terms": 20, "condition": 690 + 8 * np.square(X / length).sum(axis=1).max()}
    assert_close(clf.predict_proba(X), sums / sums.sum(axis=1, keepdims=True), **how)


def test_a_kernel_for_each_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 3)), np.arange(10) % 2
    kernels = {0: RBF(0.5), 1: 2.0 * Matern(1.0)}
    clf = PermanentalClassifier(kernels, selection=None).fit(X, y)
    expected = [ratios(X, y, X[:2] + 0.1, ProductKernel(recognise(kernel, 3)), 1.0) for kernel in kernels.values()]
    np.testing.assert_allclose(clf.class_scores(X[:2] + 0.1)[:, 0], np.log(expected[0][:, 0]), rtol=1e-8)
    np.testing.assert_allclose(clf.class_scores(X[:2] + 0.1)[:, 1], np.log(expected[1][:, 1]), rtol=1e-8)
    assert clf.kernel_ == kernels


def test_where_everything_underflows_the_nearest_neighbour_decides():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(3, size=60)
    queries = rng.normal(size=(100, 2))
    squares = ((queries[:, None] - X) ** 2).sum(axis=2)
    scores = -np.stack([squares[:, y == label].min(axis=1) for label in range(3)], axis=1)
    clf = PermanentalClassifier(RBF(1e-6), selection=None).fit(X, y)
    assert_same_decisions(clf.predict(queries), scores.argmax(axis=1), scores, terms=2)
    np.testing.assert_allclose(clf.predict_proba(queries), 1 / 3)
    np.testing.assert_allclose(clf.predict_proba(1e200 * queries), 1 / 3)


def test_large_classes_do_not_overflow():
    """At a long length scale the ratio is that of a matrix of ones, alpha + n, in units of C-hat = 2."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 2)), (np.arange(900) < 600).astype(int)
    clf = PermanentalClassifier(RBF(1e4), alpha=0.5, selection=None).fit(X, y)
    assert clf.methods_ == ["cyclic", "cyclic"]
    np.testing.assert_allclose(clf.class_scores(X[:3]), np.log([[2 * 300.5, 2 * 600.5]] * 3), rtol=1e-6)


@pytest.mark.parametrize("cycles", [2, 3, 4])
def test_leave_one_out_is_nearly_a_refit(cycles):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    kernel = ProductKernel(recognise(RBF(0.4), 2))
    found = loo_log_ratios(X, y, [kernel] * 3, np.full(3, 1.0), cycles).values
    refits = []
    for i in range(60):
        others = np.arange(60) != i
        clf = PermanentalClassifier(RBF(0.4), method="cyclic", cycles=cycles, selection=None)
        refits.append(clf.fit(X[others], y[others]).class_scores(X[i : i + 1])[0])
    difference = np.abs(found - np.array(refits))
    other_classes = y[:, None] != np.arange(3)
    np.testing.assert_allclose(difference[other_classes], 0, atol=1e-8)
    # Two cycles need no weights of their own, so that nothing is approximated.
    assert difference.max() < (1e-10 if cycles == 2 else 0.1)


def test_the_selection_takes_the_least_loss_of_what_it_tried():
    pima = load_pima()
    for selection, column in (("loo_error", "loo_error"), ("loo_log_loss", "loo_log_loss")):
        clf = PermanentalClassifier(selection=selection).fit(pima.X_train, pima.y_train)
        path = clf.selection_path_
        assert path["chosen"].sum() == 1
        assert path[column][path["chosen"]].item() <= path[column].min() + rounding(1.0, terms=200)
        assert clf.kernel_.length_scale == pytest.approx(path["length_scale"][path["chosen"]].item())
        assert len(path["chosen"]) == 30
    fixed = PermanentalClassifier(length_scales=[10.0, 30.0]).fit(pima.X_train, pima.y_train)
    np.testing.assert_allclose(fixed.selection_path_["length_scale"], [30.0, 10.0])
    assert not hasattr(
        fixed.set_params(kernel=RBF(20.0), selection=None).fit(pima.X_train, pima.y_train), "selection_path_"
    )


def test_janossy_selection_stops_at_what_the_window_resolves():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, size=(30, 1)), rng.normal(2, 1, size=(30, 1))])
    y = np.repeat([0, 1], 30)
    clf = PermanentalClassifier(density="janossy").fit(X, y)
    assert len(clf.selection_path_["chosen"]) < 30
    low, high = clf.window_[0]
    assert low < X.min() < X.max() < high
    assert 2 * clf.kernel_.k1.constant_value * (high - low) * 2 == pytest.approx(60)  # points expected, two classes
    assert np.mean(clf.predict(X) == y) > 0.7


@pytest.mark.parametrize(("data", "n_test"), [("Synth", 1000), ("Diabetes", 332), ("Banana", 4900)])
def test_errors_are_close_to_those_of_lgcp_on_the_embedded_data(data, n_test):
    lgcp, cyclic = (permanental.errors(data, method, seed=0) for method in ("LGCP", "four cycles"))
    share = lgcp["error"] / 100
    allowed = 2 * 100 * np.sqrt(share * (1 - share) / n_test)  # two standard errors of LGCP's
    assert abs(cyclic["error"] - lgcp["error"]) < allowed
    assert 0 < cyclic["log_loss"] < np.log(2)


def test_pickles_data_frames_and_names():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(40, 2)), columns=["u", "v"]), NAMES[np.arange(40) % 3]
    clf = PermanentalClassifier(method="importance", n_samples=20, random_state=0).fit(X, y)
    assert list(clf.feature_names_in_) == ["u", "v"]
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert all(1 <= effective <= 20 * (1 + 1e-12) for effective in clf.effective_samples_)
    np.testing.assert_array_equal(clone(clf).fit(X, y).predict_proba(X), clf.predict_proba(X))


TOO_SHORT = "too short for Janossy densities on the window"
BAD = [
    ({"method": "fast"}, "method must be one of 'auto'.*got 'fast'"),
    ({"density": "jannossy"}, "density must be one of 'product', 'janossy'; got 'jannossy'"),
    ({"selection": "cv"}, "selection must be one of.*got 'cv'"),
    ({"alpha": 0.0}, "alpha must be positive, got 0.0"),
    ({"alpha": {"ant": -1.0}}, "alpha must be positive"),
    ({"alpha": {"elk": 1.0}}, "alpha names the class 'elk'"),
    ({"alpha": 1e300}, r"alpha must be .* 1e\+100, got 1e\+300"),
    (
        {"alpha": 1e-300},
        "alpha=1e-300 is too small for the approximation by 4 cycles: give at least 1e-12",
    ),
    ({"alpha": 1e-13, "selection": None}, "alpha=1e-13 is too small .* or for few points method='exact' with"),
    (
        {"density": "janossy", "kernel": 1e20 * RBF(1.0)},
        r"has variance 1e\+20, too large for Janossy densities: give",
    ),
    (
        {"density": "janossy", "alpha": {"ant": 1e-12, "bee": 1e-12}},
        "too large .* a larger alpha if kernel is None",
    ),
    ({"cycles": 6}, "cycles must be 2, 3 or 4, got 6"),
    ({"method": "importance", "n_samples": 0}, "n_samples must be a whole number of at least 2, got 0"),
    ({"method": "exact"}, "class 'ant' has 25 points, too many for method='exact'.*give method='auto'"),
    ({"window": [[0, 1], [0, 1]]}, 'window is only for density="janossy"'),
    ({"density": "janossy", "window": [[0, 1]]}, r"pair \(low, high\) for each of 2 features, got shape \(1, 2\)"),
    ({"density": "janossy", "window": [[0, 1], [2, 2]]}, "window is empty: along axis 2 it begins and ends at 2"),
    ({"density": "janossy", "window": [[1, 0], [0, 1]]}, "inverted along axis 1, from 1 to 0"),
    ({"density": "janossy", "kernel": RBF(1e-3), "selection": None}, TOO_SHORT),
    ({"density": "janossy", "length_scales": [1e-4]}, TOO_SHORT),
    ({"kernel": DotProduct(), "selection": None}, "takes negative values.*try RBF"),
    ({"kernel": DotProduct()}, "there is no length scale to choose"),
    ({"kernel": RBF(-1.0)}, "length_scale of the covariance must be positive"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=[str(parameters) for parameters, _ in BAD])
def test_bad_input_gets_a_sentence(parameters, message):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), NAMES[np.arange(50) % 2]
    with pytest.raises(ValueError, match=message):
        PermanentalClassifier(**parameters).fit(X, y)


def test_janossy_needs_few_dimensions():
    with pytest.raises(ValueError, match='at most 3 dimensions, but the data have 7 features: give density="product"'):
        PermanentalClassifier(density="janossy").fit(np.random.default_rng(0).normal(size=(20, 7)), np.arange(20) % 2)


def test_one_class_and_a_missing_fit_get_a_sentence():
    with pytest.raises(ValueError, match=r"PermanentalClassifier needs .* two classes, got only one class: 'ant'"):
        PermanentalClassifier().fit([[0.0], [1.0]], ["ant", "ant"])
    with pytest.raises(NotFittedError):
        PermanentalClassifier().predict([[0.0]])


def test_points_very_far_from_a_given_window_are_alone():
    X = np.array([[1.2e114, 0.0, 1.3e113], [0.0, 0.0, 0.0], [2.2e114, 0.0, 0.0], [-4.3e114, -2.2e114, 0.0]])
    clf = PermanentalClassifier(density="janossy", window=[[-4.0, 4.0]] * 3, selection=None)
    # Each has a covariance with itself alone: the term of its own class is (1 + 1) alpha, those of others are alpha.
    found = clf.fit(X, [0, 0, 1, 0]).predict_proba(X)
    np.testing.assert_allclose(found[:, 0], [2 / 3, 2 / 3, 1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("X", "options"),
    [
        ([[-2, 0], [0, 1]], {"kernel": ExpSineSquared(1.0, 2.0)}),
        ([[9.0, 18.0], [11.0, 22.0], [12.0, 24.0]], {"kernel": ExpSineSquared(1.0, 2.0), "method": "exact"}),
        ([[0.0, 0.0], [2.7e43, 0.0], [0.0, -4.1e43]], {"kernel": ConstantKernel(1e289) * RBF(1.0), "selection": None}),
    ],
    ids=["no covariance in the plane", "the same, exact", "out of the range of numbers"],
)
def test_local_covariances_that_are_not_positive_are_refused(X, options):
    clf = PermanentalClassifier(density="janossy", **options)
    with pytest.raises(ValueError, match="too large for Janossy densities: give a smaller variance"):
        clf.fit(X, [0, 1, 0][: len(X)]).predict_proba(X)
