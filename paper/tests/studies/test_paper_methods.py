import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.gaussian_process.kernels import RBF

from coxfield_paper.studies.paper_methods import paper_slgcp


def blobs(scale=1.0):
    X, truth = make_blobs(60, centers=[[0, 0], [4, 0]], random_state=0)
    return scale * X, truth, np.where(np.arange(60) < 8, truth, -1)


def test_the_kernel_is_a_squared_exponential_and_the_labelling_the_most_probable():
    X, truth, y = blobs()
    classifier = paper_slgcp().fit(X, y)
    assert classifier.inference == "map"
    assert classifier.kernel.length_scale == 1.0
    assert set(np.unique(classifier.label_distributions_)) == {0.0, 1.0}
    assert np.mean(classifier.transduction_ == truth) > 0.9


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_no_length_scale_is_left_out_whatever_the_units(scale):
    X, _, y = blobs(scale)
    path = paper_slgcp().fit(X, y).selection_path_
    assert len(path["length_scale"]) == 24


def test_a_kernel_and_other_parameters_are_passed_on():
    classifier = paper_slgcp(RBF(0.5), inference="marginals", selection=None, random_state=3)
    assert classifier.kernel == RBF(0.5)
    assert (classifier.inference, classifier.selection, classifier.random_state) == ("marginals", None, 3)
