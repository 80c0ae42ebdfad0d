"""Class sums over near cells and a sample: those of all points if nothing is left out, and near them otherwise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, threads
from coxfield.engine import near_sums
from coxfield.engine.class_sums import class_sums
from coxfield.engine.near_sums import NearSums, every
from coxfield.kernels import Member

N = 900
BANK = [Member(RBF(1.0)), Member(RBF(1.0), "whitened")]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N)
    return LGCPClassifier(BANK, length_scales=[0.5, 1.0]).fit(rng.normal(size=(N, 4)) + 1.3 * np.eye(3, 4)[y], y)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(near_sums, "CELL", 40)
    monkeypatch.setattr(near_sums, "LEAST", 20)


def asked(fitted, left_out):
    if left_out:
        rows = np.arange(0, N, 7)
        return fitted.X_fit_[rows], rows
    return np.random.default_rng(1).normal(size=(150, 4)) * 1.5, None


def differences(fitted, n_near, left_out=False):
    """How far class sums are from those of all points in double precision, relative to the largest of a query."""
    training, (X, rows) = fitted._training, asked(fitted, left_out)
    exact = class_sums(training.store, X, rows).values
    found = NearSums.of(training.single, n_near)(training.single, X, rows).values
    return np.abs(found - exact) / exact.max(axis=1, keepdims=True)


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    share=st.floats(0.01, 1),
    least=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_sample_along_an_order_has_its_share_of_each_class(sizes, share, least, seed):
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    drawn, stands_for = every(rng.permutation(len(classes)), classes, share, least)
    assert len(np.unique(drawn)) == len(drawn)
    assert (np.diff(classes[drawn]) >= 0).all()
    wanted = np.minimum(sizes, np.maximum(np.ceil(np.array(sizes) * share), least))
    np.testing.assert_array_equal(np.bincount(classes[drawn]), wanted)
    np.testing.assert_allclose(np.bincount(classes[drawn], stands_for), sizes, rtol=1e-5)


# The sample counts 16 times and is taken away again 15 times, each with a few roundings of single precision.
ROUNDING = 16 * 16 * float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("left_out", [False, True])
@pytest.mark.parametrize("cell_by_cell", [0, np.inf], ids=["cells", "queries"])
def test_with_all_cells_near_sums_are_those_of_all_points(fitted, monkeypatch, left_out, cell_by_cell):
    monkeypatch.setattr(near_sums, "CELL_BY_CELL", cell_by_cell)
    assert differences(fitted, N, left_out).max() < ROUNDING


@pytest.mark.parametrize("left_out", [False, True])
def test_with_all_points_in_the_sample_sums_are_those_of_all_points(fitted, monkeypatch, left_out):
    monkeypatch.setattr(near_sums, "LEAST", N)
    assert differences(fitted, 1, left_out).max() < ROUNDING


def test_more_near_cells_are_nearer_to_the_exact_sums(fitted):
    few, more, most = (differences(fitted, n_near).mean() for n_near in (1, 6, 24))
    assert few > 1.5 * more > 3 * most > 0


@pytest.mark.parametrize("far", [1e2, 1e6, 1e12])
def test_far_from_all_points_sums_are_finite_and_know_the_nearest_class(fitted, far):
    X = far * np.vstack([np.eye(4), -np.eye(4)])
    training = fitted._training
    found, exact = NearSums.of(training.single, N)(training.single, X), class_sums(training.store, X)
    assert np.isfinite(found.values).all()
    np.testing.assert_array_equal(found.logs.argmax(axis=1), exact.logs.argmax(axis=1))


def test_threads_and_ways_of_visiting_change_roundings_only(fitted, monkeypatch):
    training, (X, _) = fitted._training, asked(fitted, left_out=False)
    sums = NearSums.of(training.single, 5)
    with threads.use(1):
        one = sums(training.single, X).values
    with threads.use(2):
        two = sums(training.single, X).values
    monkeypatch.setattr(near_sums, "CELL_BY_CELL", np.inf)
    by_query = sums(training.single, X).values
    for other in (two, by_query):
        assert (np.abs(other - one) / one.max(axis=1, keepdims=True)).max() < ROUNDING
