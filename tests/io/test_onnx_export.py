"""Models as ONNX graphs: onnxruntime gives the probabilities of the library, and what it cannot is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, RobustScaler

from coxfield import LGCPClassifier
from coxfield.kernels import Member

onnx_export = pytest.importorskip("coxfield.io.onnx_export")
runtime = pytest.importorskip("onnxruntime")

CLOSE = 1e-5


def run(model, inputs):
    return runtime.InferenceSession(onnx_export.graph(model).SerializeToString()).run(None, inputs)


def assert_same(model, X, inputs=None):
    labels, probabilities = run(model, {"X": X} if inputs is None else inputs)
    expected = model.predict_proba(X)
    np.testing.assert_allclose(probabilities, expected, atol=CLOSE)
    clear = np.sort(expected, axis=1)[:, -1] - np.sort(expected, axis=1)[:, -2] > 2 * CLOSE
    assert np.array_equal(labels[clear], model.predict(X)[clear])


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_the_default_is_the_same_in_both_precisions(load, precision):
    X, y = load(return_X_y=True)
    X = X.astype(precision)
    assert_same(LGCPClassifier().fit(X[::2], y[::2]), X[1::2])


def blobs(n=90):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 4)) + np.eye(3, 4)[y] * 2, np.array(["a", "b", "c"])[y]


REPRESENTATIONS = [
    "raw",
    "standardised",
    "whitened",
    "compressed",
    "compressed, whitened",
    "ranked",
    "ranked, whitened",
    PCA(2),
    PCA(2, whiten=True),
    RobustScaler(),
    make_pipeline(MinMaxScaler(), PCA(3)),
]


@pytest.mark.parametrize("transform", REPRESENTATIONS, ids=str)
def test_every_representation(transform):
    X, y = blobs()
    assert_same(LGCPClassifier([Member(RBF(1.0), transform)]).fit(X, y), X + 0.1)


KERNELS = [
    RBF(0.7),
    RBF([1.0, 2.0, 0.5, 3.0]),
    2.5 * RBF(1.0),
    *(Matern(1.5, nu=nu) for nu in (0.5, 1.5, 2.5, np.inf)),
    RationalQuadratic(1.2, 0.7) * ConstantKernel(0.4),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("selection", [None, "mixture"])
def test_every_kernel(kernel, selection):
    X, y = blobs()
    assert_same(LGCPClassifier(kernel, selection=selection).fit(X, y), X + 0.1)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, (0.75, 3.0), (1.0, 3.0)], ids=str)
def test_every_power_and_floor_of_the_density(alpha):
    X, y = blobs()
    assert_same(LGCPClassifier([Member(RBF(1.0), "raw", (alpha,))]).fit(X, y), X + 0.1)


def test_kernels_and_means_per_class():
    X, y = blobs()
    kernel = {"a": RBF(1.0), "b": 3 * Matern(2.0), "c": RBF(1.0)}
    assert_same(LGCPClassifier(kernel, mean={"a": 0.3}, selection=None).fit(X, y), X + 0.1)


def test_weights_and_a_share_of_rows_for_the_choice():
    X, y = blobs()
    weights = np.random.default_rng(1).integers(1, 4, len(X))
    model = LGCPClassifier(selection_part=0.6, random_state=0).fit(X, y, sample_weight=weights)
    assert_same(model, X + 0.1)


def test_rows_that_came_and_left():
    X, y = blobs()
    model = LGCPClassifier().fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    model.forget(np.arange(7))
    assert_same(model, X + 0.1)


@pytest.mark.parametrize("far", [10.0, 1e3, 1e6])
def test_far_from_all_points(far):
    X, y = blobs()
    model = LGCPClassifier().fit(X, y)
    probabilities = run(model, {"X": X + far})[1]
    np.testing.assert_allclose(probabilities, model.predict_proba(X + far), atol=CLOSE)


def penguins(n=120):
    """Numbers, words, ordered levels and blanks."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "bill": np.where(rng.uniform(size=n) < 0.1, np.nan, y + rng.normal(size=n)),
            "mass": 4000 + 500 * y + 300 * rng.normal(size=n),
            "island": np.where(rng.uniform(size=n) < 0.1, None, np.array(["Biscoe", "Dream"])[y]),
            "tagged": np.where(rng.uniform(size=n) < 0.5, "yes", "no"),
            "size": pd.Categorical(np.array(["small", "large"])[y], ["small", "large"], ordered=True),
        }
    )
    return frame, y


def test_tables_with_categories_and_blanks():
    frame, y = penguins()
    model = LGCPClassifier().fit(frame[:80], y[:80])
    new = frame[80:].reset_index(drop=True)
    new.loc[0, "island"] = "Nowhere"
    new.loc[1, "mass"] = np.nan
    texts = {"island", "tagged", "size"}
    inputs = {
        name: np.array(new[name].astype(object).where(new[name].notna(), ""), object)[:, None]
        if name in texts
        else new[name].to_numpy()[:, None]
        for name in new
    }
    assert_same(model, new, inputs)


@pytest.mark.parametrize("n_numbers", [1, 2, 12])
def test_blank_numbers_follow_from_others(n_numbers):
    rng = np.random.default_rng(4)
    y = np.arange(90) % 3
    X = y[:, None] + rng.normal(size=(90, 1)) + 0.3 * rng.normal(size=(90, n_numbers))
    X[rng.random(X.shape) < 0.3] = np.nan
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(n_numbers)])
    model = LGCPClassifier().fit(frame[:60], y[:60])
    new = frame[60:].reset_index(drop=True)
    new.loc[0] = np.nan
    assert_same(model, new, {name: new[name].to_numpy()[:, None] for name in new})


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (LGCPClassifier(DotProduct(), selection=None), "the kernel DotProduct"),
        (LGCPClassifier(Matern(1.0, nu=0.7), selection=None), "Matern with nu of"),
        (LGCPClassifier(RBF(1.0) + RBF(2.0), selection=None), "cannot be exported"),
        (LGCPClassifier([Member(RBF(1.0), PolynomialFeatures(2))]), "the representation PolynomialFeatures"),
    ],
    ids=str,
)
def test_what_cannot_be_exported_is_refused(model, sentence):
    X, y = blobs(40)
    model.fit(X, y)
    with pytest.raises(onnx_export.ExportError, match=sentence):
        onnx_export.graph(model)


def test_dates_are_refused():
    frame, y = penguins()
    frame["day"] = pd.date_range("2024-01-01", periods=len(frame))
    with pytest.raises(onnx_export.ExportError, match="'day' is a date"):
        onnx_export.graph(LGCPClassifier().fit(frame, y))


def test_a_file_is_the_graph(tmp_path):
    X, y = blobs()
    model = LGCPClassifier(RBF(1.0), selection=None).fit(X, y)
    onnx_export.export(model, tmp_path / "model.onnx")
    labels, _ = runtime.InferenceSession(tmp_path / "model.onnx").run(None, {"X": X})
    assert labels.tolist() == model.predict(X).tolist()


def test_a_model_that_predicts_something_else_is_refused(monkeypatch):
    X, y = blobs()
    model = LGCPClassifier(RBF(1.0), selection=None).fit(X, y)
    monkeypatch.setattr(onnx_export, "_variance", lambda kernel: 2.0)
    with pytest.raises(onnx_export.ExportError, match="a part that this export does not know"):
        onnx_export.graph(model)
