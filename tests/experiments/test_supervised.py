import pytest

from coxfield.experiments import supervised


@pytest.fixture(scope="module")
def records():
    return {record.data: record for record in supervised.run()}


@pytest.mark.parametrize(
    ("name", "low", "high"), [("Synth", 8.5, 9.7), ("Diabetes", 21.3, 22.1), ("Banana", 10.4, 11.6)]
)
def test_errors_are_the_papers_within_their_noise(records, name, low, high):
    assert low <= records[name].error <= high


def test_partitions_are_the_papers(records):
    assert [(r.train, r.test, len(r.errors)) for r in records.values()] == [
        (250, 1000, 1),
        (200, 332, 1),
        (400, 4900, 10),
    ]
    assert records["Synth"].standard_error is None
    assert 0 < records["Banana"].standard_error < 0.5
