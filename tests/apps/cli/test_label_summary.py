"""The lines of the summary, by the inference that was used. `test_label` reads them from the command."""

from pathlib import Path

import numpy as np
import pytest

from coxfield import SLGCPClassifier
from coxfield.apps.cli.label import summary

X = np.concatenate([np.linspace(0, 1, 6), np.linspace(4, 5, 6)])[:, None]
Y = np.array([0, *[-1] * 5, 1, *[-1] * 5])
TOLD = {
    "mixture": ["Covariances", "Voices", "Errors to expect"],
    "map": ["Kernel", "Cross-validation error", "Energy", "Relative gap", "Certified"],
    "marginals": [
        "Kernel",
        "Cross-validation error",
        "Cross-validation log loss",
        "Errors to expect",
        "Standard error of probabilities",
    ],
}


@pytest.mark.filterwarnings("ignore::coxfield.estimators.trivial.ChainsDisagreeWarning")
@pytest.mark.parametrize("inference", TOLD)
def test_the_lines_are_those_of_the_inference(inference):
    model = SLGCPClassifier(inference=inference, random_state=0).fit(X, Y)
    lines = summary(model, ["height"], Y >= 0, Path("out.csv"), None)
    assert list(lines) == ["Rows", "Features", "Classes", *TOLD[inference], "Table"]
    assert lines["Rows"] == "12 (2 labelled, 10 blank)"
    assert lines["Features"] == "1 (height)"
    assert lines["Classes"] == "2 (0: 1 -> 6, 1: 1 -> 6)"
    assert lines["Table"] == "out.csv"


def test_what_is_proven_is_counted_among_the_labels_found():
    model = SLGCPClassifier(inference="map").fit(X, Y)
    lines = summary(model, ["height"], Y >= 0, None, Path("out.svg"))
    assert lines["Certified"] == "10 of the 10 labels found (100%)"
    assert lines["Picture"] == "out.svg"
    assert "Table" not in lines
