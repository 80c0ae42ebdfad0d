import numpy as np
import pytest

from coxfield.dask import DaskLGCPClassifier
from coxfield.dask.chunks import Form
from coxfield.dask.shards import Piece, Shards, joined_surveys, read, survey_of
from shard_cases import chunked, points

X, Y, _ = points()
FORM = Form(np.dtype(float), 3)


def shards(y=Y, weights=None):
    return Shards((Piece(chunked(X, 40), chunked(y, 40), chunked(weights, 40)),), FORM)


def test_a_survey_of_all_chunks():
    weights = np.where(Y == 2, 0.0, 1.0)
    found = shards(weights=weights).surveyed(DaskLGCPClassifier())
    assert found.classes.tolist() == [0, 1]
    assert found.known.lengths == (40, 40, 10)
    assert sum(found.known.kept) == weights.sum()
    np.testing.assert_array_equal(found.known.sizes, np.abs(X).max(axis=0))
    np.testing.assert_array_equal(found.known.first, X[:1])
    assert found.starts.tolist() == [0, 40, 80]
    assert found.of_class.tolist() == [[np.sum(Y == 0), np.sum(Y == 1)]] * 2
    assert found.form.sparse is False


def test_rows_of_weight_zero_are_dropped():
    weights = np.arange(5.0)
    shard = read(FORM, np.array([0, 1, 2]), 0, X[:5], Y[:5], weights)
    assert shard.rows.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(shard.labelled.X, X[1:5])
    np.testing.assert_array_equal(shard.labelled.weights, weights[1:])


def test_an_empty_chunk_is_no_shard_and_no_error():
    empty = survey_of(FORM, "Classifier", 0, X[:0], Y[:0], None)
    both = joined_surveys([empty, survey_of(FORM, "Classifier", 1, X[:5], Y[:5], None)])
    assert both.lengths == (0, 5)
    assert both.labels.tolist() == np.unique(Y[:5]).tolist()
    assert len(read(FORM, np.array([0, 1]), 0, X[:0], Y[:0], None).labelled) == 0


def test_refusals():
    with pytest.raises(ValueError, match="zero everywhere"):
        shards(weights=np.zeros(len(Y))).surveyed(DaskLGCPClassifier())
    with pytest.raises(ValueError, match="0 sample"):
        Shards((Piece(chunked(X[:0], 1), chunked(Y[:0], 1)),), FORM).surveyed(DaskLGCPClassifier())
    texts = [survey_of(FORM, "", 0, X[:5], y, None) for y in (Y[:5], Y[:5].astype(str))]
    with pytest.raises(ValueError, match="text in one chunk and numbers in another"):
        joined_surveys(texts)


def test_many_labels_that_are_all_different_are_no_quantities():
    assert len(shards(y=np.arange(len(Y)) % 80).surveyed(DaskLGCPClassifier()).classes) == 80
