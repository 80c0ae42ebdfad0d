from coxfield_paper.report.perform import attempt
from coxfield_paper.studies import permanental_accuracy


def test_there_is_a_row_for_each_combination_that_was_computed():
    task = permanental_accuracy.tasks(True)[0]
    done = attempt(task)
    (row,) = permanental_accuracy.table({task.name: done}).rows
    assert row == ("6", "0.5", "0.2", *(f"{value:.4f}" for value in done.result.values()))
    assert len(permanental_accuracy.tasks(False)) == 27


def test_longer_cycles_and_more_permutations_are_nearer_to_the_truth():
    found = permanental_accuracy.accuracy(n=6, alpha=1.0, length_scale=0.5, patterns=5, seed=0)
    assert found["4 cycles"] < found["3 cycles"] < found["2 cycles"]
    assert found["10,000 drawn"] < found["100 drawn"]
