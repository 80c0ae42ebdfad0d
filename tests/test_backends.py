"""One suite over all backends: every selection and every method says what NumPy says, or is refused with a reason."""

import sys
from pathlib import Path

import array_api_compat
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from backends import BACKENDS, POWERS, SELECTIONS, table
from coxfield import LGCPClassifier
from coxfield.datasets import load_synth
from coxfield.kernels.distances import SOME

X, Y, NEW, _ = (np.asarray(part) for part in load_synth(return_X_y=True))
ROWS = np.random.default_rng(0).permutation(len(X))
PAGE = Path(__file__).parents[1] / "docs" / "arrays.md"

pytestmark = pytest.mark.usefixtures("dispatch")


def problem(dtype, many=False):
    rows = ROWS[: 90 if many else 60]
    points, y = X[rows].astype(dtype), np.arange(90) % 40 if many else Y[rows]
    return points, y, np.concatenate([NEW[::80][:12], 30 * NEW[:3], 1e4 * NEW[:2]]).astype(dtype)


def assert_every_power(backend, options, points, y, new):
    """Weights and variances are solved for to 1e-6; in single precision, sums that decide them have six digits."""
    there, here = backend.classifier(**options), LGCPClassifier(**options)
    there.fit(backend.given(points), backend.given(y))
    here.fit(points, y)
    tolerance = 1e-6 if points.dtype == np.float64 else 2e-4
    more = points[:5] + points.dtype.type(0.1), y[:5]
    for power, ask in POWERS.items():
        found = backend.home(ask(there, backend.given(new), tuple(map(backend.given, more))))
        expected = ask(here, new, more)
        if power == "set_p_values" and points.dtype == np.float32:
            # Counts of points that fit as badly: one whose fit is the same up to rounding may count or not.
            ranks = np.rint((found - expected) * (len(here.y_fit_) + 1))
            assert np.abs(ranks).max() <= 1
            assert np.mean(ranks == 0) > 0.95
        elif np.asarray(expected).dtype.kind == "f":
            size = max(1, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, atol=tolerance * size, rtol=0, err_msg=power)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=power)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SELECTIONS)
def test_every_power_with_every_selection_is_that_of_numpy(name, dtype, backend):
    points, y, new = problem(dtype)
    if name in backend.refused:
        with pytest.raises(ValueError, match=backend.refused[name][1]):
            backend.classifier(**SELECTIONS[name]).fit(backend.given(points), backend.given(y))
        return
    assert_every_power(backend, SELECTIONS[name], points, y, new)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_classes(dtype, backend):
    assert_every_power(backend, SELECTIONS["mixture"], *problem(dtype, many=True))


def test_the_default_works_everywhere(backend):
    points, y, new = problem(float)
    there = backend.classifier().fit(backend.given(points), backend.given(y))
    here = LGCPClassifier().fit(points, y)
    np.testing.assert_allclose(
        backend.home(there.predict_proba(backend.given(new))), here.predict_proba(new), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("kernel", [DotProduct(), RBF(1.0) + RBF(2.0), Matern(1.0, nu=0.7)], ids=str)
@pytest.mark.parametrize("name", [name for name, backend in BACKENDS.items() if backend.library])
def test_other_kernels_are_refused_outside_numpy(name, kernel):
    backend, (points, y, _) = BACKENDS[name], problem(float)
    with pytest.raises((TypeError, ValueError), match="NumPy arrays only"):
        backend.classifier(kernel=kernel, selection=None).fit(backend.given(points), backend.given(y))


def test_dask_leaves_points_on_their_device(monkeypatch):
    """Of a chunk of 150 points, 101 come home at most: those by which its centre is found."""
    backend, rng = BACKENDS["dask, strict on device1"], np.random.default_rng(0)
    points, new = rng.normal(size=(300, 13)), rng.normal(size=(150, 13))  # no other dimension has the size 13
    shapes, move = [], array_api_compat.to_device

    def watched(array, *arguments, **options):
        shapes.append(array.shape)
        return move(array, *arguments, **options)

    monkeypatch.setattr(array_api_compat, "to_device", watched)
    there = backend.classifier(kernel=RBF(3.0), selection="loo_error", selection_rows=None, length_scales=[1.0, 2.0])
    there.fit(backend.given(points, 150), backend.given((points[:, 0] > 0).astype(int), 150))
    for power in ("predict_proba", "loo_predict_proba", "set_p_values"):
        backend.home(POWERS[power](there, backend.given(new, 150), None))
    assert len(shapes) > 20
    assert max(shape[0] for shape in shapes if shape[1:] == (13,)) <= SOME


def test_the_table_in_the_docs_is_the_list_that_was_tested():
    assert table() in PAGE.read_text(encoding="utf-8"), f"run {sys.executable} tests/backends.py"
