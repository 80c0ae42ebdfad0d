"""What `forget` leaves behind: no number of a row, in the object, its caches, its pickle or its model file."""

import gc
import io
import pickle
from types import FunctionType, ModuleType
from zipfile import ZipFile, is_zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from coxfield import LGCPClassifier
from coxfield.io import model_file
from coxfield.kernels.mixture import MixturePoints

pytestmark = pytest.mark.filterwarnings("ignore:X is sparse, so the mixture has no members on whitened features")
RNG = np.random.default_rng(0)
N, D = 60, 3
X = RNG.normal(size=(N, D))  # every number is there once, so that each number of a row is a trace of it
Y = np.array(["a", "b", "c"])[np.arange(N) % 3]
WEIGHTS = RNG.uniform(0.5, 2.0, size=N)
NEW = RNG.normal(size=(7, D))
GONE = [3, 17, 44, 55]  # of the first rows, and of rows that came later
SCALES = [0.5, 1.0, 2.0]
MODELS = {
    "kernel": {"kernel": RBF(0.8), "selection": None},
    "kernels": {"kernel": {"a": RBF(1.0), "b": 0.5 * Matern(1.5), "c": RBF(1.0)}, "selection": None},
    "called": {"kernel": RBF(0.8) + DotProduct(0.5), "selection": None},
    "paper": {"selection": "loo_error"},
    "mixture": {"length_scales": SCALES},
    "part": {"length_scales": SCALES, "selection_part": 0.7, "random_state": 0},
}
READERS = {
    "nobody": lambda clf: None,
    "scores": lambda clf: clf.class_scores(NEW),
    "sets": lambda clf: clf.predict_set(NEW, 0.8),
    "quality": lambda clf: (clf.label_quality(), clf.loo_predict_proba()),
    "reasons": lambda clf: clf.contributions(NEW, 4),
    "kernel": lambda clf: clf.kernel_(NEW, NEW) if callable(clf.kernel_) and not sparse.issparse(clf.X_fit_) else None,
}
FORMS = {
    "dense": np.asarray,
    "float32": lambda points: points.astype(np.float32),
    "sparse": sparse.csr_array,
    "sparse float32": lambda points: sparse.csr_array(points.astype(np.float32)),
}


def reachable(start):
    """Everything that an object refers to, directly or not; no code and no classes, which refer to this module."""
    seen, waiting = {}, [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType):
            continue
        seen[id(thing)] = thing
        waiting += gc.get_referents(thing)
        if isinstance(thing, np.ndarray):
            waiting.append(thing.base)
    return seen.values()


def numbers_in(clf):
    """All floating point numbers that an object holds, in double precision, in arrays or alone."""
    found = list(reachable(clf))
    arrays = [each.ravel() for each in found if isinstance(each, np.ndarray) and each.dtype.kind == "f"]
    alone = [float(each) for each in found if isinstance(each, float | np.floating)]
    return np.concatenate([*arrays, alone]).astype(float)


def unpacked(content):
    """All that is in an archive, and in the archives in it: sparse matrices are some."""
    if not is_zipfile(io.BytesIO(content)):
        return content
    with ZipFile(io.BytesIO(content)) as archive:
        return b"".join(unpacked(archive.read(name)) for name in archive.namelist())


def coordinates_of(clf, rows):
    """The numbers by which the store holds some rows: places in each representation, and densities."""
    numbers, found = clf._training.rows.numbers[rows], []
    for group in clf._training.store.groups:
        for part in group.parts:
            columns = part.column_of(numbers)
            columns = columns[columns >= 0]
            mixed = isinstance(part.points, MixturePoints)
            held = [each.points for each in part.points.ladders] if mixed else [part.points]
            placed = [bound.points.coordinates[columns] for bound in held if hasattr(bound, "points")]
            found += [dense(coordinates).ravel() for coordinates in placed]
            if mixed:
                known = [each.known for each in part.points.ladders] + [*part.points.__dict__.get("log_densities", ())]
                found += [log_q[:, columns].ravel() for log_q in known if log_q is not None]
    return np.concatenate([*found, []]).astype(float)


def dense(points):
    return points.toarray() if sparse.issparse(points) else points


