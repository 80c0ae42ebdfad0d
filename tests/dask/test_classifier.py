import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

import dask
from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier
from dask import dataframe as dd
from lean import run_without
from shard_cases import CASES, D, M, N, case, chunked, points
from tolerances import assert_close, assert_same_decisions


def both(name, **options):
    """A case, and both classifiers fitted to it."""
    of = case(name)
    here = LGCPClassifier(of.kernel, **options).fit(of.X, of.y, of.weights)
    there = DaskLGCPClassifier(of.kernel, **options)
    return of, here, there.fit(chunked(of.X, 25), chunked(of.y, 25), chunked(of.weights, 25))


@pytest.mark.parametrize("name", CASES)
def test_predictions_are_those_of_one_machine(name):
    of, here, there = both(name, selection=None)
    Q = chunked(of.Q, 15)
    scores, found = here.class_scores(of.Q), there.class_scores(Q).compute()
    how = {"terms": N, "condition": of.condition, "scale": np.abs(scores).max(), "dtype": found.dtype}
    assert_close(found, scores, **how)
    assert_close(there.predict_proba(Q).compute(), here.predict_proba(of.Q), **how)
    assert_close(there.predict_log_proba(Q).compute(), here.predict_log_proba(of.Q), **how)
    assert_close(there.decision_function(Q).compute(), here.decision_function(of.Q), **how)
    assert found.dtype == scores.dtype
    logs = here._scores(here._queries(of.Q)).sums.logs
    if name == "underflow":  # every value is 0, and the nearest point decides
        assert np.exp(logs).max() == 0
        assert_same_decisions(there.predict(Q).compute(), here.predict(of.Q), logs, terms=N)
    elif name == "half underflow":
        np.testing.assert_array_equal(there.predict(Q).compute()[::2], here.predict(of.Q)[::2])
    else:
        assert_same_decisions(there.predict(Q).compute(), here.predict(of.Q), scores, terms=N, condition=of.condition)


@pytest.mark.parametrize("selection", ["loo_error", "loo_log_loss"])
@pytest.mark.parametrize("rows", [10_000, None])
@pytest.mark.parametrize("name", ["dense", "sparse", "weights"])
def test_selection_is_that_of_one_machine(name, rows, selection):
    of = case(name)
    here = LGCPClassifier(selection=selection).fit(of.X, of.y, of.weights)
    there = DaskLGCPClassifier(selection=selection, selection_rows=rows)
    there.fit(chunked(of.X, 40), chunked(of.y, 40), chunked(of.weights, 40))
    ours, theirs = there.selection_path_, here.selection_path_
    assert_close(ours["length_scale"], theirs["length_scale"], terms=N)
    # A root finder with a tolerance of 1e-4 on each side finds the log of the variance. There the loss is flat: it
    # moves by its curvature, below 50, times (2e-4)^2 / 2.
    np.testing.assert_allclose(np.log(ours["variance"]), np.log(theirs["variance"]), atol=2e-4)
    np.testing.assert_allclose(ours["loo_log_loss"], theirs["loo_log_loss"], rtol=0, atol=1e-6)
    assert np.abs(ours["loo_error"] - theirs["loo_error"]).max() <= 1 / N  # one row may be undecided
    np.testing.assert_array_equal(ours["chosen"], theirs["chosen"])


def test_kernels_per_class_are_selected_as_on_one_machine():
    _, here, there = both("per class", selection="loo_log_loss")
    assert repr(there.kernel_) == repr(here.kernel_)
    assert_close(there.loo_error_, here.loo_error_, terms=N)


def test_some_rows_choose_and_all_points_count():
    X, y, _ = points()
    options = {"selection": "loo_log_loss", "length_scales": [1.0], "selection_rows": 20, "random_state": 0}
    there = DaskLGCPClassifier(**options).fit(chunked(X, 25), chunked(y, 25))
    rows = np.sort(np.random.default_rng(0).choice(N, 20, replace=False))
    v = there.selection_path_["variance"][0]
    here = LGCPClassifier(float(v) * RBF(1.0), selection=None).fit(X, y)
    log_p = np.log(here.loo_predict_proba())[rows, y[rows]]
    assert_close(there.selection_path_["loo_log_loss"][0], -log_p.mean(), terms=N, condition=case("dense").condition)


