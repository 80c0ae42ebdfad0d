"""`pip install coxfield` brings no package that only the command line needs, and the library works without them."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from lean import OPTIONAL, run_without


def test_the_library_works_without_the_packages_of_the_extras():
    done = run_without(
        OPTIONAL,
        "import numpy as np\n"
        "from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier\n"
        "import coxfield.baselines, coxfield.calibration, coxfield.datasets, coxfield.field, coxfield.process\n"
        "X = np.array([[0.0], [0.1], [1.0], [1.1]])\n"
        "print(LGCPClassifier().fit(X, [0, 0, 1, 1]).predict(X))\n"
        "print(SLGCPClassifier(length_scales=[0.2], verbose=1).fit(X, [0, -1, 1, -1]).transduction_)\n",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0 0 1 1]\n[0 0 1 1]\n"


@pytest.mark.parametrize("missing", [OPTIONAL, ("typer",), ("polars",), ("rich",)])
def test_the_command_without_its_packages_is_one_sentence(missing):
    done = run_without(missing, "from coxfield.__main__ import main\nmain()\n")
    assert done.returncode == 1
    assert done.stdout == ""
    names = ", ".join(name for name in ("polars", "rich", "typer") if name in missing)
    assert done.stderr == f"The coxfield command needs {names}: pip install 'coxfield[cli]'\n"


WITHOUT_PAPER = """
import importlib.metadata, sys

importlib.metadata.entry_points = lambda **chosen: ()
sys.argv = ["coxfield", *{words}]
from coxfield.__main__ import main

main()
"""


@pytest.mark.parametrize("words", [["reproduce"], ["reproduce", "table-1", "--quick", "-o", "out"]])
def test_the_command_without_the_paper_says_how_to_install_it(words):
    done = run_without((), WITHOUT_PAPER.format(words=words))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: the reproduction of the paper is not installed: pip install 'coxfield[report]'\n"


def test_other_commands_do_not_need_the_paper():
    done = run_without(("coxfield_paper",), WITHOUT_PAPER.format(words=["--help"]))
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout


def test_a_command_of_another_distribution_is_added_by_its_entry_point():
    (entry,) = entry_points(group="coxfield.commands", name="reproduce")
    assert entry.value == "coxfield_paper.reproduce:reproduce"
    assert entry.dist.name == "coxfield-paper"


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("coxfield.io.tables", "tables need polars: pip install 'coxfield[cli]'"),
    ],
)
def test_files_without_their_packages_are_one_sentence(module, sentence):
    done = run_without(OPTIONAL, f"import {module}\n")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ImportError: {sentence}"
    assert "During handling" not in done.stderr


def imported(code):
    """The top-level packages that a program imports."""
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_coxfield_imports_nothing_heavy():
    assert not imported("import coxfield") & {"numpy", "scipy", "sklearn", *OPTIONAL}


def test_a_classifier_is_imported_without_what_it_does_not_need():
    # scikit-learn itself imports pandas where it is installed, and pandas more.
    new = imported("import coxfield; coxfield.LGCPClassifier") - imported("import sklearn.neighbors")
    assert not new & set(OPTIONAL)


def test_the_entry_point_imports_nothing_heavy():
    assert not imported("import coxfield.__main__") & {"numpy", "typer", "rich", *OPTIONAL}
