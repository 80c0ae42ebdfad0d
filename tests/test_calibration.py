import matplotlib as mpl
import numpy as np
import pytest

from coxfield.calibration import Comparison, compare, reliability
from coxfield.datasets import load_synth
from coxfield.plotting import figure

mpl.use("Agg")


def forecasts(n=4000, sharpness=1.0, seed=0):
    """Labels drawn from probabilities, and forecasts that are those probabilities made too sharp or too blunt."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(3), size=n)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    said = truth**sharpness
    return y, said / said.sum(axis=1, keepdims=True)


def test_bins_are_what_a_loop_says():
    y, p = forecasts(200)
    found = reliability(y, p, n_bins=6)
    for k in range(6):
        low, high = found.edges[k], found.edges[k + 1]
        inside = [j for j in range(200) if low <= max(p[j]) < high]
        right = [p[j].argmax() == y[j] for j in inside]
        assert found.counts[k] == len(inside)
        if inside:
            assert found.confidence[k] == pytest.approx(np.mean([max(p[j]) for j in inside]))
            assert found.accuracy[k] == pytest.approx(np.mean(right))
            expected = np.sqrt(sum(max(p[j]) * (1 - max(p[j])) for j in inside)) / len(inside)
            assert found.standard_error[k] == pytest.approx(expected)
    assert found.log_loss == pytest.approx(-np.mean(np.log(p[np.arange(200), y])))
    assert found.error == pytest.approx(np.mean(p.argmax(axis=1) != y))


def test_true_probabilities_are_calibrated_within_chance_and_others_are_not():
    true = reliability(*forecasts())
    full = true.counts > 0
    z = (true.accuracy - true.confidence)[full] / true.standard_error[full]
    assert np.abs(z).max() < 4
    sharp, blunt = (reliability(*forecasts(sharpness=s)) for s in (3.0, 0.4))
    assert (
        np.nansum((sharp.accuracy - sharp.confidence) * sharp.counts)
        < 0
        < np.nansum((blunt.accuracy - blunt.confidence) * blunt.counts)
    )
    assert true.expected_calibration_error < min(sharp.expected_calibration_error, blunt.expected_calibration_error)
    assert true.log_loss < min(sharp.log_loss, blunt.log_loss)


def test_certainty_falls_into_the_last_bin_and_empty_bins_are_nan():
    found = reliability(["b", "a"], [[0.0, 1.0], [0.5, 0.5]], n_bins=4)
    assert found.counts.tolist() == [1, 0, 0, 1]
    assert np.isnan(found.accuracy).tolist() == [False, True, True, False]


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but there are 2 labels and 2 classes"):
        reliability([0, 1], np.full((2, 3), 1 / 3))
    assert reliability([0, 1], np.full((2, 3), 1 / 3), classes=[0, 1, 2]).counts.sum() == 2


def test_one_call_compares_before_and_after_learning():
    X_train, y_train, X_test, y_test = load_synth(return_X_y=True)
    names = np.array(["no", "yes"])
    found = compare(X_train, names[y_train], X_test, names[y_test], n_bins=5)
    assert isinstance(found, Comparison)
    assert found.before.counts.sum() == found.after.counts.sum() == len(y_test)
    assert found.after.log_loss < found.before.log_loss
    assert f"after learning: log loss {found.after.log_loss:.3f}" in str(found)
    ax = found.plot(figure().subplots())
    assert [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()] == [
        "before learning",
        "after learning",
    ]
