"""How times grow with the number of points: exponents, verdicts that can fail, and the picture."""

import numpy as np
import pytest

from coxfield import LGCPClassifier
from coxfield_paper.report.blocks import Verdict
from coxfield_paper.studies.growth import REPEATS, Growth, Promise, picture, prediction_cost

SIZES = (100, 1000, 10_000, 100_000)


def growth(power, sizes=SIZES, start=1e-6):
    return Growth("it", sizes, tuple(start * float(n) ** power for n in sizes))


def test_a_prediction_is_timed_at_least_once():
    result = prediction_cost(LGCPClassifier(selection="loo_error"), n=40)
    assert result["seconds"] > 0
    assert 1 <= result["runs"] <= REPEATS


@pytest.mark.parametrize("power", [0.5, 1.0, 2.8])
def test_the_exponent_is_that_of_the_largest_sizes(power):
    assert growth(power).exponent() == pytest.approx(power)
    bent = Growth("it", SIZES, (1.0, *growth(power).seconds[1:]))
    assert bent.exponent() == pytest.approx(power)
    assert bent.exponent(start=1000) == pytest.approx(power)
    assert bent.exponent(start=1001) is None


@pytest.mark.parametrize(
    ("power", "verdict"),
    [
        (3.0, Verdict.BORNE_OUT),
        (2.8, Verdict.BORNE_OUT),
        (3.2, Verdict.BORNE_OUT),
        (2.7, Verdict.NOT_SEEN),
        (1.78, Verdict.NOT_SEEN),  # what was once called cubic
        (3.3, Verdict.NOT_BORNE_OUT),
    ],
)
def test_a_cubic_growth_is_within_a_quarter_of_three(power, verdict):
    assert growth(power).verdict(Promise(3, start=0)) == verdict
    assert f"measured exponent {power:.2f} from N = 1,000 to 100,000" in growth(power).finding(Promise(3, start=0))


def test_sizes_that_are_too_small_show_nothing():
    small = growth(3.0, sizes=(10, 20, 40, 80))
    assert small.verdict(Promise(3, start=40)) == Verdict.NOT_SEEN
    assert "needs 3 sizes from N = 40 on, and the largest size timed is 80" in small.finding(Promise(3, start=40))


def test_the_picture_shows_the_times_and_the_promised_growth():
    measured = {"one": growth(1.2), "three": growth(2.5)}
    named = [Growth(name, one.sizes, one.seconds) for name, one in measured.items()]
    axes = picture(named, {"one": Promise(1, 0), "three": Promise(3, 0)}).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    line, promised, _, cubic = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), SIZES)
    np.testing.assert_array_equal(line.get_ydata(), growth(1.2).seconds)
    for drawn, power in ((promised, 1), (cubic, 3)):
        slopes = np.diff(np.log(drawn.get_ydata())) / np.diff(np.log(drawn.get_xdata()))
        np.testing.assert_allclose(slopes, power)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["one, measured $N^{1.2}$", "three, measured $N^{2.5}$"]
