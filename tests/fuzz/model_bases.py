"""Real model files of several kinds, to be damaged."""

import functools
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import skops.io
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from coxfield import LGCPClassifier
from coxfield.io import model_file, schema
from coxfield.kernels.mixture_ladder import Member

FEATURES = ["a", "b", "c"]
NAMED = "one kernel and ids"


@dataclass(frozen=True)
class Base:
    """A model file, and what its model predicts."""

    name: str
    content: bytes
    classes: list
    labels: np.ndarray
    probabilities: np.ndarray
    has_checksum: bool


def queries(n_features):
    """Points among the training points, and far from all of them."""
    rng = np.random.default_rng(11)
    return np.concatenate([rng.normal(size=(12, n_features)), 50 * rng.normal(size=(4, n_features))])


def _points():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, len(FEATURES))) * [1.0, 2.0, 0.5]
    return X, (X[:, 0] + 0.4 * rng.normal(size=40) > 0).astype(int), rng.uniform(0.5, 2, size=40)


def _models():
    X, y, weights = _points()
    names = np.array(["cat", "dog"])[y]
    by_class = {"cat": RBF(1.0), "dog": 2.0 * Matern(np.array([1.0, 2.0, 3.0]), nu=1.5)}
    own_bank = [Member(transform=StandardScaler()), Member(RBF(0.5) + RBF(2.0)), Member(Matern(1.0, nu=1.5))]
    coordinates = make_pipeline(MinMaxScaler(clip=True), AdditiveChi2Sampler())
    grown = [Member(transform=each) for each in (coordinates, PolynomialFeatures(2), RBFSampler(n_components=5))]
    return {
        "default": LGCPClassifier().fit(X, y),
        "strings and weights": LGCPClassifier().fit(X, names, sample_weight=weights),
        "objects": LGCPClassifier(selection="loo_error").fit(X, names.astype(object)),
        "by class": LGCPClassifier(by_class, mean={"cat": 0.3}, selection=None).fit(X, names, sample_weight=weights),
        "single precision": LGCPClassifier().fit(X.astype(np.float32), names),
        "sparse": LGCPClassifier([Member(), Member(transform="standardised")]).fit(sparse.csr_array(X), names),
        "own bank": LGCPClassifier(own_bank).fit(X, y == 1),
        "more coordinates": LGCPClassifier(grown).fit(X, names),
        "called": LGCPClassifier(RBF(1.0) + DotProduct(), selection=None).fit(X, 2 * y),
        NAMED: LGCPClassifier(selection="loo_error").fit(X, names),
        "rows that came and went": _lively(X, names, weights),
    }


def _lively(X, names, weights):
    """A model with rows from which its covariance was not chosen, and with a class that was announced."""
    model = LGCPClassifier(selection_part=0.7, random_state=0).fit(X[:30], names[:30])
    return model.partial_fit(X[30:], names[30:], classes=["cow"], sample_weight=weights[30:]).forget([0, 7, 35])


def _in_format_2(model):
    """A file as it was written before there were checksums."""
    names = {"target": "species", "features": FEATURES, "id_column": None}
    buffer = io.BytesIO()
    skops.io.dump({"format": schema.FORMAT_2, "version": "0.1.0", **names, "model": model}, buffer)
    return buffer.getvalue()


@functools.cache
def bases():
    """All model files."""
    X = queries(len(FEATURES))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        models = _models()
        for name, model in models.items():
            ids = {"id_column": "name", "ids": [f"{row:03d}" for row in range(40)]} if name == NAMED else {}
            model_file.save(model, path, target="species", features=FEATURES, **ids)
            content = path.read_bytes()
            found.append(Base(name, content, model.classes_.tolist(), *model.predict_with_proba(X), True))
        for name in ("default", "by class", "sparse"):
            old, model = _in_format_2(models[name]), models[name]
            found.append(Base(f"{name}, format 2", old, model.classes_.tolist(), *model.predict_with_proba(X), False))
    return found
