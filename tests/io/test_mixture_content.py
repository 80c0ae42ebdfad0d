"""A mixture in a model file: its arrays fit together, and its covariances are those of its kernels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import LGCPClassifier
from coxfield.io.mixture_content import check_mixture, check_points
from coxfield.io.requirements import Unsound
from coxfield.kernels.called import Called
from coxfield.kernels.mixture import Mixture
from coxfield.kernels.mixture_ladder import Member
from coxfield.kernels.profiles import Matern as MaternProfile
from coxfield.kernels.radial import Radial

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
WEIGHTS = RNG.uniform(0.5, 2, size=40)
BANK = [Member(), Member(transform="whitened"), Member(RBF(0.5) + RBF(2.0)), Member(2.0 * Matern([1.0, 2.0], nu=1.5))]


def learned(*arguments, weights=None, rows=X):
    """A mixture as it is after loading: nothing but its fields."""
    mixture = LGCPClassifier(*arguments).fit(rows, Y, sample_weight=weights).kernel_
    return replace(mixture)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["no weights", "weights"])
@pytest.mark.parametrize("bank", [None, *([member] for member in BANK)])
def test_learned_mixtures_pass(bank, weights):
    mixture = learned(bank, weights=weights)
    check_mixture(mixture)
    check_mixture(replace(mixture, log_densities=None))


def test_mixtures_of_single_precision_and_of_sparse_points_pass():
    check_mixture(learned(rows=X.astype(np.float32)))
    check_mixture(learned([Member(), Member(transform="standardised")], rows=sparse.csr_array(X)))


def with_ladder(mixture, **parts):
    return replace(mixture, ladders=(replace(mixture.ladders[0], **parts), *mixture.ladders[1:]))


def radial(**parts):
    kernel = RBF(1.0)
    found = Radial.of(kernel)
    return replace(found, **parts)


def more_parts(mixture):
    mixture.__dict__["_reference"] = ()
    return mixture


WRONG = [
    (lambda m: None, "the covariance is a NoneType, not a Mixture"),
    (more_parts, "the covariance does not have the parts of a Mixture"),
    (lambda m: replace(m, X=X.astype(int)), "X of the mixture is an array of type"),
    (lambda m: replace(m, X=X[:, 0]), "X of the mixture has the shape"),
    (lambda m: replace(m, counts=WEIGHTS[:-1]), "counts of the mixture has the shape"),
    (lambda m: replace(m, counts=-WEIGHTS), "counts of the mixture holds numbers that are not positive"),
    (lambda m: replace(m, ladders=()), "the mixture has no members"),
    (lambda m: replace(m, ladders=list(m.ladders)), "the mixture has no members"),
    (lambda m: replace(m, ladders=(3,)), "a part of the mixture is a int"),
    (lambda m: replace(m, log_densities=m.log_densities[0]), "does not have the densities of each representation"),
    (lambda m: replace(m, log_densities=()), "does not have the densities of each representation"),
    (lambda m: replace(m, log_densities=(m.log_densities[0][:, 1:],)), "log_densities of the mixture has the shape"),
    (lambda m: replace(m, log_densities=(m.log_densities[0] * np.nan,)), "log_densities of the mixture holds numbers"),
    (lambda m: replace(m, log_densities=(m.log_densities[0] - 90,)), "log_densities of the mixture are not those of"),
    (lambda m: replace(m, log_densities=(m.log_densities[0] + 90,)), "log_densities of the mixture are not those of"),
    (lambda m: with_ladder(m, name=3), "the name of a representation is no text"),
    (lambda m: with_ladder(m, transform="raw"), "a representation is a str, which is not one of"),
    (lambda m: with_ladder(m, factors=np.array([-1.0])), "factors of the mixture holds numbers that are not positive"),
    (lambda m: with_ladder(m, alphas=np.array([-1.0])), "alphas of the mixture holds negative numbers"),
    (lambda m: with_ladder(m, alphas=np.array([1e5])), "alphas of the mixture are larger than 16"),
    (lambda m: with_ladder(m, weights=m.ladders[0].weights * np.nan), "weights of the mixture holds numbers that"),
    (lambda m: with_ladder(m, weights=-m.ladders[0].weights), "weights of the mixture holds negative numbers"),
    (lambda m: with_ladder(m, weights=m.ladders[0].weights.T[..., None]), "weights of the mixture has the shape"),
    (lambda m: with_ladder(m, weights=0 * m.ladders[0].weights), "weights of the mixture are all 0"),
    (
        lambda m: with_ladder(
            m, factors=np.ones(400), alphas=np.ones(400), floors=np.ones(400), weights=np.ones((400, 400))
        ),
        r"the mixture has \d+ members, more than 2000",
    ),
    (lambda m: with_ladder(m, covariance=RBF(1.0)), "has a RBF where a covariance is needed"),
    (lambda m: with_ladder(m, covariance=Called(RBF(1.0))), "a covariance is not the one of its kernel"),
    (lambda m: with_ladder(m, covariance=radial(variance=2.0)), "a covariance is not the one of its kernel"),
    (lambda m: with_ladder(m, covariance=radial(variance=None)), "a covariance is not the one of its kernel"),
    (lambda m: with_ladder(m, covariance=radial(length_scale=2.0)), "a covariance is not the one of its kernel"),
    (
        lambda m: with_ladder(m, covariance=radial(profile=MaternProfile(1.5))),
        "the profile of a covariance is a Matern",
    ),
    (lambda m: with_ladder(m, covariance=radial(kernel=RBF(-1.0))), "length_scale of RBF is -1"),
    (lambda m: with_ladder(m, covariance=Called(RBF() + DotProduct())), "may take negative values"),
]


@pytest.fixture(scope="module")
def plain():
    return learned([Member()])


@pytest.mark.parametrize(("change", "clause"), WRONG, ids=[clause for _, clause in WRONG])
def test_mixtures_that_no_fit_makes_are_refused(change, clause, plain):
    with pytest.raises(ValueError, match=clause):
        check_mixture(change(replace(plain)))


def test_a_mixture_that_was_used_and_saved_is_sound(plain):
    """What it holds for its own use is no part of its state."""
    mixture = replace(plain)
    mixture.diagonal(X)
    with pytest.raises(Unsound, match="does not have the parts"):
        check_mixture(mixture)
    again = Mixture.__new__(Mixture)
    again.__dict__.update(mixture.__getstate__())
    check_mixture(again)


@pytest.mark.parametrize(
    ("points", "clause"),
    [
        (None, "it is no array"),
        (X.tolist(), "it is no array"),
        (X[:0], "it is empty"),
        (X[:, :0], "it is empty"),
        (X.astype(np.float16), "it is an array of type float16"),
        (np.where(X > 1, np.nan, X), "it holds numbers that are not finite"),
        (sparse.csr_array(np.where(X > 1, np.inf, X)), "it holds numbers that are not finite"),
        (sparse.csc_array(X), "it is a sparse matrix without rows"),
        (sparse.coo_array(X), "it is of the form coo"),
        (sparse.csr_array(X.astype(int)), "it is an array of type"),
    ],
)
def test_points_are_finite_numbers(points, clause):
    check_points(X, "it")
    check_points(sparse.csr_matrix(X), "it")
    with pytest.raises(Unsound, match=clause):
        check_points(points, "it")
