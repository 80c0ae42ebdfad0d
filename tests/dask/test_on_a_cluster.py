"""The same on a cluster of two processes: results, killed workers, names of tasks, and the memory of the client."""

import numpy as np
import pytest
from distributed import wait
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import NearestNeighbors

import dask
from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier, neighbour_distances
from coxfield.kernels import Member
from local_cluster import calls, cluster, counted_chunks, labels_of, mortal_cluster
from shard_cases import chunked
from tolerances import assert_close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Q = RNG.normal(size=(40, 3))
Y = labels_of(X)
CONDITION = 4 + 8 * np.square(np.concatenate([X, Q])).sum(axis=1).max()


@pytest.fixture(scope="module")
def client():
    with cluster() as found:
        yield found


@pytest.fixture
def mortal_client(tmp_path_factory):
    """A cluster of its own, for a test that kills one of the two workers."""
    with mortal_cluster(tmp_path_factory.mktemp("workers")) as found:
        yield found


def expected(**options):
    return LGCPClassifier(RBF(1.0), **options).fit(X, Y)


def assert_same_answer(clf, queries):
    here = expected(selection=None).set_params(kernel=clf.kernel_).fit(X, Y)
    found = clf.predict_proba(queries).compute()
    assert_close(found, here.predict_proba(Q), terms=len(X), condition=CONDITION)


def test_persisted_shards_stay_on_the_workers(client):
    there, labels = chunked(X, 30).persist(), chunked(Y, 30).persist()
    wait([there, labels])
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(there, labels)
    assert_same_answer(clf, chunked(Q, 20))
    assert all(not hasattr(chunk, "make") for _, chunk, *_ in clf._shards.references)


def test_names_of_tasks_on_the_scheduler(client):
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 30), chunked(Y, 30))
    held = clf.predict(chunked(Q, 20)).persist()
    wait(held)
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"lgcp-check", "lgcp-sums", "lgcp-join", "lgcp-predict"} <= set(names)


def test_neighbours_on_a_cluster_are_those_in_memory(client):
    found = neighbour_distances(chunked(X, 30).persist(), 6)
    here = NearestNeighbors(n_neighbors=6).fit(X).kneighbors_graph(mode="distance")
    assert_close(found.toarray(), here.toarray(), condition=CONDITION)


def test_a_worker_killed_in_the_middle_of_fit(mortal_client, tmp_path):
    deadly = 15  # each chunk was checked once by then, and its sums have begun
    there = counted_chunks(X, 30, tmp_path, deadly)
    clf = DaskLGCPClassifier(selection="loo_log_loss", length_scales=[0.5, 1.0], selection_rows=None)
    clf.fit(there, chunked(Y, 30))
    assert calls(tmp_path) > deadly
    here = LGCPClassifier(selection="loo_log_loss", length_scales=[0.5, 1.0]).fit(X, Y)
    # As in test_classifier: the variance is found to 1e-4 on each side, and the loss is flat there.
    np.testing.assert_allclose(
        clf.selection_path_["loo_log_loss"], here.selection_path_["loo_log_loss"], rtol=0, atol=1e-6
    )
    np.testing.assert_array_equal(clf.selection_path_["chosen"], here.selection_path_["chosen"])


def test_a_worker_killed_in_the_middle_of_a_mixtures_fit(mortal_client, tmp_path):
    deadly = 14  # chunks were checked and sampled by then, and densities over pairs of shards have begun
    bank = [Member(RBF(1.0), alphas=(0.5,)), Member(RBF(1.0), "whitened", alphas=(0.5, (1.0, 3.0)))]
    clf = DaskLGCPClassifier(bank).fit(counted_chunks(X, 30, tmp_path, deadly), chunked(Y, 30))
    assert calls(tmp_path) > deadly
    here = LGCPClassifier(bank).fit(X, Y)
    np.testing.assert_allclose(clf.mixture_["weight"], here.mixture_["weight"], rtol=1e-6)
    np.testing.assert_allclose(clf.predict_proba(chunked(Q, 20)).compute(), here.predict_proba(Q), atol=1e-6)


def test_a_worker_killed_in_the_middle_of_predict(mortal_client, tmp_path):
    there = counted_chunks(X, 30, tmp_path, deadly=7)
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(there, chunked(Y, 30))
    before = calls(tmp_path)
    assert before == 4
    assert_same_answer(clf, chunked(Q, 20))
    assert calls(tmp_path) > 8


def test_shards_that_died_with_their_worker_are_made_again(mortal_client, tmp_path):
    for name in ("shards", "queries"):
        (tmp_path / name).mkdir()
    there = counted_chunks(X, 30, tmp_path / "shards").persist()
    wait(there)
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(there, chunked(Y, 30))
    assert calls(tmp_path / "shards") == 4  # held, and not made again
    assert_same_answer(clf, counted_chunks(Q, 20, tmp_path / "queries", deadly=1))
    assert len(mortal_client.scheduler_info()["workers"]) == 1
    assert calls(tmp_path / "shards") > 4


def test_an_error_of_a_worker_is_the_same_sentence(client):
    wrong = X.copy()
    wrong[70, 2] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity: column 2 in row 10 of chunk 2"):
        DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(wrong, 30), chunked(Y, 30))


def test_label_quality_and_contributions(client):
    here = expected(selection=None)
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 50), chunked(Y, 50))
    (quality,) = dask.compute(clf.label_quality())
    assert_close(quality["probability"], here.label_quality()["probability"], terms=len(X), condition=CONDITION)
    (found,) = dask.compute(clf.contributions(chunked(Q, 20), top=3))
    assert_close(found.shares, here.contributions(Q, top=3).shares, terms=len(X), condition=CONDITION)


def test_guaranteed_sets(client):
    here = expected(selection=None)
    clf = DaskLGCPClassifier(RBF(1.0), selection=None).fit(chunked(X, 50), chunked(Y, 50))
    for per_class in (False, True):
        found = clf.set_p_values(chunked(Q, 20), per_class=per_class).compute()
        np.testing.assert_array_equal(found, here.set_p_values(Q, per_class=per_class))
    np.testing.assert_array_equal(clf.predict_set(chunked(Q, 20)).compute(), here.predict_set(Q))
    assert all(client.futures_of(held) for held in clf._left_out_fits)  # they stay on the workers
