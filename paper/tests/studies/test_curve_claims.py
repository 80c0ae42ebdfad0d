import pytest

from coxfield_paper.report.blocks import Mean, Verdict
from coxfield_paper.studies.curve_claims import alike, lower


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ((3.0, 4.0, 5.0), Verdict.BORNE_OUT),
        ((-3.0, -4.0, -5.0), Verdict.NOT_BORNE_OUT),
        ((0.0, 0.0, 0.0), Verdict.NOT_BORNE_OUT),
        ((-1.0, 4.0, 9.0), Verdict.UNDECIDED),  # positive in the mean, but that may be chance
        ((4.0,), Verdict.UNDECIDED),
    ],
)
def test_a_lower_error_must_be_more_than_chance(differences, verdict):
    assert lower(Mean(differences)) == verdict


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ((0.1, -0.1, 0.0), Verdict.BORNE_OUT),
        ((1.0, 1.1, 0.9), Verdict.BORNE_OUT),  # apart for sure, but by too little to be seen
        ((5.0, 5.1, 4.9), Verdict.NOT_BORNE_OUT),
        ((-20.0, 0.0, 20.0), Verdict.UNDECIDED),  # no difference in the mean, but nothing is known
        ((0.0,), Verdict.UNDECIDED),
    ],
)
def test_errors_are_alike_only_if_that_is_known(differences, verdict):
    assert alike(Mean(differences)) == verdict