def test_results_are_lazy_and_keep_their_chunks():
    X, y, Q = points()
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 30), chunked(y, 30))
    labels = clf.predict(chunked(Q, 15))
    assert isinstance(labels, da.Array)
    assert labels.chunks == ((15, 15, 10),)
    assert clf.predict_proba(chunked(Q, 15)).chunks == ((15, 15, 10), (3,))
    assert clf.X_fit_.numblocks == (3, 1)
    names = {str(key[0] if isinstance(key, tuple) else key).rsplit("-", 1)[0] for key in dict(labels.dask)}
    assert {"lgcp-sums", "lgcp-join", "lgcp-predict", "lgcp-queries"} <= names


def test_labels_and_probabilities_share_their_sums():
    X, y, Q = points()
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 30), chunked(y, 30))
    labels, probabilities = clf.predict_with_proba(chunked(Q, 15))
    shared = set(dict(labels.dask)) & set(dict(probabilities.dask))
    assert sum("lgcp-sums" in str(key) for key in shared) == 9
    labels, probabilities = dask.compute(labels, probabilities)
    np.testing.assert_array_equal(labels, probabilities.argmax(axis=1))


def test_numpy_arrays_give_numpy_arrays():
    X, y, Q = points()
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(X, y)
    found = clf.predict_proba(Q)
    assert isinstance(found, np.ndarray)
    here = LGCPClassifier(RBF(1.0), selection=None).fit(X, y)
    assert_close(found, here.predict_proba(Q), terms=N, condition=case("dense").condition)
    assert clf.score(chunked(Q, 10), chunked(here.predict(Q), 10)) == 1.0


def frames(parts=3, n=N):
    X, y, Q = points()
    frame = pd.DataFrame(X[:n], columns=["a", "b", "c"]).assign(label=np.array(["no", "yes", "so"])[y[:n]])
    return dd.from_pandas(frame, npartitions=parts), frame, pd.DataFrame(Q, columns=["a", "b", "c"])


def test_data_frames_of_unknown_lengths():
    there, frame, Q = frames()
    there = there[there.a > -1]  # nobody knows how many rows are left
    frame = frame[frame.a > -1]
    clf = DaskLGCPClassifier(selection="loo_error").fit(there[["a", "b", "c"]], there.label)
    here = LGCPClassifier(selection="loo_error").fit(frame[["a", "b", "c"]], frame.label)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    assert clf.classes_.tolist() == ["no", "so", "yes"]
    assert repr(clf.kernel_) == repr(here.kernel_)
    found = clf.predict(dd.from_pandas(Q, npartitions=2)).compute()
    np.testing.assert_array_equal(found, here.predict(Q))


def test_columns_of_other_names_and_numbers_are_refused():
    there, _, Q = frames()
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(there[["a", "b", "c"]], there.label)
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(dd.from_pandas(Q.rename(columns={"a": "z"}), npartitions=2))
    X, y, Q = points()
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 30), chunked(y, 30))
    with pytest.raises(ValueError, match="X has 2 features, but DaskLGCPClassifier is expecting 3"):
        clf.predict(chunked(Q, 10)[:, :2])


def test_a_failed_fit_changes_nothing():
    X, y, Q = points()
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 30), chunked(y, 30))
    before = clf.predict(Q)
    X = X.copy()
    X[50, 1] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity: column 1 in row 20 of chunk 1"):
        clf.fit(chunked(X, 30), chunked(y, 30))
    np.testing.assert_array_equal(clf.predict(Q), before)


def test_a_query_with_nan_is_named_by_column_and_chunk():
    X, y, Q = points()
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 30), chunked(y, 30))
    Q[17, 2] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity: column 2 in row 2 of chunk 1"):
        clf.predict(chunked(Q, 15)).compute()


