"""The appendix as an item: what is recorded, and what is made of records."""

import pytest

from coxfield_paper.report.blocks import Figure, Table, Verdict
from coxfield_paper.report.records import DONE, Record, attempt
from coxfield_paper.studies import permanental


def test_there_is_a_row_for_each_combination_that_was_computed():
    task = permanental.accuracy_tasks(True)[0]
    done = attempt(task)
    (row,) = permanental.accuracy_table({task.name: done}).rows
    assert row == ("6", "0.5", "0.2", *(f"{value:.4f}" for value in done.result.values()))
    assert len(permanental.accuracy_tasks(False)) == 27


def test_longer_cycles_and_more_permutations_are_nearer_to_the_truth():
    found = permanental.accuracy(n=6, alpha=1.0, length_scale=0.5, patterns=5, seed=0)
    assert found["4 cycles"] < found["3 cycles"] < found["2 cycles"]
    assert found["10,000 drawn"] < found["100 drawn"]


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
            record(permanental.STUDY.task("Banana", "four cycles", seed), error=error, log_loss=loss)
            for seed, (error, loss) in losses.items()
        )
    )
    rows = {row[:2]: row[2:] for row in tables(found)[0].rows}
    assert rows["Banana", "four cycles"] == ("2", "11.50 ± 0.50", "0.320", "1")
    assert set(rows["Banana", "LGCP"]) == {"–"}
    assert len(rows) == 3 * 4


def timed(linear, cubic):
    """Records of times that grow like these powers of the number of points."""
    powers = {permanental.LINEAR: linear, permanental.CUBIC: cubic}
    return by_name(
        *(
            record(permanental.cost_name(classifier, n), seconds=1e-9 * float(n) ** power, runs=1)
            for classifier, power in powers.items()
            if power is not None
            for n in permanental.SIZES[classifier]
        )
    )


@pytest.mark.parametrize(
    ("linear", "cubic", "verdict"),
    [
        (1.0, 3.0, Verdict.BORNE_OUT),
        (0.9, 2.8, Verdict.BORNE_OUT),
        (1.0, 1.78, Verdict.NOT_SEEN),
        (0.5, 3.0, Verdict.NOT_SEEN),
        (2.0, 3.0, Verdict.NOT_BORNE_OUT),
        (1.0, 4.0, Verdict.NOT_BORNE_OUT),
        (2.0, 1.78, Verdict.NOT_BORNE_OUT),
        (None, 3.0, Verdict.NOT_TESTED),
    ],
)
def test_the_verdict_follows_the_exponents(linear, cubic, verdict):
    (claim,) = permanental.claims(timed(linear, cubic))
    assert claim.verdict == verdict


def test_the_quick_run_is_too_small_to_see_the_cube():
    quick = {task.name for task in permanental.tasks(True)}
    found = {name: one for name, one in timed(1.0, 3.0).items() if name in quick}
    (claim,) = permanental.claims(found)
    assert claim.verdict == Verdict.NOT_SEEN
    assert "LGCP: measured exponent 1.00" in claim.finding
    assert "needs 3 sizes from N = 1,000 on, and the largest size timed is 1,000" in claim.finding
    assert len([block for block in permanental.render(found) if isinstance(block, Figure)]) == 1


@pytest.mark.parametrize("classifier", permanental.TIMED)
def test_a_task_times_each_classifier(classifier):
    assert permanental.cost(classifier, n=40)["seconds"] > 0
