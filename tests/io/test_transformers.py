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

from coxfield.io import model_check
from coxfield.io.model_check import check_transformer, checked_width
from coxfield.io.model_data import TRANSFORMERS, Reader, Unsound, Writer
from coxfield.kernels.transforms import Beside, Compression, NormalScores, Transformer, Units, Whitening

RNG = np.random.default_rng(3)
X = RNG.normal(size=(30, 3))
Y = np.arange(30) % 2


def fitted(transformer):
    return transformer.fit(X, Y)


def read(value):
    """A value as it comes back from a file."""
    write = Writer()
    data = write(value)
    return Reader(write.arrays.__getitem__)(data)


FITTED = {
    "beside": (lambda: Beside(Whitening().fit(X[:, :2], Y), 2, 1), 3),
    "without others": (lambda: Beside(make_pipeline(Compression().fit(X[:, :2])), 2, 0), 2),
    "only others": (lambda: Beside(None, 2, 1), 1),
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
    made = make()
    back = read(made)
    assert checked_width(back, X) == width
    np.testing.assert_array_equal(back.transform(X), made.transform(X))
    assert type(back) is type(made)


def test_all_types_of_the_list_are_tried():
    made = [make() for make, _ in FITTED.values()]
    made = [each.fitted if isinstance(each, Transformer) else each for each in made]
    inside = [step for each in made for _, step in getattr(each, "steps", None) or ()]
    assert {type(each) for each in (*made, *inside)} == set(TRANSFORMERS)


def test_the_features_themselves_and_sparse_points_pass():
    assert checked_width(None, X) == 3
    rows = sparse.csr_array(X)
    assert checked_width(StandardScaler(with_mean=False).fit(rows), rows) == 3


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
    (lambda: changed(fitted(PCA(2)), whiten={}), "whiten of a PCA is neither a number nor a name nor an array"),
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
    (lambda: changed(fitted(Whitening()), shrinkage_=None), "shrinkage_ of a Whitening is not a number"),
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
    (lambda: Beside(fitted(PCA(2)), 2, 1), "components_ of a PCA has the shape"),
    (lambda: Beside(None, 4, 0), "a Beside is not for 3 features"),
    (lambda: Beside(None, 1.5, 1), "a Beside is not for 3 features"),
    (lambda: Beside(None, 2, 2), "a Beside is not for 3 features"),
    (lambda: Beside(LogisticRegression(), 2, 1), "a representation is a LogisticRegression"),
    (lambda: fitted(FunctionTransformer(str)), "func of a FunctionTransformer is not a function of NumPy"),
    (lambda: fitted(FunctionTransformer(np.isfinite)), "a representation does not give numbers"),
]


@pytest.mark.parametrize(("make", "clause"), WRONG, ids=[clause for _, clause in WRONG])
def test_transformers_that_no_fit_makes_are_refused(make, clause):
    with pytest.raises(Unsound, match=clause):
        checked_width(make(), X)


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
            check_transformer(one)
        with pytest.raises(Unsound, match=clause):
            checked_width(one, X)


def test_a_representation_does_not_need_much_memory(monkeypatch):
    powers = fitted(PolynomialFeatures(4))
    monkeypatch.setattr(PolynomialFeatures, "transform", lambda *_: pytest.fail("it was run"))
    with pytest.raises(Unsound, match="does not have the parts that it was fitted with"):
        checked_width(changed(fitted(PolynomialFeatures(4)), _n_out_full=10**12), X)
    monkeypatch.setattr(model_check, "VALUES", 100)
    with pytest.raises(Unsound, match="a representation is too large"):
        checked_width(powers, X)
    with pytest.raises(Unsound, match="a representation is too large"):
        checked_width(fitted(RBFSampler(n_components=13)), X)


def test_steps_are_checked_with_what_the_step_before_makes():
    steps = make_pipeline(fitted(PolynomialFeatures(2)), fitted(StandardScaler()))
    with pytest.raises(Unsound, match=r"mean_ of a StandardScaler has the shape \(3,\), not \(10\)"):
        checked_width(steps, X)
