import numpy as np
import pytest

from coxfield.calibration import reliability
from coxfield_paper.studies import mixture_calibration as calibration
from coxfield_paper.studies.bins import sums


def judged(n, seed=0):
    """Reliability of probabilities that are right."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.5, 1, n)
    return reliability((rng.random(n) > share).astype(int), np.column_stack([share, 1 - share]))


def result(ece, members, n=50, seed=0):
    return sums(judged(n, seed)) | {"ece": ece, "members": members}


def test_right_probabilities_have_the_calibration_error_of_chance():
    errors = [judged(500, seed).expected_calibration_error for seed in range(40)]
    chance = [calibration.chance_error(judged(500, seed)) for seed in range(40)]
    spread = np.std(errors, ddof=1) / np.sqrt(40)
    assert np.mean(errors) == pytest.approx(np.mean(chance), abs=4 * spread)


def test_rows_have_the_means_of_each_method():
    results = {
        "mixture": [result(0.02, 10), result(0.04, 14)],
        "loo_error": [{"ece": 0.1}],
        "calibrated SVC": [],
    }
    (row,) = calibration.table({"wine": results}).rows
    assert row[:3] == ("wine", "12", "0.030 ± 0.010")
    assert row[4:] == ("0.100", "–")


def test_each_data_set_has_a_panel_and_what_is_left_stays_empty():
    drawn = calibration.diagram({data: [result(0.1, 3, seed=k)] for k, data in enumerate("abcd")}, "name")
    titles = [axes.get_title() for axes in drawn.figure.axes if axes.axison]
    assert [title.partition(":")[0] for title in titles] == list("abcd")
    assert len(drawn.figure.axes) == 6
    assert "a: 0." in drawn.description
    assert not drawn.wide
