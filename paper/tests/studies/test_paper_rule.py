"""What reproduces the paper names the paper's rules: the defaults of our classifiers are others."""

import ast
from pathlib import Path

import pytest

from coxfield_paper import studies

STUDIES = Path(studies.__file__).parent
# Beyond the paper: here the defaults are compared with the paper's rules.
BEYOND = {"mixtures.py", "few_labels_methods.py", "questions.py"}
THE_PAPERS = "paper_methods.py"  # the only other place that names SLGCPClassifier


def uses(source, name):
    """Where a module uses a name, or an attribute of this name. Type hints and imports do not count."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for hint in ("annotation", "returns"):
            if getattr(node, hint, None) is not None:
                setattr(node, hint, None)
    return [node for node in ast.walk(tree) if name == getattr(node, "id", getattr(node, "attr", None))]


def calls(source, name, keyword):
    """How often a module calls a name with this keyword."""
    called = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return sum(
        name == getattr(node.func, "id", getattr(node.func, "attr", None))
        and keyword in {given.arg for given in node.keywords}
        for node in called
    )


def experiments():
    """The names and sources of all experiments of the paper."""
    return {path.name: path.read_text() for path in STUDIES.glob("*.py") if path.name not in BEYOND}


def test_no_experiment_of_the_paper_takes_the_default():
    assert {"supervised.py", "mnist.py", "permanental.py"} <= experiments().keys()
    for name, source in experiments().items():
        rules = calls(source, "LGCPClassifier", "selection")
        rules += source.count("classifier: LGCPClassifier")  # the type of an argument
        assert rules == len(uses(source, "LGCPClassifier")), f"{name}: name the selection"


def test_the_papers_semi_supervised_classifier_is_made_in_one_place():
    for name, source in experiments().items():
        expected = 1 if name == THE_PAPERS else 0
        assert len(uses(source, "SLGCPClassifier")) == expected, f"{name}: call paper_slgcp"
    assert calls((STUDIES / THE_PAPERS).read_text(), "SLGCPClassifier", "inference") == 1


@pytest.mark.parametrize(
    ("source", "used", "named"),
    [
        ("from coxfield import A\ndef f(a: A) -> A:\n    b: A = a\n    return b", 0, 0),
        ("ALL = {'a': A}", 1, 0),
        ("import coxfield\ncoxfield.A().fit(A(1, selection=None))", 2, 1),
    ],
)
def test_uses_are_counted_without_type_hints_and_calls_with_a_keyword(source, used, named):
    assert len(uses(source, "A")) == used
    assert calls(source, "A", "selection") == named
