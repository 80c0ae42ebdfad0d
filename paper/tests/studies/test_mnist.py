"""Table results: from records to a table and verdicts."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import Bunch

from coxfield_paper.report.blocks import Note, Table, Verdict
from coxfield_paper.report.records import DONE, Record
from coxfield_paper.studies import mnist


@pytest.fixture(autouse=True)
def digits(monkeypatch):
    """500 training and 300 test images of 8 x 8 pixels."""
    X, y = load_digits(return_X_y=True)
    X = np.rint(X * 255 / 16).astype(np.uint8)
    data = Bunch(X_train=X[:500], y_train=y[:500], X_test=X[500:800], y_test=y[500:800])
    monkeypatch.setattr(mnist, "fetch_mnist", lambda: data)
    return data


@pytest.mark.parametrize(
    ("run", "arguments"),
    [
        (mnist.lgcp, {}),
        (mnist.lgcp_from_subset, {"points": 200, "seed": 0}),
        (mnist.nearest_neighbour, {}),
        (mnist.logistic_regression, {}),
        (mnist.svm, {"tuning": 100, "seed": 0}),
    ],
)
def test_every_method_says_which_test_points_are_wrong(run, arguments):
    result = run(**arguments)
    assert len(set(result["wrong"])) == len(result["wrong"])
    assert result["error"] == pytest.approx(100 * len(result["wrong"]) / 300)
    assert result["error"] < 20
    assert result["fit_seconds"] > 0
    assert result["predict_seconds"] > 0


def test_the_nearest_neighbour_is_the_nearest(digits):
    distances = ((digits.X_test[:, None].astype(int) - digits.X_train.astype(int)) ** 2).sum(axis=2)
    first, second = np.sort(distances, axis=1)[:, :2].T
    clear = second > first * (1 + 1e-3)  # single precision cannot mistake these
    assert clear.mean() > 0.9
    wrong = np.flatnonzero(clear & (digits.y_train[distances.argmin(axis=1)] != digits.y_test))
    assert set(mnist.nearest_neighbour()["wrong"]) & set(np.flatnonzero(clear)) == set(wrong)


def test_a_subset_of_all_points_chooses_what_all_points_do():
    whole, drawn = mnist.lgcp(), mnist.lgcp_from_subset(points=500, seed=0)
    assert drawn["length_scale"] == pytest.approx(whole["length_scale"], rel=1e-4)
    # The order of the points, and so the rounding, differs: a tie may go the other way, here and there.
    assert drawn["loo_error"] == pytest.approx(whole["loo_error"], abs=100 / 500)
    assert len(set(drawn["wrong"]) ^ set(whole["wrong"])) <= 1


def test_the_svms_parameters_are_those_of_least_held_out_error():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 20, size=200))[rng.permutation(200), None]
    y = (np.floor(X[:, 0]) % 2).astype(int)  # stripes, which a wide kernel cannot tell apart
    found = mnist.choose(X, y, costs=[1.0, 10.0], gammas=[1e-4, 10.0])
    assert found["chosen"]["gamma"] == 10
    assert found["held_out_error"] < 20


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 4), (7, 2), (30, 31)])
def test_mcnemar_is_twice_the_tail_of_a_fair_coin(first, second):
    expected = min(1, 2 * binom.cdf(min(first, second), first + second, 0.5))
    assert mnist.mcnemar(first, second) == pytest.approx(expected)


YES, NO, NOT_TESTED = Verdict.BORNE_OUT, Verdict.NOT_BORNE_OUT, Verdict.NOT_TESTED


def records(**wrong):
    """Records of test points that each method gets wrong, of 10,000."""
    names = {"lgcp": mnist.LGCP, "subset": mnist.SUBSETS[0], "nearest": mnist.NEAREST, "svm": mnist.SVM}
    return {
        names[method]: Record(
            names[method],
            {},
            DONE,
            result={"error": len(points) / 100, "wrong": list(points), "fit_seconds": 12.0, "predict_seconds": 345.6}
            | ({"chosen": {"C": 10.0, "gamma": 0.02}} if method == "svm" else {}),
        )
        for method, points in wrong.items()
    }


@pytest.mark.parametrize(
    ("wrong", "verdicts"),
    [
        ({"lgcp": range(300), "nearest": range(10, 312)}, [YES, NOT_TESTED, YES]),
        ({"lgcp": range(300), "nearest": range(250)}, [NO, NOT_TESTED, YES]),  # 0.5 percentage points apart
        ({"lgcp": range(300), "nearest": range(300, 600)}, [YES, NOT_TESTED, YES]),  # other points, but as many
        ({"lgcp": range(400), "nearest": range(400, 800)}, [NO, NOT_TESTED, YES]),  # as many, but not sure enough
        ({"lgcp": range(440)}, [NOT_TESTED, NOT_TESTED, NO]),  # 4.4 %: within two standard errors of 4.5 %
        ({"subset": range(340)}, [NOT_TESTED, YES, NOT_TESTED]),  # 3.4 %: within two standard errors of 3.11 %
        ({"subset": range(350)}, [NOT_TESTED, NO, NOT_TESTED]),
        ({"nearest": range(300)}, [NOT_TESTED] * 3),
    ],
)
def test_verdicts_follow_the_errors(wrong, verdicts):
    assert [claim.verdict for claim in mnist.claims(records(**wrong))] == verdicts


def test_findings_say_what_the_verdicts_follow():
    like, sufficient, _ = mnist.claims(records(lgcp=range(300), nearest=range(10, 312), subset=range(500)))
    assert "3.00 % against 3.02 % of 1-NN; 10 test points are wrong by LGCP alone and 12 by 1-NN alone" in like.finding
    assert (
        "5.00 % over 1 draws, 5.00 % in the worst; a mean of at most 3.11 % and two standard errors of 0.17 is"
        in sufficient.finding
    )


def test_published_figures_stand_beside_ours():
    table, note = mnist.render(records(lgcp=range(307), svm=range(140)))
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["LGCP, length scale from all 60,000 points"][:3] == ("3.11", "3.07", "−0.04")
    assert rows["SVM"] == ("1.4", "1.40", "+0.00", "–", "–", "12", "346")
    assert rows["Conv. net"] == ("0.23", *["–"] * 6)
    assert [float(row[1]) for row in table.rows] == [3.11, 3.11, 3.09, 1.4, 4.5, 12, 3.6, 0.23]
    assert "C = 10, gamma = 0.02" in table.notes[-1]
    assert "coxfield reproduce table-2" in note.text


def test_small_digits_stand_in_for_the_table_in_a_quick_run():
    (task,) = mnist.tasks(True)
    result = task.function(**task.arguments)
    X, y = load_digits(return_X_y=True)
    nearest = KNeighborsClassifier(1).fit(X[::2], y[::2])
    assert result["1-NN"] == pytest.approx(100 * (1 - nearest.score(X[1::2], y[1::2])))
    found = {task.name: Record(task.name, {}, DONE, result)}
    note, table = mnist.render(found)
    assert note.text.startswith("A stand-in")
    assert [row[:2] for row in table.rows] == [("LGCP", "3.11"), ("1-NN", "3.09"), ("SVM", "1.4"), ("Log. reg.", "12")]
    assert {claim.verdict for claim in mnist.claims(found)} == {NOT_TESTED}


def test_the_table_without_results_says_how_to_compute_them():
    table, note = mnist.render({})
    assert isinstance(table, Table)
    assert isinstance(note, Note)
    assert {row[2] for row in table.rows} == {"–"}
