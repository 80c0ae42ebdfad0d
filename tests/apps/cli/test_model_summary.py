"""The lines about a model."""

import numpy as np

from coxfield import LGCPClassifier
from coxfield.apps.cli.live_model import summary

X = np.arange(12.0).reshape(6, 2)
Y = np.array([True, True, False, False, True, True])


def test_rows_classes_and_covariance():
    model = LGCPClassifier(selection="loo_error").fit(X, Y)
    lines = summary(model, ["a", "b"])
    assert lines.pop("Errors with the weights in use").startswith("0 of 6 (false: ")
    lines.pop("What matters", None)  # six rows do not tell
    lines.pop("Warning", None)
    assert lines == {
        "Rows": "6",
        "Features": "2 (a, b)",
        "Classes": "2 (false: 2, true: 4)",
        "Kernel": str(model.kernel_),
        "Leave-one-out error": f"{model.loo_error_:.4g}",
        "Error of the most common class": "0.3333, always true",
    }


def test_an_error_that_is_not_known_has_no_line():
    model = LGCPClassifier(selection="loo_error").fit(X, Y).forget([0])
    lines = summary(model, ["a", "b"])
    assert "Leave-one-out error" not in lines
    assert lines["Rows"] == "5"


def test_rows_that_do_not_count_are_counted_if_their_classes_are_given():
    model = LGCPClassifier(selection="loo_error").fit(X, Y, sample_weight=[0, 1, 1, 1, 1, 1])
    assert summary(model, ["a", "b"], Y)["Rows"] == "6"
