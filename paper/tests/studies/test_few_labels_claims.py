from collections import defaultdict

import pytest

from coxfield_paper.report.blocks import Verdict
from coxfield_paper.studies import few_labels_claims as goals
from coxfield_paper.studies.few_labels_methods import OURS, PAPER
from coxfield_paper.studies.few_labels_sets import FAMILY

YES, NO, NOT_TESTED = Verdict.BORNE_OUT, Verdict.NOT_BORNE_OUT, Verdict.NOT_TESTED


def measured(errors):
    """Results from errors by (data, labels, method)."""
    found = defaultdict(dict)
    for key, values in errors.items():
        found[key] = {seed: {"error": error} for seed, error in enumerate(values)}
    return found


def claim(data, errors):
    (found,) = [one for one in goals.claims(measured(errors)) if f"for {data}:" in one.statement]
    return found


@pytest.mark.parametrize(("many", "verdict"), [([2.0, 2.4], YES), ([2.4, 2.8], NO), ([], NOT_TESTED)])
def test_a_goal_is_met_if_the_mean_error_is_within_it_for_every_number_of_labels(many, verdict):
    found = claim("digit1", {("digit1", 10, OURS): [5.0, 6.0], ("digit1", 100, OURS): many})
    assert found.verdict == verdict
    assert found.statement.endswith("an error of at most 6 % with 10, 2.4 % with 100 labels")
    assert ("5.50 ± 0.50 % with 10" in found.finding) == (verdict != NOT_TESTED)


@pytest.mark.parametrize(("last", "verdict"), [(4.0, YES), (4.1, NO)])
def test_the_default_may_be_one_point_behind_the_papers_method(last, verdict):
    labels = FAMILY["oil"].labels
    errors = {("oil", count, method): [3.0] for count in labels for method in (OURS, PAPER)}
    found = claim("oil", errors | {("oil", labels[-1], OURS): [last]})
    assert found.verdict == verdict
    assert f"{last - 3:+.1f} with {labels[-1]} labels" in found.finding


def test_only_draws_that_both_methods_have_are_compared():
    (labels,) = FAMILY["two rings"].labels
    errors = {("two rings", labels, OURS): [0.0, 90.0], ("two rings", labels, PAPER): [2.0]}
    found = claim("two rings", errors)
    assert found.verdict == YES
    assert "−2.0 with 5 labels per ring" in found.finding


def test_every_set_has_one_goal_and_nothing_is_tested_without_results():
    found = goals.claims(measured({}))
    assert len(found) == len(FAMILY)
    assert {one.verdict for one in found} == {NOT_TESTED}
    assert all(one.statement.startswith("Beyond the paper") for one in found)
