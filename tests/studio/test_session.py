"""A session: questions, checks, what the model says, and what is kept."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits, make_blobs

from coxfield.studio.journal import Source
from coxfield.studio.rows import from_arrays
from coxfield.studio.session import Measured, Session, keys_of, thinned

CENTRES = [[0, 0], [9, 0], [0, 9]]


@pytest.fixture
def begun():
    sessions = []

    def begin(X, wait=True, check_every=0, **options):
        session = Session(from_arrays(X, **options), check_every=check_every)
        sessions.append(session)
        session.start()
        assert not wait or session.learner.wait(60)
        return session

    yield begin
    for session in sessions:
        session.end()


def blobs(n=120):
    X, truth = make_blobs(n, centers=CENTRES, random_state=0)
    return X, truth.astype(str)


def answer(session, truth, keys):
    for _ in range(keys):
        row = session.next()
        session.label([row], truth[row], check=True)
        assert session.learner.wait(60)


def test_three_keys_label_three_clouds(begun):
    X, truth = blobs()
    session = begun(X)
    answer(session, truth, 3)
    found = session.labelled()
    assert (found["label"] == truth).all()
    assert (found["source"] == "given").sum() == 3
    assert (found["probability"][found["source"] == "given"] == 1).all()
    assert sum(label is not None for label in session.given()) == 3


def test_questions_are_rows_without_a_label_and_two_tabs_get_different_ones(begun):
    X, truth = blobs()
    session = begun(X)
    one, two = session.next("one"), session.next("two")
    assert one != two
    session.label([one], truth[one])
    assert session.next("one") not in (one, two)


def test_before_there_are_two_classes_nothing_is_claimed(begun):
    X, _ = blobs()
    session = begun(X)
    session.label([0], "a")
    assert session.learner.wait(60)
    state = session.state()
    assert (state["expected"], state["doubtful"]) == (None, [])
    assert session.card(1)["opinion"] == []
    assert set(session.labelled()["source"]) == {"given", None}
    assert set(session.colours()[0::4]) == {0, 255}


def test_everything_that_is_sent_is_json_without_nan(begun):
    X, truth = blobs(60)
    session = begun(X, check_every=2)
    for _ in range(30):
        row = session.next()
        session.label([row], truth[row], check=True)
        json.dumps([session.state(), session.card(row), session.why(row)], allow_nan=False)


def test_many_at_once_leave_single_labels_alone_and_are_one_step(begun):
    X, _ = blobs()
    session = begun(X)
    session.label([5], "x")
    changed = session.label(np.arange(10), "y")
    assert changed.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert session.given()[:11].tolist() == ["y"] * 5 + ["x"] + ["y"] * 4 + [None]
    session.undo()
    assert [label for label in session.given() if label] == ["x"]


def test_agreeing_takes_the_classes_of_the_model_and_is_one_step(begun):
    X, truth = blobs()
    session = begun(X)
    answer(session, truth, 3)
    before = session.given()
    rows = session.accept(np.arange(40))
    assert (session.given()[:40] == truth[:40]).all()
    assert set(rows) == {row for row in range(40) if before[row] is None}
    session.undo()
    assert session.given().tolist() == before.tolist()


def test_guesses_are_shown_and_confirmed(begun):
    X, truth = blobs()
    guesses = [None, *truth[1:]]
    session = begun(X, guesses=guesses)
    assert [one["name"] for one in session.classes()] == ["0", "1", "2"]
    assert session.card(3)["guess"] == truth[3]
    assert session.accept(np.arange(5)).tolist() == [1, 2, 3, 4]
    assert session.given()[:5].tolist() == [None, *truth[1:5]]


def test_a_row_that_was_skipped_comes_back_at_the_end(begun):
    X, truth = blobs(12)
    session = begun(X)
    first = session.next()
    session.skip(first)
    asked = []
    for _ in range(11):
        row = session.next()
        asked.append(row)
        session.label([row], truth[row])
    assert first not in asked
    assert session.next() == first
    session.label([first], truth[first])
    assert session.next() is None
    assert session.learner.wait(60)
    assert session.state()["expected"] == 0


def test_undo_brings_the_row_back(begun):
    X, _ = blobs()
    session = begun(X)
    row = session.next()
    session.label([row], "a")
    assert session.undo() == {"action": "label", "count": 1, "row": row}
    assert session.undo() is None


def test_renaming_to_another_name_merges(begun):
    X, truth = blobs()
    session = begun(X)
    answer(session, truth, 6)
    session.rename("0", "1")
    assert session.learner.wait(60)
    assert [one["name"] for one in session.classes()] == ["1", "2"] or len(session.classes()) == 2
    assert "0" not in session.labelled()["label"]
    with pytest.raises(ValueError, match="there is no class 'zebra'"):
        session.rename("zebra", "x")


def test_the_model_does_not_learn_from_checks_and_is_measured_by_them(begun):
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:500], truth[:500].astype(str)
    session = begun(X, check_every=3)
    for _ in range(60):
        row = session.next()
        if session.is_check(row):
            assert session.card(row)["opinion"] == []
            assert session.colours()[4 * row] == 255
        session.label([row], truth[row], check=True)
        assert session.learner.wait(60)
    checks = np.flatnonzero(session.labels.sources == Source.check)
    assert 15 <= len(checks) <= 20
    assert (session.learner.answer.codes[checks] == -1).all()
    wrong = session.learner.answer.found[checks] != session.labels.codes[checks]
    assert (session.measured().checks, session.measured().wrong) == (len(checks), wrong.sum())


def test_a_row_that_somebody_has_looked_up_is_not_a_check(begun):
    X, truth = blobs()
    session = begun(X, check_every=1)
    answer(session, truth, 6)
    row = session.next()
    assert session.is_check(row)
    session.hold("", row)
    session.label([row], truth[row], check=True)
    assert session.labels.sources[row] == Source.key


@pytest.mark.parametrize(("checks", "wrong"), [(1, 0), (7, 2), (20, 20)])
def test_the_interval_is_the_exact_one(checks, wrong):
    found = Measured.of(checks, wrong)
    # The ends are the shares at which as few or as many errors have a chance of 2.5 %.
    if wrong:
        assert stats.binom.sf(wrong - 1, checks, found.low) == pytest.approx(0.025)
    else:
        assert found.low == 0
    if wrong < checks:
        assert stats.binom.cdf(wrong, checks, found.high) == pytest.approx(0.025)
    else:
        assert found.high == 1


def test_the_interval_holds_as_often_as_it_says():
    for share in (0.01, 0.08, 0.3):
        inside = 0.0
        for wrong in range(21):
            found = Measured.of(20, wrong)
            inside += stats.binom.pmf(wrong, 20, share) * (found.low <= share <= found.high)
        assert inside >= 0.95


def test_a_slip_of_the_finger_comes_back_as_doubtful(begun):
    X, truth = blobs()
    session = begun(X)
    answer(session, truth, 12)
    row = int(np.flatnonzero(session.labels.codes >= 0)[4])
    wrong = str((int(truth[row]) + 1) % 3)
    session.label([row], wrong)
    assert session.learner.wait(60)
    doubtful = session.state()["doubtful"]
    assert [one["row"] for one in doubtful] == [row]
    assert session.labels.classes[doubtful[0]["other"]] == truth[row]
    gaps = np.linalg.norm(X - X[row], axis=1)
    near = np.argsort(gaps)[1:11]
    assert doubtful[0]["neighbours"] == (session.learner.answer.found[near] == doubtful[0]["other"]).sum() >= 8
    assert session.colours()[4 * row + 3] & 1


def test_doubtful_labels_stay_in_the_list_while_the_next_label_is_learned(begun):
    X, truth = blobs()
    session = begun(X)
    answer(session, truth, 12)
    row = session.next()
    session.label([row], str((int(truth[row]) + 1) % 3))
    assert session.learner.wait(60)
    shown = []
    session.listeners.append(lambda news: shown.append(session.state()["doubtful"]) if news == "colours" else None)
    answer(session, truth, 1)
    assert [[one["row"] for one in listed] for listed in shown] == [[row]]


def test_reasons_are_labelled_rows_of_the_same_cloud(begun):
    X, truth = blobs()
    session = begun(X)
    answer(session, truth, 9)
    row = session.next()
    reasons = session.why(row)
    assert reasons[0]["share"] >= reasons[-1]["share"] >= 0
    assert truth[reasons[0]["row"]] == truth[row]
    assert session.labels.classes[reasons[0]["code"]] == truth[row]


def test_labels_of_the_start_count(begun):
    X, truth = blobs()
    y = np.array([None] * len(X), dtype=object)
    for name in "012":
        y[np.flatnonzero(truth == name)[:2]] = name
    session = begun(X, y=y)
    assert (session.labelled()["label"] == truth).all()
    assert session.state()["by_hand"] == 0


def test_the_session_goes_on_where_it_stopped(tmp_path):
    X, truth = blobs()
    path = tmp_path / "x.labels.csv"
    first = Session(from_arrays(X), path)
    first.start()
    answer(first, truth, 8)
    first.end()
    again = Session(from_arrays(X), path)
    assert again.given().tolist() == first.given().tolist()
    assert again.curve
    assert [value for _, value in again.curve] == pytest.approx([value for _, value in first.curve], abs=0.06)
    with pytest.raises(ValueError, match="another table"):
        Session(from_arrays(X + 1), path)


def test_keys():
    assert keys_of(["3", "x", None, "spam"]) == ["3", "x", "", "1"]
    assert keys_of([f"class {k}" for k in range(10)])[-2:] == ["9", "b"]
    assert "" in keys_of([f"class {k}" for k in range(60)])
    assert keys_of(["n", "l"]) == ["1", "2"]  # these letters are commands


def test_long_curves_keep_their_ends():
    curve = [(k, float(k)) for k in range(5000)]
    found = thinned(curve)
    assert (found[0], found[-1]) == (curve[0], curve[-1])
    assert len(found) <= 300


@pytest.mark.parametrize("name", ["", "  ", "x" * 101])
def test_names_that_cannot_be(name, begun):
    session = begun(blobs()[0], wait=False)
    with pytest.raises(ValueError, match="class"):
        session.label([0], name)
    with pytest.raises(ValueError, match="there is no row 1000"):
        session.label([999], "a")


def test_find(begun):
    X, _ = blobs()
    session = begun(X, wait=False, texts=["a lazy fox" if k == 7 else "nothing" for k in range(len(X))])
    assert session.find("3")[0]["row"] == 2
    assert [one["row"] for one in session.find("LAZY")] == [7]
    assert session.find("zebra") == []
