import numpy as np
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

from coxfield.graphs.affinity import Ties
from coxfield.graphs.neighbours import Search
from coxfield.graphs.shape import shape_of_distances, shape_of_graph, shape_of_points

POINTS = np.random.default_rng(0).normal(size=(60, 2))
TIES = (Ties(5), Ties(12, 4.0, common=True))


def test_points_and_their_listed_distances_have_the_same_graphs():
    points = shape_of_points(POINTS, TIES, 60)
    near = sparse.csr_array(kneighbors_graph(POINTS, 12, mode="distance"))
    listed = shape_of_distances(near, TIES, 60)
    for one, other in zip(points.modes, listed.modes, strict=True):
        np.testing.assert_allclose(one.values, other.values, atol=1e-10)
    assert points.names == listed.names == tuple(rule.name for rule in TIES)
    assert points.axes is not None
    assert listed.axes is None


def test_a_given_graph_has_the_modes_of_the_graph_computed_inside():
    graph = TIES[0].graph(Search.among(POINTS).of_all(12))
    given = shape_of_graph(graph, 60)
    np.testing.assert_allclose(given.modes[0].values, shape_of_points(POINTS, TIES, 60).modes[0].values, atol=1e-10)
    shares = given.join.shares(sparse.csr_array([[1.0] * 4 + [0.0] * 56, [0.0] * 60]), [0])[0].toarray()
    np.testing.assert_array_equal(shares[0, :4], 0.25)
    assert (shares[1] == 0).all()


def test_new_points_join_only_the_graphs_that_are_asked_for():
    shape = shape_of_points(POINTS, TIES, 60)
    assert shape.join.shares(POINTS[:3], []) == {}
    shares = shape.join.shares(POINTS[:3], [1])
    assert list(shares) == [1]
    assert shares[1].shape == (3, 60)
    assert (np.asarray(shares[1].argmax(axis=1)).ravel() == np.arange(3)).all()


def test_steps_are_shown(capsys):
    shape_of_points(POINTS, TIES, 10, verbose=1)
    shown = capsys.readouterr().err
    assert "nearest neighbours of 60 points" in shown
    assert "modes of the graph of 12 neighbours, one scale, sharpness 4" in shown
    assert "principal axes" in shown