def test_bad_options_and_missing_labels():
    X, y, _ = points()
    with pytest.raises(ValueError, match="selection must be one of"):
        DaskLGCPClassifier(selection="best").fit(chunked(X, 30), chunked(y, 30))
    with pytest.raises(ValueError, match="selection_rows"):
        DaskLGCPClassifier(selection="loo_error", selection_rows=0).fit(chunked(X, 30), chunked(y, 30))
    with pytest.raises(ValueError, match="the target y is None"):
        DaskLGCPClassifier().fit(chunked(X, 30), None)
    with pytest.raises(ValueError, match="at least two classes"):
        DaskLGCPClassifier().fit(chunked(X, 30), chunked(np.zeros(N, int), 30))
    with pytest.raises(NotFittedError):
        DaskLGCPClassifier().predict(chunked(X, 30))


def test_it_is_an_estimator_of_scikit_learn():
    clf = DaskLGCPClassifier(RBF(2.0), selection=None, mean={0: 1.0})
    assert clone(clf).get_params() == clf.get_params()
    X, y, Q = points()
    fitted = clf.fit(chunked(X, 30), chunked(y, 30))
    assert fitted is clf
    assert fitted.n_features_in_ == D
    here = LGCPClassifier(RBF(2.0), selection=None, mean={0: 1.0}).fit(X, y)
    assert_close(fitted.class_scores(Q), here.class_scores(Q), terms=N, condition=case("dense").condition)
    assert fitted.predict(Q).shape == (M,)


def test_without_dask_one_sentence_says_what_to_install():
    done = run_without(
        ("dask", "distributed"), "import coxfield, coxfield.estimators.supervised\nimport coxfield.dask\n"
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: coxfield.dask needs dask and distributed: pip install 'coxfield[dask]'"
    )
    assert "During handling" not in done.stderr


def test_the_library_imports_no_dask():
    code = (
        "import sys, coxfield.estimators.supervised, coxfield.estimators.semi_supervised\nprint('dask' in sys.modules)"
    )
    assert run_without((), code).stdout == "False\n"


@pytest.mark.parametrize("rows", [10_000, 20, None])
@pytest.mark.parametrize("chunks", [(0, 45, 45), (45, 0, 45), (45, 45, 0), (30, 0, 0, 60)], ids=str)
@pytest.mark.parametrize("name", ["dense", "sparse", "per class"])
def test_an_empty_chunk_changes_nothing(name, chunks, rows):
    of = case(name)
    fits = [
        DaskLGCPClassifier(
            of.kernel if name == "per class" else None, selection="loo_error", selection_rows=rows, random_state=0
        ).fit(chunked(of.X, 45).rechunk((sizes, D)), chunked(of.y, 45).rechunk((sizes,)))
        for sizes in (tuple(size for size in chunks if size), chunks)
    ]
    np.testing.assert_array_equal(fits[1].selection_path_["loo_error"], fits[0].selection_path_["loo_error"])
    found, expected = (fit.predict_proba(chunked(of.Q, 20)).compute() for fit in fits)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", [10_000, 5, None])
@pytest.mark.parametrize("zeros", [slice(0, 30), slice(30, 60), slice(60, 90), slice(10, 88)], ids=str)
def test_a_chunk_of_weight_zero_is_as_if_it_were_not_there(zeros, rows):
    X, y, Q = points()
    y = np.arange(N) % 2
    weights = np.ones(N)
    weights[zeros] = 0
    kept = weights > 0
    here = LGCPClassifier(selection="loo_error").fit(X[kept], y[kept])
    there = DaskLGCPClassifier(selection="loo_error", selection_rows=rows, random_state=0)
    there.fit(chunked(X, 30), chunked(y, 30), chunked(weights, 30))
    if rows == 5:  # of those that count
        assert there.loo_error_ * 5 == pytest.approx(round(there.loo_error_ * 5))
    else:
        assert_close(there.kernel_.theta, here.kernel_.theta, terms=N)
        np.testing.assert_allclose(there.predict_proba(Q), here.predict_proba(Q), rtol=1e-6)
