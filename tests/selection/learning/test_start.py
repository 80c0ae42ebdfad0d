import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier


def test_narrow_bounds_start_as_given():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    clf = LGCPClassifier(RBF(1.0, (0.99, 1.01)), selection="pseudo_likelihood").fit(X, y)
    assert clf.selection_path_["length_scale"].tolist() == [1.0]
    assert 0.99 <= clf.kernel_.k2.length_scale <= 1.01
