import numpy as np
from sklearn.gaussian_process.kernels import RBF

from coxfield.kernels.held import hold
from coxfield.kernels.recognise import recognise

X = np.random.default_rng(0).normal(size=(12, 3))


def test_many_points_are_not_held(monkeypatch):
    monkeypatch.setattr("coxfield.kernels.held.MOST", 100)
    bound = recognise(RBF(1.0), 3).bind(X)
    assert hold(bound) is bound
    held = hold(bound[:10])
    assert hold(held) is held
