"""MLflow's scikit-learn flavour saves and loads a model as skops, with the types that docs/serving.md names."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from coxfield import LGCPClassifier

skops = pytest.importorskip("skops.io")

OURS = ("coxfield.", "sklearn.")


@pytest.fixture(scope="module")
def model():
    X, y = load_iris(return_X_y=True)
    return LGCPClassifier().fit(X, y)


def types(model):
    return skops.get_untrusted_types(data=skops.dumps(model))


def test_all_types_are_of_coxfield_and_scikit_learn(model):
    assert types(model)
    assert all(name.startswith(OURS) for name in types(model))


def test_a_model_is_logged_and_loaded(model, tmp_path):
    flavour = pytest.importorskip("mlflow.sklearn")
    X, _ = load_iris(return_X_y=True)
    path = tmp_path / "model"
    flavour.save_model(
        model, path, serialization_format="skops", skops_trusted_types=types(model), pip_requirements=["coxfield"]
    )
    np.testing.assert_array_equal(flavour.load_model(path).predict_proba(X), model.predict_proba(X))
