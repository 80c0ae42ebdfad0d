"""Some hundred cases of the fuzzer, always the same; and proof that the fuzzer sees what it looks for."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coxfield import LGCPClassifier, SLGCPClassifier
from coxfield.io import model_file
from coxfield.progress import SlowWarning
from fuzz import invariants
from fuzz.cases import ESTIMATORS, Case, cases, evaluate
from fuzz.commands import Command, examine_command
from fuzz.data import DENSE, SPARSE, Points
from fuzz.files import Table
from fuzz.invariants import Outcome, examine
from fuzz.labels import Labels
from fuzz.run import FAMILIES, Report, drawn_cases, failures, main, run_family, table
from fuzz.shrink import shrunk, simpler_case

NUMBER = {"lgcp": 90, "slgcp": 36, "permanental": 40, "parzen": 45, "harmonic": 24, "commands": 40}
PLAIN = Case("lgcp", Points(np.arange(12.0).reshape(6, 2)), Labels(("0", "1") * 3), {"selection": "'loo_error'"})


@pytest.mark.parametrize("name", FAMILIES)
def test_every_case_gives_probabilities_or_is_refused_in_one_sentence(name):
    report = run_family(FAMILIES[name], NUMBER[name], start=0)
    assert not report.failures, "\n".join(failures({name: report}))
    assert report.counts["fitted"] > NUMBER[name] / 5  # a fuzzer whose cases are all refused would find nothing


def test_a_plain_case_is_fitted():
    assert examine(PLAIN) == Outcome("fitted")


def raising(error):
    def predict(self, X):
        raise error

    return predict


def warning(self, X):
    warnings.warn("overflow encountered in exp", RuntimeWarning, stacklevel=1)
    return np.full((len(X), 2), 0.5)


WRONG = {
    "predict_proba is not finite": lambda self, X: np.full((len(X), 2), np.nan),
    "predict_proba does not sum to one": lambda self, X: np.full((len(X), 2), 0.5 + 1e-8),
    "IndexError instead of ValueError": raising(IndexError("index 5 is out of bounds")),
    "raised by nobody": raising(ValueError("operands could not be broadcast together")),
    "RuntimeWarning": warning,
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_broken_invariant_is_seen(monkeypatch, fault):
    monkeypatch.setattr(LGCPClassifier, "predict_proba", WRONG[fault])
    found = examine(PLAIN)
    assert found.failed
    assert fault in found.key


def test_labels_that_are_no_classes_are_seen(monkeypatch):
    monkeypatch.setattr(LGCPClassifier, "predict", lambda self, X: np.full(len(X), 7))
    assert "predict gives labels that are no classes" in examine(PLAIN).key


def test_a_labelled_row_that_is_asked_for_is_seen(monkeypatch):
    monkeypatch.setattr(SLGCPClassifier, "suggest", lambda self: np.array([0]))
    case = Case("slgcp", Points(np.arange(16.0).reshape(8, 2)), Labels(("0", "1", "-1", "-1") * 2))
    assert "suggest names a labelled row" in examine(case).key


def test_slow_cases_are_seen(monkeypatch):
    monkeypatch.setattr(invariants, "SECONDS", 0.0)
    assert "slow" in examine(PLAIN).key


def test_slow_cases_that_say_so_are_allowed_up_to_a_minute(monkeypatch):
    monkeypatch.setattr(invariants, "SECONDS", 0.0)
    whole = LGCPClassifier.fit

    def announced(self, *given, **options):
        warnings.warn("this takes 20 seconds", SlowWarning, stacklevel=2)
        return whole(self, *given, **options)

    monkeypatch.setattr(LGCPClassifier, "fit", announced)
    assert examine(PLAIN).kind == "fitted"
    monkeypatch.setattr(invariants, "ANNOUNCED", 0.0)
    assert "slow" in examine(PLAIN).key


def test_a_warning_of_pandas_about_its_own_labels_is_none_of_ours():
    case = replace(PLAIN, y=Labels(("0", "1", "1e300") * 2, "nullable"))
    assert not examine(case).failed


@pytest.mark.parametrize(
    ("case", "who"),
    [
        (replace(PLAIN, options={"selection": "'wrong'"}), "ours"),
        (replace(PLAIN, X=Points(np.full((6, 2), np.inf))), "scikit-learn"),
        (replace(PLAIN, options={"selection": "None", "kernel": "Misbehaving('raises')"}), "kernel"),
    ],
)
def test_it_is_known_who_refuses(case, who):
    assert examine(case).kind == f"refused by {who}"


@pytest.mark.parametrize("kind", [*DENSE, *SPARSE])
def test_points_are_what_their_source_says(kind):
    values = np.array([[0.0, 1.0], [3.0, 1e300 if kind in ("float64", "list", *SPARSE) else 2.0]])
    found = evaluate(Points(values, kind).source)
    found = found.toarray() if kind in SPARSE else np.asarray(found)
    np.testing.assert_array_equal(found, values > 0 if kind == "bool" else values)


def test_the_source_of_a_case_is_a_program():
    case = replace(PLAIN, weights=(1.0,) * 6, queries=(Points(np.ones((1, 2))),))
    names = dict.fromkeys(["x"])
    exec(case.source, evaluate("dict(np=np, LGCPClassifier=LGCPClassifier)"), names)
    assert names["clf"].classes_.tolist() == [0, 1]


def test_cases_are_made_small(monkeypatch):
    def only_large(self, X):
        return np.full((len(X), 2), np.nan if np.max(X) > 5 else 0.5)

    monkeypatch.setattr(LGCPClassifier, "predict_proba", only_large)
    case = replace(PLAIN, X=Points(np.arange(60.0).reshape(20, 3)), y=Labels(("0", "1") * 10), weights=(1.0,) * 20)
    small = shrunk(case, examine(case).key, examine, simpler_case)
    assert small.X.values.shape == (2, 1)
    assert small.weights is None


def test_equal_failures_are_one_entry_with_the_smallest_case():
    large, small = replace(PLAIN, queries=(PLAIN.X,)), PLAIN
    report = Report()
    for case in (large, small, large):
        report.add(case, Outcome("FAILED", "the same", "detail"))
    assert report.failures == {"the same": (3, small, "detail")}
    assert next(failures({"lgcp": report})).startswith("## 1. 3 cases: the same\n")


def test_the_same_seed_draws_the_same_cases():
    sources = [[case.source for case in drawn_cases(cases("parzen"), 9, seed)] for seed in (1, 1, 2)]
    assert sources[0] == sources[1] != sources[2]
    assert len(set(sources[0])) > 5


def test_the_program_prints_a_table(capsys):
    assert main(["--cases", "9", "--family", "parzen", "--sentences"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[0] == "parzen"
    assert len(table({name: Report() for name in ESTIMATORS}).splitlines()) == 1 + len(ESTIMATORS)


ROWS = (("length", ("1", "2", "3", "4")), ("species", ("a", "b", "a", "b")))
FIT = Command(("fit", "t.csv", "-t", "species", "-o", "model.skops"), (("t.csv", Table(ROWS)),), ("model.skops",))


def test_a_plain_command_succeeds():
    assert examine_command(FIT) == Outcome("fitted")


def test_a_command_that_fails_and_changes_a_file_is_seen(monkeypatch):
    def save(model, path, **_):
        Path(path).write_bytes(b"half")
        raise ValueError("the disk is full")

    monkeypatch.setattr(model_file, "save", save)
    assert "changed ['model.skops'] but failed" in examine_command(FIT).key


def test_a_command_that_changes_another_file_is_seen():
    assert "changed ['model.skops']" in examine_command(replace(FIT, outputs=("out.csv",))).key


def test_a_command_that_ends_with_a_traceback_is_seen(monkeypatch):
    monkeypatch.setattr(model_file, "save", lambda *_, **__: [][0])
    assert "fit ended with IndexError" in examine_command(FIT).key
