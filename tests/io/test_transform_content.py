"""Fitted transformers in a model file: their arrays fit the points, and nothing in them is out of bounds."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PolynomialFeatures, StandardScaler

from coxfield.io import transform_content
from coxfield.io.requirements import Unsound
from coxfield.io.transform_content import check_inside, check_sparse, check_transform
from coxfield.kernels.compression import Compression
from coxfield.kernels.transformer import Transformer
from coxfield.kernels.units import Units
from coxfield.kernels.whitening import Whitening

RNG = np.random.default_rng(3)
X = RNG.normal(size=(30, 3))
Y = np.arange(30) % 2


def fitted(transformer):
    return transformer.fit(X, Y)


TRANSFORMERS = {
    "whitened": (lambda: fitted(Whitening()), 3),
    "compressed": (lambda: fitted(Compression()), 3),
    "units": (lambda: fitted(Units()), 3),
    "standardised": (lambda: fitted(StandardScaler()), 3),
    "only moved": (lambda: fitted(StandardScaler(with_std=False)), 3),
    "principal": (lambda: fitted(PCA(2)), 2),
    "steps": (lambda: fitted(make_pipeline(Units(), PCA(2), Whitening())), 2),
    "steps with others": (lambda: fitted(make_pipeline(MinMaxScaler(), PCA(2))), 2),
    "of the user": (lambda: Transformer(fitted(PCA(1))), 1),
    "function": (lambda: fitted(FunctionTransformer(np.arctan)), 3),
    "more features": (lambda: fitted(PolynomialFeatures(2)), 10),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_fitted_transformers_pass(name):
    make, width = TRANSFORMERS[name]
    assert check_transform(make(), X) == width


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
    (lambda: "raw", "a representation is a str, not a transformer"),
    (lambda: LogisticRegression(), "a representation cannot be computed"),
    (lambda: PCA(2), "a PCA has no components_, mean_, explained_variance_"),
    (lambda: without(fitted(Whitening()), "origin_"), "a Whitening has no origin_"),
    (lambda: spoiled(fitted(Whitening()), "matrix_", np.nan), "matrix_ of a Whitening holds numbers"),
    (lambda: changed(fitted(Whitening()), matrix_=np.ones((3, 4))), "has more directions than there are features"),
    (lambda: changed(fitted(Whitening()), matrix_=np.ones((2, 2))), "matrix_ of a Whitening has the shape"),
    (lambda: changed(fitted(Whitening()), origin_=np.ones(2)), "origin_ of a Whitening has the shape"),
    (lambda: spoiled(fitted(Whitening()), "labels_", 9), "labels_ of a Whitening holds numbers outside of 0 to 1"),
    (lambda: changed(fitted(Whitening()), labels_=np.zeros(5, int)), "labels_ of a Whitening has the shape"),
    (lambda: spoiled(fitted(Whitening()), "removal_", -1), "removal_ of a Whitening holds negative numbers"),
    (lambda: changed(fitted(Whitening()), shrinkage_=None), "shrinkage_ of a Whitening is no number"),
    (
        lambda: spoiled(fitted(Compression()), "scale_", 0),
        "scale_ of a Compression holds numbers that",
    ),
    (lambda: spoiled(fitted(Compression()), "centre_", np.inf), "centre_ of a Compression holds numbers"),
    (lambda: spoiled(fitted(Units()), "units_", 0), "units_ of Units holds numbers that are not positive"),
    (lambda: spoiled(fitted(StandardScaler()), "scale_", 0), "scale_ of a StandardScaler holds a 0"),
    (lambda: spoiled(fitted(StandardScaler()), "mean_", np.nan), "mean_ of a StandardScaler holds numbers"),
    (lambda: changed(fitted(StandardScaler()), n_features_in_=7), "a representation cannot be computed"),
    (lambda: spoiled(fitted(PCA(2)), "components_", np.nan), "components_ of a PCA holds numbers"),
    (lambda: changed(fitted(PCA(2)), components_=np.ones((9, 3))), "has more directions than there are features"),
    (lambda: spoiled(fitted(PCA(2)), "explained_variance_", -1), "explained_variance_ of a PCA holds negative numbers"),
    (lambda: changed(fitted(make_pipeline(PCA(2))), steps=None), "a Pipeline has no steps"),
    (lambda: changed(fitted(make_pipeline(PCA(2))), steps=[("a",)]), "a Pipeline has no steps"),
    (lambda: make_pipeline(fitted(PCA(2)), fitted(Whitening())), "matrix_ of a Whitening has the shape"),
    (lambda: changed(fitted(PCA(2)), transform=np.exp), "a PCA has an attribute that hides a method"),
    (lambda: Transformer(changed(fitted(PCA(2)), transform=np.exp)), "a PCA has an attribute that hides a method"),
    (lambda: changed(Transformer(fitted(PCA(2))), transform=np.exp), "does not have the parts of a Transformer"),
    (lambda: fitted(FunctionTransformer(str)), "a representation does not give a row for each point"),
    (lambda: fitted(FunctionTransformer(np.isfinite)), "a representation does not give numbers"),
]


@pytest.mark.parametrize(("make", "clause"), WRONG, ids=[clause for _, clause in WRONG])
def test_transformers_that_no_fit_makes_are_refused(make, clause):
    with pytest.raises(Unsound, match=clause):
        check_transform(make(), X)


def test_a_representation_does_not_need_much_memory(monkeypatch):
    monkeypatch.setattr(transform_content, "VALUES", 100)
    with pytest.raises(Unsound, match="a representation is too large"):
        check_transform(fitted(PolynomialFeatures(4)), X)


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


def test_sparse_matrices_are_found_wherever_they_are():
    hidden = changed(fitted(make_pipeline(PCA(2))), verbose={"a": [(1, out_of_bounds())]})
    with pytest.raises(Unsound, match="a sparse matrix in a representation has parts that do not fit together"):
        check_inside(hidden)
