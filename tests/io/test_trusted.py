"""Types that a model file may hold."""

import importlib

import pytest
import skops.io
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier
from coxfield.io.trusted import MOST_NAMES, TRUSTED, strangers_in


@pytest.mark.parametrize("name", [name for name in TRUSTED if name.startswith("coxfield")])
def test_what_is_trusted_of_this_package_are_classes_that_exist(name):
    module, _, kind = name.rpartition(".")
    assert isinstance(getattr(importlib.import_module(module), kind), type)


def test_kernels_and_numbers_are_no_strangers():
    assert strangers_in(skops.io.dumps({"kernel": 2.0 * RBF(1.0), "n": 3})) == ""


def test_strangers_are_named(tmp_path):
    skops.io.dump([LGCPClassifier()], tmp_path / "a.skops")
    assert strangers_in(tmp_path / "a.skops") == "coxfield.estimators.supervised.LGCPClassifier"


def test_many_strangers_are_counted():
    kinds = [type(f"Kind{k}", (), {"__module__": f"some.module{k}"}) for k in range(MOST_NAMES + 2)]
    structure = skops.io.dumps([kind() for kind in kinds])
    assert strangers_in(structure).endswith("and 2 more")
