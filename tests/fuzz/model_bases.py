"""Real model files of several kinds, to be damaged."""

import functools
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from coxfield import LGCPClassifier
from coxfield.io import model_file
from coxfield.kernels.transforms import Member

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
    features: list


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
        "table": LGCPClassifier().fit(_table(X, FEATURES), names),
        "rows that came and went": _lively(X, names, weights),
    }


def _lively(X, names, weights):
    """A model with rows from which its covariance was not chosen, and with a class that was announced."""
    model = LGCPClassifier(selection_part=0.7, random_state=0).fit(X[:30], names[:30])
    return model.partial_fit(X[30:], names[30:], classes=["cow"], sample_weight=weights[30:]).forget([0, 7, 35])


def _older():
    """Files that older versions wrote, by name; see `tests/io/test_older_format.py`."""
    with zipfile.ZipFile(Path(__file__).parents[1] / "io" / "older_models.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".skops")}


@functools.cache
def bases():
    """All model files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        contents = {}
        for name, model in _models().items():
            rows = len(model.y_fit_)
            ids = {"id_column": "name", "ids": [f"{row:03d}" for row in range(rows)]} if name == NAMED else {}
            names = list(getattr(model, "feature_names_in_", FEATURES))
            model_file.save(model, path, target="species", features=names, **ids)
            contents[name] = path.read_bytes()
        return [_base(name, content, path) for name, content in (contents | _older()).items()]


def _base(name, content, path):
    path.write_bytes(content)
    saved = model_file.load(path)
    found = saved.model.predict_with_proba(queries_for(saved))
    return Base(name, content, saved.model.classes_.tolist(), *found, not name.startswith("2 "), list(saved.features))


def queries_for(saved):
    """Points for a model, or rows of a table if it was fitted to one."""
    if saved.model.columns_ is None:
        return queries(len(saved.features))
    return _table(queries(len(saved.features)), saved.features)


def _table(X, names):
    """A table whose first column has blanks, and whose second one has categories."""
    frame = pd.DataFrame(X, columns=list(names))
    frame.iloc[::5, 0] = np.nan
    return frame.assign(**{name: np.array(["x", "y", "z"])[np.arange(len(X)) % 3] for name in names[1:2]})
