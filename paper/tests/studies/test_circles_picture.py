import numpy as np
import pytest

from coxfield_paper.studies.circles_picture import NAMES, picture


def record(n_rings):
    """A ring of six points per class; one label given for each class, one point not recovered."""
    turns = np.linspace(0, 2 * np.pi, 6, endpoint=False)
    truth = np.repeat(np.arange(n_rings), 6)
    points = (1 + truth)[:, None] * np.tile(np.stack([np.cos(turns), np.sin(turns)], axis=1), (n_rings, 1))
    found = truth.copy()
    found[4] = 1
    axis = np.linspace(-4, 4, 9)
    winner = np.minimum(np.hypot(*np.meshgrid(axis, axis)).astype(int), n_rings - 1)
    return {
        "points": points.tolist(),
        "truth": truth.tolist(),
        "found": found.tolist(),
        "given": np.where(np.arange(len(truth)) % 6 == 0, truth, -1).tolist(),
        "across": axis.tolist(),
        "up": axis.tolist(),
        "probability": np.where(winner == 0, 0.9, 0.4).tolist(),
        "winner": winner.tolist(),
    }


@pytest.mark.parametrize("n_rings", NAMES)
def test_three_panels_show_the_record(n_rings):
    result = record(n_rings)
    data, surface, labelled = picture(n_rings, result).axes[:3]
    np.testing.assert_array_equal(data.collections[-1].get_offsets(), [result["points"][4]])
    np.testing.assert_array_equal(surface.collections[0].get_array(), result["probability"])
    assert len(surface.collections) == 1 + (n_rings - 1)  # a line where the most probable ring changes
    unlabelled, *given = (len(group.get_offsets()) for group in labelled.collections)
    assert unlabelled == 5 * n_rings
    assert sum(given) == n_rings
    for panel in (data, surface, labelled):
        assert panel.get_xlim() == panel.get_ylim() == (-4.0, 4.0)


@pytest.mark.parametrize("n_rings", NAMES)
def test_every_ring_is_named_in_the_legends(n_rings):
    data, surface, labelled = picture(n_rings, record(n_rings)).axes[:3]
    names = {text.get_text() for text in data.get_legend().get_texts()}
    assert names == {*NAMES[n_rings], "not recovered"}
    names = {text.get_text() for text in labelled.get_legend().get_texts()}
    assert names == {*NAMES[n_rings], "not labelled"}
    assert ("inner ring" in surface.get_title()) == (n_rings == 2)
