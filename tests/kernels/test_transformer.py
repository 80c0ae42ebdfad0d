"""A user's transformer: what it returns is either right, or one sentence says what is wrong."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from coxfield.kernels.transforms import Transformer, Whitening
from misbehaving import FaultError

RNG = np.random.default_rng(0)
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
