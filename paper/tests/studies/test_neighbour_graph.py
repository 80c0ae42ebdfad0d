import numpy as np
import pytest

from coxfield_paper.report.blocks import Verdict
from coxfield_paper.studies import neighbour_graph


def partly(truth, known):
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    return y


def test_two_far_clusters_are_a_trivial_solution():
    X = np.concatenate([np.arange(6.0), 100 + np.arange(6.0)])[:, np.newaxis] ** 1.01
    truth = np.repeat([1, 0], 6)
    found = neighbour_graph.search(X, truth, partly(truth, [0, 11]))
    k = found["trivial"]
    assert found["parts"][k - 1] == 2
    assert found["right"][k - 1] == 100
    assert found["parts"][-1] == 1
    assert len(found["parts"]) == 6  # a cluster of six points has five neighbours for each at home


def test_classes_that_alternate_on_a_line_have_none():
    X, truth = np.arange(12.0)[:, np.newaxis], np.arange(12) % 2
    found = neighbour_graph.search(X, truth, partly(truth, [0, 1]))
    assert found["trivial"] is None
    assert found["parts"][-1] == 1


def test_two_parts_that_are_not_the_classes_are_no_solution():
    X = np.array([0.0, 1.0, 2.1, 50.0, 51.0, 52.1])[:, np.newaxis]
    truth = np.array([0, 0, 0, 1, 1, 0])
    found = neighbour_graph.search(X, truth, partly(truth, [0, 3]))
    assert found["parts"][0] == 2
    assert found["trivial"] is None
    assert found["right"][0] == pytest.approx(75)  # of four unlabelled points one is of the other class


def test_points_are_joined_if_either_is_the_neighbour_of_the_other():
    # The nearest of 0 is 2, whose own nearest is 3: a path of neighbours that are not mutual.
    (part, *_) = neighbour_graph.parts([[0.0], [2.0], [3.0], [10.0], [11.0]])
    np.testing.assert_array_equal(part, [0, 0, 0, 1, 1])


def test_table_and_claim_carry_a_connected_graph_on_and_count_solutions():
    results = [
        {"parts": [4, 2, 1], "right": [10.0, 100.0, 0.0], "trivial": 2},
        {"parts": [2, 1], "right": [30.0, 50.0], "trivial": None},
    ]
    rows = neighbour_graph.table(results, 10).rows
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert [row[1] for row in rows] == ["3.00 ± 1.00", "1.50 ± 0.50", "1.00 ± 0.00"]
    assert [row[2] for row in rows] == ["20.00 ± 10.00", "75.00 ± 25.00", "25.00 ± 25.00"]
    assert [row[3] for row in rows] == ["0 of 2", "1 of 2", "0 of 2"]
    assert neighbour_graph.claim(results, "oil").verdict == Verdict.NOT_BORNE_OUT
    assert "100.0 % of the points in the best partition" in neighbour_graph.claim(results, "oil").finding
    assert neighbour_graph.claim(results[1:], "oil").verdict == Verdict.BORNE_OUT
    assert neighbour_graph.claim([], "oil").verdict == Verdict.NOT_TESTED


def test_parts_that_are_nearly_the_classes_are_trivial_too():
    nearly = [{"parts": [3, 1], "right": [99.2, 50.0], "trivial": None}]
    assert neighbour_graph.claim(nearly, "oil").verdict == Verdict.NOT_BORNE_OUT
