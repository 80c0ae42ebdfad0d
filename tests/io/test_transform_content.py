"""Fitted transformers in a model file: their arrays fit the points, and nothing in them is out of bounds."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import NMF, PCA, FastICA, TruncatedSVD
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from coxfield.io import transform_content
from coxfield.io.requirements import Unsound
from coxfield.io.transform_content import TRANSFORMERS, check_parameters, check_sparse, check_transform
from coxfield.kernels.distances import Units
from coxfield.kernels.transforms import Compression, NormalScores, Transformer, Whitening

RNG = np.random.default_rng(3)
X = RNG.normal(size=(30, 3))
Y = np.arange(30) % 2


def fitted(transformer):
    return transformer.fit(X, Y)


FITTED = {
    "whitened": (lambda: fitted(Whitening()), 3),
    "compressed": (lambda: fitted(Compression()), 3),
    "ranked": (lambda: fitted(NormalScores()), 3),
    "units": (lambda: fitted(Units()), 3),
    "standardised": (lambda: fitted(StandardScaler()), 3),
    "only moved": (lambda: fitted(StandardScaler(with_std=False)), 3),
    "principal": (lambda: fitted(PCA(2)), 2),
    "steps": (lambda: fitted(make_pipeline(Units(), PCA(2), Whitening())), 2),
    "steps with others": (lambda: fitted(make_pipeline(MinMaxScaler(), PCA(2))), 2),
    "of the user": (lambda: Transformer(fitted(PCA(1))), 1),
    "function": (lambda: fitted(FunctionTransformer(np.arctan)), 3),
    "between 0 and 1": (lambda: fitted(MinMaxScaler(clip=True)), 3),
    "largest": (lambda: fitted(MaxAbsScaler()), 3),
    "quartiles": (lambda: fitted(RobustScaler(with_centering=False)), 3),
    "normal scores": (lambda: fitted(QuantileTransformer(n_quantiles=9, output_distribution="normal")), 3),
    "powers": (lambda: fitted(PowerTransformer()), 3),
    "powers as they are": (lambda: fitted(PowerTransformer(standardize=False)), 3),
    "unit length": (lambda: fitted(Normalizer()), 3),
    "independent": (lambda: fitted(FastICA(2, random_state=0)), 2),
    "singular": (lambda: fitted(TruncatedSVD(2)), 2),
    "random directions": (lambda: fitted(GaussianRandomProjection(2, random_state=np.random.RandomState(0))), 2),
    "random features": (lambda: fitted(RBFSampler(n_components=7)), 7),
    "chi squared": (lambda: make_pipeline(MinMaxScaler(clip=True), AdditiveChi2Sampler(sample_steps=3)).fit(X), 15),
    "more features": (lambda: fitted(PolynomialFeatures(2)), 10),
    "products": (lambda: fitted(PolynomialFeatures((2, 3), interaction_only=True, include_bias=False)), 4),
}


@pytest.mark.parametrize("name", FITTED)
def test_fitted_transformers_pass(name):
    make, width = FITTED[name]
    assert check_transform(make(), X) == width


def test_all_types_of_the_list_are_tried():
    made = [make() for make, _ in FITTED.values()]
    made = [each.fitted if isinstance(each, Transformer) else each for each in made]
    inside = [step for each in made for _, step in getattr(each, "steps", ())]
    assert {type(each) for each in (*made, *inside)} == set(TRANSFORMERS)


def test_the_features_themselves_and_sparse_points_pass():
    assert check_transform(None, X) == 3
    rows = sparse.csr_array(X)
    assert check_transform(StandardScaler(with_mean=False).fit(rows), rows) == 3


def changed(transformer, **attributes):
    vars(transformer).update(attributes)
    return transformer


def spoiled(transformer, name, value):
    array = getattr(transformer, name).copy()
    array.ravel()[0] = value
    return changed(transformer, **{name: array})


def without(transformer, name):
    del vars(transformer)[name]
    return transformer


WRONG = [
    (lambda: "raw", "a representation is a str, which is not one of AdditiveChi2Sampler, FastICA"),
    (lambda: LogisticRegression(), "a representation is a LogisticRegression, which is not one of"),
    (lambda: NMF(2), "a representation is a NMF, which is not one of"),
    (lambda: fitted(FunctionTransformer(np.arctan, kw_args={})), "kw_args of a FunctionTransformer is given"),
    (lambda: changed(fitted(make_pipeline(PCA(2))), memory="/"), "memory of a Pipeline is given"),
    (lambda: without(fitted(PCA(2)), "whiten"), "a PCA does not have its parameters"),
    (lambda: changed(fitted(PCA(2)), whiten={}), "whiten of a PCA is neither a number nor a name nor an array"),
    (lambda: changed(fitted(PCA(2)), whiten=out_of_bounds()), "whiten of a PCA is neither a number nor a name nor"),
    (lambda: changed(fitted(PowerTransformer()), _scaler=PCA()), "_scaler of a PowerTransformer is not a StandardSc"),
    (lambda: without(fitted(PowerTransformer()), "_scaler"), "a PowerTransformer has no _scaler"),
    (lambda: changed(fitted(PowerTransformer()), _scaler=StandardScaler()), "a StandardScaler has no mean_, scale_"),
    (lambda: changed(fitted(QuantileTransformer(n_quantiles=9)), references_=np.ones(8)), "references_ of a Quantile"),
    (lambda: changed(fitted(RBFSampler()), random_offset_=np.ones(8)), "random_offset_ of a RBFSampler has the shape"),
    (lambda: spoiled(fitted(MinMaxScaler()), "scale_", np.inf), "scale_ of a MinMaxScaler holds numbers"),
    (lambda: PCA(2), "a PCA has no components_, mean_, explained_variance_"),
    (lambda: without(fitted(Whitening()), "origin_"), "a Whitening has no origin_"),
    (lambda: spoiled(fitted(Whitening()), "matrix_", np.nan), "matrix_ of a Whitening holds numbers"),
    (lambda: changed(fitted(Whitening()), matrix_=np.ones((3, 4))), "class_means_ of a Whitening has the shape"),
    (lambda: changed(fitted(Whitening()), matrix_=np.ones((2, 2))), "matrix_ of a Whitening has the shape"),
    (lambda: changed(fitted(Whitening()), origin_=np.ones(2)), "origin_ of a Whitening has the shape"),
    (
        lambda: spoiled(fitted(Whitening()), "labels_", 9),
        "labels_ \\+ 1 of a Whitening holds numbers outside of 0 to 2",
    ),
    (lambda: changed(fitted(Whitening()), labels_=np.zeros(5, int)), "labels_ of a Whitening has the shape"),
    (lambda: spoiled(fitted(Whitening()), "removal_", -1), "removal_ of a Whitening holds negative numbers"),
    (lambda: changed(fitted(Whitening()), shrinkage_=None), "shrinkage_ of a Whitening is no number"),
    (
        lambda: spoiled(fitted(Compression()), "scale_", 0),
        "scale_ of a Compression holds numbers that",
    ),
    (lambda: spoiled(fitted(Compression()), "centre_", np.inf), "centre_ of a Compression holds numbers"),
    (lambda: spoiled(fitted(Units()), "units_", 0), "units_ of a Units holds numbers that are not positive"),
    (lambda: spoiled(fitted(StandardScaler()), "scale_", 0), "scale_ of a StandardScaler holds numbers that"),
    (lambda: spoiled(fitted(StandardScaler()), "mean_", np.nan), "mean_ of a StandardScaler holds numbers"),
    (lambda: changed(fitted(StandardScaler()), n_features_in_=7), "a representation cannot be computed"),
    (lambda: spoiled(fitted(PCA(2)), "components_", np.nan), "components_ of a PCA holds numbers"),
    (lambda: changed(fitted(PCA(2)), components_=np.ones((9, 3))), "explained_variance_ of a PCA has the shape"),
    (lambda: spoiled(fitted(PCA(2)), "explained_variance_", -1), "explained_variance_ of a PCA holds negative numbers"),
    (lambda: changed(fitted(make_pipeline(PCA(2))), steps=None), "a Pipeline does not have 1 to 20 steps"),
    (lambda: changed(fitted(make_pipeline(PCA(2))), steps=[("a",)]), "a Pipeline does not have 1 to 20 steps"),
    (lambda: make_pipeline(fitted(PCA(2)), fitted(Whitening())), "matrix_ of a Whitening has the shape"),
    (lambda: changed(fitted(PCA(2)), transform=np.exp), "a PCA has an attribute that hides a method"),
    (lambda: Transformer(changed(fitted(PCA(2)), transform=np.exp)), "a PCA has an attribute that hides a method"),
    (lambda: changed(Transformer(fitted(PCA(2))), transform=np.exp), "does not have the parts of a Transformer"),
    (lambda: fitted(FunctionTransformer(str)), "func of a FunctionTransformer is not a function of NumPy"),
    (lambda: fitted(FunctionTransformer(np.isfinite)), "a representation does not give numbers"),
]


@pytest.mark.parametrize(("make", "clause"), WRONG, ids=[clause for _, clause in WRONG])
def test_transformers_that_no_fit_makes_are_refused(make, clause):
    with pytest.raises(Unsound, match=clause):
        check_transform(make(), X)


LARGE = [
    (AdditiveChi2Sampler(sample_steps=10**9, sample_interval=0.1), "sample_steps of a AdditiveChi2Sampler is 10000"),
    (PolynomialFeatures(10**9), "degree of a PolynomialFeatures is 1000000000, and 16 is the most"),
    (PolynomialFeatures((0, 10**9)), "degree of a PolynomialFeatures is .0, 1000000000., and 16 is the most"),
    (RBFSampler(n_components=10**9), "n_components of a RBFSampler is 1000000000, and 100000 is the most"),
    (QuantileTransformer(n_quantiles=10**9), "n_quantiles of a QuantileTransformer is 1000000000, and 100000"),
]


@pytest.mark.parametrize(("transformer", "clause"), LARGE, ids=[clause for _, clause in LARGE])
def test_parameters_that_take_memory_or_time_have_limits_fitted_or_not(transformer, clause, monkeypatch):
    monkeypatch.setattr(type(transformer), "transform", lambda *_: pytest.fail("it was run"))
    for one in (transformer, make_pipeline(PCA(2), transformer)):
        with pytest.raises(Unsound, match=clause):
            check_parameters(one)
        with pytest.raises(Unsound, match=clause):
            check_transform(one, X)


def test_a_representation_does_not_need_much_memory(monkeypatch):
    powers = fitted(PolynomialFeatures(4))
    monkeypatch.setattr(PolynomialFeatures, "transform", lambda *_: pytest.fail("it was run"))
    with pytest.raises(Unsound, match="does not have the parts that it was fitted with"):
        check_transform(changed(fitted(PolynomialFeatures(4)), _n_out_full=10**12), X)
    monkeypatch.setattr(transform_content, "VALUES", 100)
    with pytest.raises(Unsound, match="a representation is too large"):
        check_transform(powers, X)
    with pytest.raises(Unsound, match="a representation is too large"):
        check_transform(fitted(RBFSampler(n_components=13)), X)


def test_steps_are_checked_with_what_the_step_before_makes():
    steps = make_pipeline(fitted(PolynomialFeatures(2)), fitted(StandardScaler()))
    with pytest.raises(Unsound, match=r"mean_ of a StandardScaler has the shape \(3,\), not \(10\)"):
        check_transform(steps, X)


def out_of_bounds():
    matrix = sparse.csr_array(np.eye(3))
    matrix.indices[0] = 10**6
    return matrix


def test_sparse_matrices_refer_to_what_they_have():
    check_sparse(sparse.csr_array(np.eye(3)), "it")
    check_sparse(sparse.csc_array(np.eye(3)), "it")
    with pytest.raises(Unsound, match="it has parts that do not fit together"):
        check_sparse(out_of_bounds(), "it")
    with pytest.raises(Unsound, match="it is of the form coo"):
        check_sparse(sparse.coo_array(np.eye(3)), "it")


def in_parts(**parts):
    """A sparse array whose parts were set one by one."""
    matrix = sparse.csr_array.__new__(sparse.csr_array)
    vars(matrix).update({**vars(sparse.csr_array(np.eye(3))), **parts})
    return matrix


@pytest.mark.parametrize(
    ("parts", "clause"),
    [
        ({"data": None}, "it has parts that are no arrays"),
        ({"data": np.ones((3, 1))}, "it has parts that are no arrays"),
        ({"data": np.ones(2)}, "it has parts that do not fit together"),
        ({"indices": np.zeros(3)}, "it has parts that are no arrays"),
        ({"indices": np.array([0, 1, 7])}, "it has parts that do not fit together"),
        ({"indices": np.array([0, 1, -1])}, "it has parts that do not fit together"),
        ({"indptr": np.array([0, 9, 2, 3])}, "it has parts that do not fit together"),
        ({"indptr": np.array([0, 3])}, "it has parts that do not fit together"),
        ({"_shape": (3, 2)}, "it has parts that do not fit together"),
        ({"_shape": (3, 3.5)}, "it has parts that do not fit together"),
        ({"_shape": None}, "it has parts that do not fit together"),
        ({"tocsr": np.exp}, "a csr_array has an attribute that hides a method"),
    ],
)
def test_sparse_arrays_that_were_set_in_parts_fit_together(parts, clause):
    check_sparse(in_parts(), "it")
    with pytest.raises(Unsound, match=clause):
        check_sparse(in_parts(**parts), "it")
