"""Probabilities and decisions of array libraries against those of NumPy."""

import numpy as np
import pytest

from coxfield.arrays.class_sums import ArraySums
from coxfield.arrays.library import to_numpy
from coxfield.arrays.store import ArrayScores
from coxfield.engine.class_sums import ClassSums
from coxfield.engine.decision import Scores
from tolerances import assert_close

INF = np.inf
PRIOR = np.array([[0.5, 0.2, 0.5]])
LOGS = np.array([[0.0, 1.0, 2.0], [-1e6, -2e6, -5e5], [-INF, -INF, -3.0], [-INF, -INF, -INF], [-40.0, 1.0, -41.0]])


@pytest.fixture
def pair(given, library):
    sums = ClassSums.of_logs(LOGS)
    arrays = ArraySums(given(sums.values), given(sums.logs))
    return ArrayScores(library, given(PRIOR), arrays), Scores(PRIOR, sums)


@pytest.mark.parametrize("name", ["values", "relative", "log_probabilities"])
def test_scores_are_those_of_numpy(pair, name):
    found, expected = pair
    assert_close(to_numpy(getattr(found, name)), getattr(expected, name), terms=3, scale=1 + np.exp(2.0))


def test_decisions_are_those_of_numpy_where_all_sums_vanish_too(pair):
    found, expected = pair
    assert to_numpy(found.decisions).tolist() == expected.decisions.tolist() == [2, 2, 2, 0, 1]
