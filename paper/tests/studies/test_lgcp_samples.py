import numpy as np
import pytest

from coxfield_paper.report.blocks import Figure, Note
from coxfield_paper.report.records import Records, attempt
from coxfield_paper.studies import lgcp_samples


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The record, as it is read back."""
    records = Records(tmp_path_factory.mktemp("records"))
    (task,) = lgcp_samples.tasks(True)
    records.save(attempt(task))
    return records.load(task.name)


def test_a_record_holds_the_pattern_and_its_intensity_to_four_digits(record):
    drawn = lgcp_samples.PROCESS.sample(lgcp_samples.WINDOW, resolution=lgcp_samples.CELLS, random_state=4)
    kept = lgcp_samples.pattern_of(record.result)
    np.testing.assert_allclose(kept.points, drawn.points, atol=1e-4)
    np.testing.assert_allclose(kept.intensity.values, drawn.intensity.values, rtol=1e-3)
    assert kept.window.volume == 100
    assert record.result["expected_of_process"] == pytest.approx(100 * np.exp(0.5))
    assert record.result["expected_of_intensity"] == pytest.approx(kept.intensity.integral, rel=1e-4)


def test_the_figure_is_drawn_from_the_record_alone(record, monkeypatch):
    monkeypatch.delattr(lgcp_samples, "PROCESS")
    figure, note = lgcp_samples.render({record.task: record})
    assert isinstance(figure, Figure)
    assert isinstance(note, Note)
    intensity, points = figure.figure.axes[:2]
    np.testing.assert_array_equal(intensity.get_images()[0].get_array(), np.transpose(record.result["intensity"]))
    np.testing.assert_array_equal(points.collections[0].get_offsets(), record.result["points"])
    assert f"{len(record.result['points'])} points were drawn" in note.text
    assert "165 for a random one" in note.text
