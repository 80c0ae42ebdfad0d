import json

import numpy as np
import pytest

from coxfield_paper.report.blocks import Note
from coxfield_paper.report.records import DONE, FAILED, Record
from coxfield_paper.studies import helix


@pytest.fixture(scope="module")
def result():
    return helix.label_helix(labels_per_strand=20, seed=0, n_per_strand=100)


def test_a_helix_is_labelled_with_and_without_the_unlabelled_points(result):
    given, truth = np.array(result["given"]), np.array(result["truth"])
    assert np.bincount(given[given >= 0]).tolist() == [20, 20]
    np.testing.assert_array_equal(given[given >= 0], truth[given >= 0])
    for way in ("supervised", "semi-supervised"):
        assert set(result[way]) == {0, 1}
    assert np.mean(np.array(result["semi-supervised"]) == truth) > 0.8


def test_the_record_is_what_json_holds(result):
    assert json.loads(json.dumps(result)) == result
    np.testing.assert_array_equal(result["X"], np.round(result["X"], 4))


def test_quick_and_full_are_the_same_task():
    assert helix.tasks(True) == helix.tasks(False)


def test_the_figure_shows_every_point_and_how_many_are_wrong():
    truth = np.arange(20) % 2
    result = {
        "X": np.random.default_rng(0).normal(size=(20, 3)).tolist(),
        "truth": truth.tolist(),
        "given": np.where(np.arange(20) < 10, truth, -1).tolist(),
        "supervised": np.where(np.arange(20) < 15, truth, 1 - truth).tolist(),
        "semi-supervised": truth.tolist(),
    }
    (block,) = helix.render({helix.TASK: Record(helix.TASK, {}, DONE, result)})
    panels = block.figure.axes
    assert [panel.get_title() for panel in panels] == [
        "the data",
        "supervised: 50.0 % wrong",
        "semi-supervised: 0.0 % wrong",
    ]
    for panel in panels:
        assert sum(len(drawn.get_offsets()) for drawn in panel.collections) == 20
        assert panel.get_xlabel()
        assert panel.get_ylabel()
        assert panel.get_zlabel()
    assert "10 of its 20 points" in block.caption
    assert "50.0 %" in block.description


@pytest.mark.parametrize("found", [{}, {helix.TASK: Record(helix.TASK, {}, FAILED, reason="none")}])
def test_without_a_result_the_command_is_named(found):
    (note,) = helix.render(found)
    assert isinstance(note, Note)
    assert "coxfield reproduce figure-helix" in note.text
