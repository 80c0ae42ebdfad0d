"""The appendix as an item: what is recorded, and what is made of records."""

import numpy as np
import pytest

from coxfield.apps.experiments import permanental, permanental_accuracy, permanental_cost
from coxfield.apps.report.blocks import Figure, Table
from coxfield.apps.report.records import DONE, Record
from coxfield.apps.report.tasks import attempt


def record(name, **result):
    return Record(name, {}, DONE, result=result, seconds=1.0)


def by_name(*records):
    return {each.task: each for each in records}


def tables(found):
    return [block for block in permanental.render(found) if isinstance(block, Table)]


def test_errors_are_means_over_the_partitions_that_are_there():
    losses = {3: (11.0, 0.30), 7: (12.0, 0.34)}
    found = by_name(
        *(
            record(permanental.name("Banana", "four cycles", seed), error=error, log_loss=loss)
            for seed, (error, loss) in losses.items()
        )
    )
    rows = {row[:2]: row[2:] for row in tables(found)[0].rows}
    assert rows["Banana", "four cycles"] == ("2", "11.50 ± 0.50", "0.320", "1")
    assert set(rows["Banana", "LGCP"]) == {"–"}
    assert len(rows) == 3 * 4


def test_accuracy_has_a_row_for_each_combination_that_was_computed():
    task = permanental_accuracy.tasks(True)[0]
    done = attempt(task)
    (row,) = tables({task.name: done})[1].rows
    assert row == ("6", "0.5", "0.2", *(f"{value:.4f}" for value in done.result.values()))
    assert len(permanental_accuracy.tasks(False)) == 27


@pytest.mark.parametrize("classifier", permanental_cost.CLASSIFIERS)
def test_a_prediction_is_timed_at_least_once(classifier):
    result = permanental_cost.cost(classifier, n=40)
    assert result["seconds"] > 0
    assert 1 <= result["runs"] <= permanental_cost.REPEATS


def timed(linear, cubic):
    """Records of times that grow like these powers of the number of points."""
    powers = {permanental_cost.LINEAR: linear, permanental_cost.CUBIC: cubic}
    return by_name(
        *(
            record(permanental_cost.name(classifier, n), seconds=1e-6 * n**power, runs=1)
            for classifier, power in powers.items()
            if power is not None
            for n in permanental_cost.SIZES[classifier]
        )
    )


@pytest.mark.parametrize(
    ("linear", "cubic", "verdict"),
    [(1.0, 3.0, True), (0.9, 2.4, True), (2.0, 3.0, False), (1.0, 4.0, False), (1.0, 1.1, False), (None, 3.0, None)],
)
def test_the_verdict_follows_the_exponents(linear, cubic, verdict):
    (claim,) = permanental.claims(timed(linear, cubic))
    assert claim.holds is verdict


def test_too_few_sizes_have_no_exponent():
    found = timed(1.0, 3.0)
    for n in permanental_cost.SIZES[permanental_cost.CUBIC][2:]:
        del found[permanental_cost.name(permanental_cost.CUBIC, n)]
    growths = {growth.classifier: growth for growth in permanental_cost.growths(found)}
    assert growths[permanental_cost.CUBIC].exponent is None
    assert growths[permanental_cost.LINEAR].exponent == 1
    assert permanental.claims(found)[0].holds is None
    assert len([block for block in permanental.render(found) if isinstance(block, Figure)]) == 1


def test_the_figure_shows_the_times_and_the_papers_growth():
    (figure,) = permanental_cost.figure(timed(1.2, 2.5))
    axes = figure.figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    measured, promised, _, cubic = axes.lines
    np.testing.assert_array_equal(measured.get_xdata(), permanental_cost.SIZES[permanental_cost.LINEAR])
    np.testing.assert_allclose(measured.get_ydata(), 1e-6 * measured.get_xdata() ** 1.2)
    for line, power in ((promised, 1), (cubic, 3)):
        slopes = np.diff(np.log(line.get_ydata())) / np.diff(np.log(line.get_xdata()))
        np.testing.assert_allclose(slopes, power)
