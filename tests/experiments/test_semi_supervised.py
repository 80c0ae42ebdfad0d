import numpy as np
import pytest

from coxfield.experiments import semi_supervised


@pytest.fixture
def _small(monkeypatch):
    monkeypatch.setitem(
        semi_supervised.DATA, "double helix", lambda rng: semi_supervised.make_double_helix(60, random_state=rng)
    )


@pytest.mark.usefixtures("_small")
def test_partitions_label_as_many_points_as_asked_and_both_classes():
    for seed in range(5):
        X, truth, y = semi_supervised.partition("double helix", 4, seed)
        known = y >= 0
        assert known.sum() == 4
        assert len(np.unique(y[known])) == 2
        np.testing.assert_array_equal(y[known], truth[known])
        assert len(X) == 120


@pytest.mark.usefixtures("_small")
def test_a_run_records_each_partition():
    heard = []
    record = semi_supervised.run("double helix", labels=20, partitions=2, done=heard.append)
    assert heard == [1, 1]
    assert len(record.supervised) == len(record.semi_supervised) == len(record.length_scales) == 2
    assert "double helix   20 labels: supervised" in semi_supervised.line(record)
