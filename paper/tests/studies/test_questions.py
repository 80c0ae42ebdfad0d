import numpy as np
import pytest

from coxfield import SLGCPClassifier
from coxfield_paper.report.blocks import Figure, Note, Table, Verdict
from coxfield_paper.report.records import DONE, UNAVAILABLE, Record, attempt
from coxfield_paper.studies import questions
from coxfield_paper.studies.questions import AT_ONCE, DRAWS, MOST, OURS, RANDOM, RULES, START, Asking

ASKED = [str(count) for count in range(0, MOST + 1, AT_ONCE)]


def record(data, rule, seed, error=5.0):
    arguments = {"data": data, "rule": rule, "seed": seed}
    return Record(questions.STUDY.task(*arguments.values()), arguments, DONE, dict.fromkeys(ASKED, error))


def found(*records):
    return {one.task: one for one in records}


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    X = rng.normal(size=(60, 2)) + 5 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    y = np.where(np.arange(60) < 6, truth, -1)
    return X, truth, y


def test_there_is_a_task_for_each_draw_and_none_in_the_quick_run():
    tasks = questions.STUDY.tasks(False)
    assert questions.STUDY.tasks(True) == []
    assert len(tasks) == len(START) * len(RULES) * DRAWS
    assert all(task.name == questions.STUDY.task(*task.arguments.values()) for task in tasks)


@pytest.mark.parametrize("rule", RULES)
def test_rules_ask_for_points_without_a_label(clouds, rule):
    X, _, y = clouds
    clf = SLGCPClassifier(random_state=0).fit(X, y)
    rows = RULES[rule](clf, X, y, np.random.default_rng(0))
    assert len(set(rows.tolist())) == AT_ONCE
    assert (y[rows] < 0).all()


def test_margins_and_distances_are_as_the_names_say(clouds):
    X, _, y = clouds
    clf = SLGCPClassifier().fit(X, y)
    best = np.sort(clf.label_distributions_, axis=1)
    margins = np.where(y < 0, best[:, -1] - best[:, -2], np.inf)
    assert margins[questions.by_margin(clf, X, y, None)].max() <= np.sort(margins)[AT_ONCE - 1]
    gaps = np.linalg.norm(X[:, None] - X[y >= 0], axis=2).min(axis=1)
    assert questions.farthest_first(clf, X, y, None)[0] == gaps.argmax()


def test_graphs_that_are_kept_change_nothing(clouds):
    X, truth, y = clouds
    more = np.where(np.arange(60) < 12, truth, -1)
    kept = Asking().fit(X, y).fit(X, more)
    np.testing.assert_array_equal(kept.label_distributions_, SLGCPClassifier().fit(X, more).label_distributions_)


def test_errors_fall_as_questions_are_answered(monkeypatch, clouds):
    monkeypatch.setattr(questions, "draw_set", lambda data, labels, seed: clouds)
    monkeypatch.setattr(questions, "MOST", 50)
    errors = questions.ask("digits", "margin", 0)
    assert list(errors) == [str(count) for count in range(0, 51, AT_ONCE)]
    assert errors["50"] <= errors["0"]
    assert (clouds[2] < 0).sum() == 54  # the labels at the start stay as they are


def test_a_table_and_a_figure_show_what_is_known():
    records = [record("digits", rule, seed, error) for rule, error in ((OURS, 2.0), (RANDOM, 4.0)) for seed in (0, 1)]
    drawn, table, note = questions.render(found(*records))
    assert (type(drawn), type(table), type(note)) == (Figure, Table, Note)
    assert table.rows[0] == ("digits", OURS, *["2.00 ± 0.00"] * 4)
    (panel,) = drawn.figure.axes
    assert [text.get_text() for text in panel.get_legend().get_texts()] == [OURS, RANDOM]
    assert "random 4.00 ± 0.00 %" in drawn.description
    assert "no results for USPS" in note.text


def test_the_claim_is_about_the_same_draws():
    worse = [record("USPS", RANDOM, seed, 6.0 + seed) for seed in range(4)]
    ours = [record("USPS", OURS, seed, 5.0 + seed / 2) for seed in range(3)]
    untested, claim = questions.claims(found(*worse, *ours))
    assert untested.verdict == Verdict.NOT_TESTED
    assert claim.verdict == Verdict.BORNE_OUT
    assert "1.5 ± 0.3 after 10" in claim.finding


def test_a_set_that_is_not_there_is_said_in_its_record(monkeypatch, tmp_path):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    first = next(task for task in questions.STUDY.tasks(False) if task.arguments["data"] == "USPS")
    assert attempt(first).status == UNAVAILABLE
