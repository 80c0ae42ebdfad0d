"""What is in memory goes to a cluster through joblib: folds and grids of a label field, and tasks of experiments."""

import joblib
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV

from coxfield import LGCPClassifier, SLGCPClassifier, threads
from coxfield_paper.report.item import Task
from coxfield_paper.report.records import Records, perform
from local_cluster import cluster
from worker_tasks import where

RNG = np.random.default_rng(0)
TRUTH = np.arange(60) % 2
X = RNG.normal(size=(60, 2)) + 2 * TRUTH[:, None]
SOME = np.where(np.arange(60) < 12, TRUTH, -1)


@pytest.fixture(scope="module")
def client():
    with cluster() as found:
        yield found


def test_folds_and_grids_of_a_label_field(client):
    clf = SLGCPClassifier(0.3 * RBF(0.7), inference="map", length_scales=[2.0, 1.0, 0.5], n_folds=4)
    here = clf.fit(X, SOME).selection_path_
    with joblib.parallel_config(backend="dask"):
        there = clf.fit(X, SOME).selection_path_
    for name in here:
        np.testing.assert_array_equal(there[name], here[name])
    done = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert any("cross_validate" in name for name in done)


def test_a_grid_search_of_scikit_learn(client):
    search = GridSearchCV(LGCPClassifier(selection=None), {"kernel": [RBF(0.3), RBF(1.0)]}, cv=3)
    with joblib.parallel_config(backend="dask"):
        there = search.fit(X, TRUTH).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(there, search.fit(X, TRUTH).cv_results_["mean_test_score"])


def test_threads_are_those_of_this_machine(client):
    with joblib.parallel_config(backend="dask", n_jobs=-1):
        assert threads.elsewhere()
        with threads.use(3):
            assert threads.count() == 3
        with threads.use(-1):
            assert threads.count() == joblib.cpu_count()
    assert not threads.elsewhere()


def test_tasks_of_experiments(client, tmp_path):
    tasks = [Task(f"where/{x}", where, {"x": x}, alone=x == 0) for x in range(4)]
    found = {
        record.task: record.result for record in perform(tasks, Records(tmp_path), cluster=client.scheduler.address)
    }
    assert [found[f"where/{x}"]["x"] for x in range(4)] == list(range(4))
    workers = set(client.run(lambda: __import__("os").getpid()).values())
    assert {found[f"where/{x}"]["process"] for x in (1, 2, 3)} <= workers
    assert found["where/0"]["process"] not in workers


def test_no_scheduler_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("coxfield_paper.report.records.PATIENCE", 0.5)
    with pytest.raises(ValueError, match="there is no Dask scheduler at tcp"):
        list(perform([Task("where/0", where, {"x": 0})], Records(tmp_path), cluster="tcp://127.0.0.1:9"))