def lived(name, form, reader, weights=None):
    """A classifier with rows of several calls, which somebody has read."""
    points, read = FORMS[form](X), READERS[reader]
    clf = LGCPClassifier(**MODELS[name])
    clf.fit(points[:36], Y[:36], None if weights is None else weights[:36])
    for some in (slice(36, 46), slice(46, 50), slice(50, 60)):
        clf.partial_fit(points[some], Y[some], sample_weight=None if weights is None else weights[some])
        read(clf)
    return clf, dense(points).astype(float)


CASES = [(name, form) for name in MODELS for form in FORMS if name != "called" or "sparse" not in form]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("name", "form"), CASES)
def test_no_number_of_a_forgotten_row_is_left_in_the_object(name, form, reader):
    clf, points = lived(name, form, reader)
    traces = np.concatenate([points[GONE].ravel(), coordinates_of(clf, GONE)])
    before = numbers_in(clf)
    assert np.isin(points[GONE], before).all()
    assert np.isin(traces, before).all()
    clf.forget(GONE)
    after = numbers_in(clf)
    assert np.isin(points[np.setdiff1d(np.arange(N), GONE)], after).all()
    assert not np.isin(traces, after).any()
    READERS[reader](clf)
    assert not np.isin(traces, numbers_in(clf)).any()


@pytest.mark.parametrize(("name", "form"), CASES)
def test_rows_that_came_later_are_not_kept_by_an_array_of_the_user(name, form):
    clf, points = lived(name, form, "sets")  # the first rows are a view of an array that has all of them
    clf.forget([50])
    assert not np.isin(points[50], numbers_in(clf)).any()
    assert np.isin(points[:36], numbers_in(clf)).all()


@pytest.mark.parametrize("name", ["kernel", "kernels", "paper", "mixture"])
def test_no_weight_of_a_forgotten_row_is_left_in_the_object(name):
    clf, _ = lived(name, "dense", "sets", WEIGHTS)
    assert np.isin(WEIGHTS[GONE], numbers_in(clf)).all()
    clf.forget(GONE)
    assert not np.isin(WEIGHTS[GONE], numbers_in(clf)).any()


@pytest.mark.parametrize(("name", "form"), CASES)
def test_no_bytes_of_a_forgotten_row_are_left_in_files(name, form, tmp_path):
    clf, points = lived(name, form, "sets")
    rows = points.astype(clf._precision)
    assert all(rows[k].tobytes() in pickle.dumps(clf) for k in GONE)
    clf.forget(GONE)
    path = tmp_path / "model.skops"
    model_file.save(clf, path, target="y", features=["u", "v", "w"])
    loaded = model_file.load(path).model
    for content in (pickle.dumps(clf), unpacked(path.read_bytes()), pickle.dumps(loaded)):
        assert rows[4].tobytes() in content
        assert not any(rows[k].tobytes() in content for k in GONE)
    assert not np.isin(points[GONE], numbers_in(loaded)).any()


@pytest.mark.parametrize("name", ["kernel", "mixture"])
def test_rows_leave_one_after_the_other(name):
    clf, points = lived(name, "dense", "sets")
    left = list(range(N))
    for place in (50, 0, 11, 11, 30, 52, 7):
        traces = np.concatenate([points[left[place]], coordinates_of(clf, [place])])
        clf.forget([place])
        del left[place]
        assert not np.isin(traces, numbers_in(clf)).any()
        READERS["reasons"](clf)
    gone = np.setdiff1d(np.arange(N), left)
    assert not np.isin(points[gone], numbers_in(clf)).any()
    np.testing.assert_array_equal(clf.X_fit_, X[left])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["kernel", "kernels", "mixture"])
def test_arrays_of_the_user_are_neither_changed_nor_kept(name, form):
    points = FORMS[form](X)
    before = dense(points).copy()
    clf = LGCPClassifier(**MODELS[name]).fit(points[:36], Y[:36]).partial_fit(points[36:50], Y[36:50])
    given = points.data if sparse.issparse(points) else points
    held = [each for each in reachable(clf) if isinstance(each, np.ndarray)]
    assert not any(np.shares_memory(each, given) for each in held)
    clf.forget([0, 40])
    np.testing.assert_array_equal(dense(points), before)
