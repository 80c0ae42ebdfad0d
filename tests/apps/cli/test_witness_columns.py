"""Columns that name training rows."""

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.apps.cli.predict import loudest, witness_columns


def test_rows_of_one_class_per_query():
    clf = LGCPClassifier(RBF(1.0), selection=None).fit([[0.0], [1.0], [3.0]], ["a", "a", "b"])
    reasons = clf.contributions([[0.9], [2.9]], top=2)
    rows, shares, rest = loudest(reasons, np.array([0, 1]))
    assert rows.tolist() == [[1, 0], [2, -1]]
    assert shares.tolist() == [reasons.shares[0, 0].tolist(), reasons.shares[1, 1].tolist()]
    assert rest.tolist() == [reasons.rest[0, 0], reasons.rest[1, 1]]


def test_rows_have_names_and_are_blank_where_there_are_none():
    rows, shares = np.array([[1, 0], [2, -1]]), np.array([[0.5, 0.25], [1.0, 0.0]])
    found = pl.DataFrame(list(witness_columns(rows, shares, pl.Series(["x", "y", "z"]), "reason")))
    expected = {"reason_1": ["y", "z"], "share_1": [0.5, 1.0], "reason_2": ["x", None], "share_2": [0.25, None]}
    assert_frame_equal(found, pl.DataFrame(expected))


def test_no_rows_make_empty_columns():
    rows, shares = np.empty((0, 1), int), np.empty((0, 1))
    found = pl.DataFrame(list(witness_columns(rows, shares, pl.Series(["x"]), "witness")))
    assert found.schema == {"witness_1": pl.String, "share_1": pl.Float64}
    assert found.height == 0
