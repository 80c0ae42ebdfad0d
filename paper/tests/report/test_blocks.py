import numpy as np
import pytest
from scipy.stats import ttest_1samp

from coxfield_paper.report.blocks import Mean, Verdict, difference


def test_means_and_differences():
    values = (8.0, 9.0, 10.0)
    mean = Mean(values)
    assert mean.value == 9
    assert mean.standard_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
    assert difference(mean, 9.5) == "−0.50"
    assert difference(mean, None) == difference(Mean(), 9.5) == "–"
    assert np.isnan(Mean((1.0,)).standard_error)


def test_the_interval_is_that_of_students_test():
    values = (8.0, 9.5, 10.0, 12.0)
    expected = ttest_1samp(values, 0).confidence_interval()
    assert Mean(values).interval == pytest.approx((expected.low, expected.high))
    assert np.isnan(Mean((1.0,)).interval).all()
    assert np.isnan(Mean().interval).all()


def test_the_weakest_of_verdicts_counts():
    assert Verdict.weakest([Verdict.BORNE_OUT, Verdict.BORNE_OUT]) == Verdict.BORNE_OUT
    assert Verdict.weakest([Verdict.BORNE_OUT, Verdict.NOT_SEEN]) == Verdict.NOT_SEEN
    assert Verdict.weakest([Verdict.NOT_BORNE_OUT, Verdict.UNDECIDED]) == Verdict.NOT_BORNE_OUT
    assert Verdict.of(True) == Verdict.BORNE_OUT
    assert Verdict.of(False) == Verdict.NOT_BORNE_OUT
