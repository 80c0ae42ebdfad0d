"""Kernels and transformers that misbehave: whatever a user calls, one sentence names them and the rows."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.preprocessing import FunctionTransformer

from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier
from coxfield.baselines import VariationalGPClassifier
from coxfield.field import LabelField
from coxfield.kernels import Member
from coxfield.process import LogGaussianCoxProcess, log_product_density, sample_gaussian_field
from misbehaving import FaultError, Spoiled

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(30, 2)), RNG.normal(size=(7, 2))
Y = (X[:, 0] > 0).astype(int)
FEW = np.where(np.arange(30) < 6, Y, -1)
STEEP = RBF(0.001) ** -1  # at no length scale that is tried, but at short distances, is it finite

CLASSIFIERS = {
    "None": lambda kernel: LGCPClassifier(kernel, selection=None),
    "kernel per class": lambda kernel: LGCPClassifier({0: RBF(1.0), 1: kernel}, selection=None),
    "loo_error": lambda kernel: LGCPClassifier(kernel, selection="loo_error"),
    "pseudo_likelihood": lambda kernel: LGCPClassifier(kernel, selection="pseudo_likelihood"),
    "permanental": lambda kernel: PermanentalClassifier(kernel, selection=None),
    "variational": lambda kernel: VariationalGPClassifier(kernel, n_restarts=0),
}

WEIGHTED = ("None", "kernel per class", "loo_error", "pseudo_likelihood")


def used(name, kernel):
    """Fit and predict."""
    return CLASSIFIERS[name](kernel).fit(X, Y).predict_proba(Z)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("fault", ["", "writes"])
def test_a_kernel_of_the_user_works_and_cannot_change_the_points(name, fault):
    before = X.copy(), Z.copy()
    assert np.isfinite(used(name, Spoiled(fault))).all()
    np.testing.assert_array_equal((X, Z)[0], before[0])
    np.testing.assert_array_equal(Z, before[1])


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("nan", r"^Spoiled\(\S+\) is nan for "),
        ("inf", r"^Spoiled\(\S+\) is inf for "),
        ("wide", r"^Spoiled\(\S+\) returned an array of shape \(\d+, \d+\) for \d+ "),
        ("none", r"^Spoiled\(\S+\) returned NoneType for \d+ "),
        ("complex", r"^Spoiled\(\S+\) returned complex numbers for \d+ "),
        ("text", r"^Spoiled\(\S+\) returned text for \d+ "),
    ],
)
def test_wrong_values_are_one_sentence(name, fault, sentence):
    with pytest.raises(ValueError, match=sentence):
        used(name, Spoiled(fault))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_wrong_values_name_two_rows(name):
    with pytest.raises(ValueError, match=r"(?s)is nan for .*") as caught:
        used(name, Spoiled("nan"))
    found = re.search(
        r"for (?:rows (\d+) and (\d+) of the training points"
        r"|row (\d+) of the queries and row (\d+) of the training points"
        r"|row (\d+) of the training points and row (\d+) of the queries): ",
        str(caught.value),
    )
    assert found is not None, str(caught.value)
    within, asked, known = found.groups()[:2], found.groups()[2:4], found.groups()[4:]
    for first, second, rows in ((X, X, within), (Z, X, asked), (X, Z, known)):
        if rows[0] is not None:  # the kernel is least, and so spoiled, between points that are far apart
            assert np.linalg.norm(first[int(rows[0])] - second[int(rows[1])]) > 2


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_an_exception_of_the_kernel_passes_with_a_note(name):
    with pytest.raises(FaultError, match="mine") as caught:
        used(name, Spoiled("raises"))
    assert str(caught.value) == "mine"
    (note,) = caught.value.__notes__
    assert re.fullmatch(r"\(raised by Spoiled\(\S+\), called on \d+ (and \d+ )?points\)", note)


DIAGONALS = {
    "diag nan": r"^the variance of Spoiled\(0\) is nan for row \d+ of the ",
    "diag shape": r"^Spoiled\(0\) returned a diagonal of shape ",
    "diag differs": r"^the variance of Spoiled\(0\) is 2 by its diag, but 1 by a call, for row \d+ of the ",
}
GRADIENTS = {
    "gradient nan": r"^the gradient of Spoiled\(0\) is nan for row \d+ of the training points and itself",
    "gradient shape": r"^Spoiled\(0\) returned a gradient of shape ",
    "gradient missing": r"^Spoiled\(0\) returned one ndarray with eval_gradient=True",
}
WRONG = [(name, *case) for name in ("kernel per class", "permanental", "variational") for case in DIAGONALS.items()]
WRONG += [(name, *case) for name in ("pseudo_likelihood", "variational") for case in GRADIENTS.items()]


@pytest.mark.parametrize(("name", "fault", "sentence"), WRONG)
def test_a_wrong_diagonal_or_gradient_is_one_sentence(name, fault, sentence):
    with pytest.raises(ValueError, match=sentence):
        used(name, Spoiled(fault))


WHOLE = {
    "None": lambda kernel: LGCPClassifier(kernel, selection=None).fit(X, Y).predict(X),
    "loo_error": lambda kernel: LGCPClassifier(kernel, selection="loo_error", length_scales=[1.0]).fit(X, Y),
    "pseudo_likelihood": lambda kernel: LGCPClassifier(kernel, selection="pseudo_likelihood").fit(X, Y),
    "mixture": lambda kernel: LGCPClassifier([kernel, RBF(1.0)]).fit(X, Y),
    "mixture of one": lambda kernel: LGCPClassifier(kernel, length_scales=[1.0]).fit(X, Y),
    "permanental": lambda kernel: PermanentalClassifier(kernel, selection=None).fit(X, Y),
    "map": lambda kernel: SLGCPClassifier(kernel, inference="map", length_scales=[1.0]).fit(X, FEW),
    "map unchanged": lambda kernel: SLGCPClassifier(kernel, inference="map", selection=None).fit(X, FEW),
    "marginals": lambda kernel: SLGCPClassifier(kernel, inference="marginals", selection=None).fit(X, FEW),
    "field": lambda kernel: LabelField.from_points(X, kernel, FEW),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_kernel_of_scikit_learn_that_overflows_is_one_sentence_and_no_warning(name):
    with pytest.raises(ValueError, match=rf"^{re.escape(repr(STEEP))} is inf for (row|rows) \d+ .*of the .*points: "):
        WHOLE[name](STEEP)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(
    ("kernel", "parameter"),
    [(ConstantKernel(0.0) * RBF(1.0), "k1__constant_value"), (RBF(1.0) + WhiteKernel(-1.0), "k2__noise_level")],
    ids=str,
)
def test_parameters_that_are_not_positive_are_refused_before_any_call(name, kernel, parameter):
    with pytest.raises(ValueError, match=f"^{parameter} of the covariance must be positive and finite, got "):
        WHOLE[name](kernel)


@pytest.mark.parametrize("kernel", [RBF(1.0) ** 0.5, RBF(1.0) + WhiteKernel(0.1)], ids=str)
@pytest.mark.parametrize("name", ["None", "loo_error", "pseudo_likelihood", "mixture", "permanental", "field"])
def test_unusual_kernels_that_are_right_work(name, kernel):
    WHOLE[name](kernel)


def test_large_inner_products_are_one_sentence():
    kernel = DotProduct(1.0) ** 5
    with pytest.raises(ValueError, match=r"is inf for row 0 of the training points and itself: it must be finite"):
        LGCPClassifier(kernel, selection="pseudo_likelihood").fit(1e60 * X, Y)


class Marked(Spoiled):
    """A kernel that fails at one point."""

    def __call__(self, points, others=None, eval_gradient=False):
        found = super().__call__(points, others, eval_gradient)
        (found[0] if eval_gradient else found)[(points == X[25]).all(axis=1)] = np.nan
        return found


@pytest.mark.parametrize(
    ("name", "weighted"),
    [*((name, False) for name in CLASSIFIERS), *((name, True) for name in WEIGHTED)],
)
def test_the_row_is_that_of_the_data_as_they_were_given(name, weighted):
    classifier = CLASSIFIERS[name](Marked())
    options = {"sample_weight": np.where(np.arange(30) < 10, 0.0, 1.0)} if weighted else {}
    learns = name not in ("None", "kernel per class")
    with pytest.raises(ValueError, match=r"is nan for row") as caught:
        classifier.fit(X, Y, **options).predict(X[[3, 25]])
    expected = r"for rows? 25( and \d+)? of the training points" if learns else r"for row 1 of the queries and row \d+"
    assert re.search(expected, str(caught.value)), str(caught.value)


def test_sparse_rows_are_named():
    dense = np.abs(X) * (np.abs(X) > 0.3)

    class Inner(Spoiled):
        def _plain(self, X, Y):
            return (X @ Y.T).toarray()

        def diag(self, X):
            return np.asarray(X.multiply(X).sum(axis=1)).ravel()

    classifier = LGCPClassifier(Inner("inf"), selection=None).fit(sparse.csr_array(dense), Y)
    with pytest.raises(ValueError, match=r"is inf for row \d of the queries and row \d+ of the training points: "):
        classifier.predict(sparse.csr_array(np.abs(Z)))


def test_kernels_of_simulations_are_named_with_places():
    window = [(0, 4), (0, 4)]
    for draw in (
        lambda kernel: LogGaussianCoxProcess(kernel).sample(window, resolution=8),
        lambda kernel: sample_gaussian_field(kernel, window, resolution=8),
        lambda kernel: log_product_density(X, kernel),
    ):
        with pytest.raises(ValueError, match=r"^Spoiled\(0\) is nan for the points \(0, 0\) and \(2, 1.2\): "):
            draw(Spoiled("nan"))
        with pytest.raises(ValueError, match=r"^Spoiled\(0\) returned an array of shape \(1, 6\) for 1 and 5 points"):
            draw(Spoiled("wide"))
        with pytest.raises(FaultError, match="mine"):
            draw(Spoiled("raises"))


def test_transformers_of_a_bank_are_named_with_rows():
    def spoiled(points):
        return np.where((points == X[17]).all(axis=1, keepdims=True), np.nan, points)

    def spoiled_later(points):
        return np.where((points == Z[3]).all(axis=1, keepdims=True), np.inf, points)

    bank = lambda function: [Member(RBF(1.0), FunctionTransformer(function)), RBF(1.0)]  # noqa: E731
    with pytest.raises(
        ValueError, match=r"^FunctionTransformer\(.*\) returned nan for row 17 of the training points: "
    ):
        LGCPClassifier(bank(spoiled)).fit(X, Y)
    classifier = LGCPClassifier(bank(spoiled_later)[:1]).fit(X, Y)
    with pytest.raises(ValueError, match=r"^FunctionTransformer\(.*\) returned inf for row 3 of the queries: "):
        classifier.predict(Z)
    with pytest.raises(
        ValueError, match=r"^FunctionTransformer\(.*\) returned an array of shape \(0, 2\) for 1 point: "
    ):
        LGCPClassifier(bank(lambda points: points[1:])).fit(X, Y)


def test_a_kernel_on_a_representation_is_named_with_the_coordinates_there():
    bank = [Member(STEEP, FunctionTransformer(lambda points: 100 + points)), RBF(1.0)]
    with pytest.raises(ValueError, match=r"is inf for the points \((9|10)\d.*\) and \((9|10)\d.*\): "):
        LGCPClassifier(bank).fit(X, Y)


def test_a_length_scale_without_bounds_is_free():
    class Plain(Spoiled):
        """A kernel of a user who knows nothing of bounds."""

    classifier = LGCPClassifier(Plain(), selection="loo_error").fit(X, Y)
    assert len(classifier.selection_path_["length_scale"]) == 30
