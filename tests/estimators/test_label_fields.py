"""The label field has its own tests in `test_semi_supervised`. Here is what sets it apart from the mixture."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import SLGCPClassifier
from coxfield.datasets import make_circles
from coxfield.field import LabelField
from tolerances import assert_close

KERNEL = 0.25 * RBF(1.0)


def rings():
    X, truth = make_circles(2, random_state=3)
    return X, truth, np.where(np.arange(len(truth)) % 15 == 0, truth, -1)


def test_a_kernel_asks_for_the_label_field():
    X, _, y = rings()
    auto, stated = (SLGCPClassifier(KERNEL, selection=None, inference=name).fit(X, y) for name in ("auto", "map"))
    assert auto.inference_ == stated.inference_ == "map"
    assert auto.energy_ == stated.energy_
    assert not hasattr(auto, "members_")
    assert_close(
        auto.energy_, LabelField.from_points(X, KERNEL, y).energy(auto.transduction_[y < 0]), terms=len(X) ** 2
    )


@pytest.mark.parametrize("inference", ["map", "marginals", "perturb_and_map"])
def test_all_inferences_of_the_field_work_without_a_kernel(inference):
    X, truth, y = rings()
    clf = SLGCPClassifier(inference=inference, length_scales=[1.0], n_draws=400, random_state=0)
    clf.set_params(n_draws=20 if inference == "perturb_and_map" else 400).fit(X, y)
    assert clf.inference_ == inference
    assert np.mean(clf.transduction_ != truth) < 0.2
    assert clf.kernel_.k2.length_scale == pytest.approx(1.0)


def test_a_field_whose_points_are_all_labelled_has_nothing_to_find():
    X, truth, _ = rings()
    clf = SLGCPClassifier(KERNEL, selection=None).fit(X, truth)
    assert clf.inference_ == "map"
    np.testing.assert_array_equal(clf.transduction_, truth)
    assert clf.certified_.all()
