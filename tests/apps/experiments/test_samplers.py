from coxfield.apps.experiments.samplers import FIELDS, deviations, random_field, render, render_summary


def test_the_fields_are_what_they_are_said_to_be():
    fields = [random_field(seed) for seed in range(FIELDS)]
    assert {field.n_classes for field in fields} == {2, 3}
    assert {field.shared for field in fields if field.n_classes == 3} == {True, False}
    assert min(len(field) for field in fields) == 4
    assert max(len(field) for field in fields) == 12


def test_records_are_plain_numbers_and_tables_show_all_of_them():
    records = deviations(3, n_samples=20, n_perturbed=10)
    assert all(type(record.perturb_and_map) is type(record.gibbs) is float for record in records)
    assert all(0 <= record.perturb_and_map_mean <= record.perturb_and_map <= 1 for record in records)
    assert render(records).row_count == 3
    assert sum(int(cell) for cell in render_summary(records).columns[1].cells) == 3
