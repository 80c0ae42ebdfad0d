import json

import pytest

from coxfield_paper.report.records import DONE, Record
from coxfield_paper.studies import samplers
from coxfield_paper.studies.samplers import FIELDS, ITEM, Deviation, random_field


def test_the_fields_are_what_they_are_said_to_be():
    fields = [random_field(seed) for seed in range(FIELDS)]
    assert {field.n_classes for field in fields} == {2, 3}
    assert {field.shared for field in fields if field.n_classes == 3} == {True, False}
    assert min(len(field) for field in fields) == 4
    assert max(len(field) for field in fields) == 12


@pytest.mark.parametrize("seed", [0, 1])
def test_deviations_are_plain_numbers_and_shares(seed):
    found = samplers.deviation(seed, n_samples=20, n_perturbed=10)
    assert json.loads(json.dumps(vars(found))) == vars(found)
    assert 0 <= found.perturb_and_map_mean <= found.perturb_and_map <= 1


def test_records_become_a_summary_by_coupling_and_a_row_per_field():
    couplings = (0.1, 0.3, 1.0, 5.0)
    deviations = [
        Deviation(4, 2, k % 2 == 0, coupling, 1.0, 2.0, 0.2, 0.1, 0.01) for k, coupling in enumerate(couplings)
    ]
    found = {f"field/{k}": Record(f"field/{k}", {"seed": k}, DONE, vars(one)) for k, one in enumerate(deviations)}
    summary, fields = ITEM.render(found)
    assert [row[:2] for row in summary.rows] == [("0 to 0.5", "2"), ("0.5 to 2", "1"), ("2 to inf", "1")]
    assert fields.rows[1] == ("4", "2", "one per class", "0.30", "1.0", "2.0", "0.200", "0.100", "0.010")
    assert len(fields.rows) == 4
