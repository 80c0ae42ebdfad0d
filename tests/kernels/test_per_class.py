import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from coxfield.kernels.per_class import PerClass, class_kernels, class_values

CLASSES = np.array(["a", "b", "c"])


def test_one_kernel_is_shared_by_all_classes():
    kernels = class_kernels(RBF(2.0), CLASSES)
    assert kernels.shared
    assert len(kernels) == 3
    assert list(kernels) == [RBF(2.0)] * 3
    assert kernels.classes(0).tolist() == [0, 1, 2]


def test_equal_kernels_are_shared_and_others_are_not():
    kernels = class_kernels({"a": RBF(1.0), "b": Matern(1.0), "c": RBF(1.0)}, CLASSES)
    assert kernels.distinct == (RBF(1.0), Matern(1.0))
    assert kernels.owner.tolist() == [0, 1, 0]
    assert kernels[1] == Matern(1.0)


def test_for_learning_only_the_same_object_is_shared():
    one = RBF(1.0)
    kernels = class_kernels({"a": one, "b": RBF(1.0), "c": one}, CLASSES, by_object=True)
    assert kernels.owner.tolist() == [0, 1, 0]


def test_mapping_computes_shared_things_once():
    made = []
    kernels = PerClass.of([1, 2, 1]).map(lambda number: made.append(number) or -number)
    assert made == [1, 2]
    assert list(kernels) == [-1, -2, -1]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ({"a": RBF(), "b": RBF(), "x": RBF()}, "kernel names the class 'x', but y holds only"),
        ({"a": RBF(), "b": RBF(), pd.NA: RBF()}, "kernel names the class <NA>, but y holds only"),
        ({"a": RBF(), "b": RBF()}, "kernel has no entry for the class 'c'"),
    ],
)
def test_mappings_that_do_not_fit_the_classes_are_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        class_kernels(kernel, CLASSES)


def test_numbers_per_class():
    assert class_values(0.5, CLASSES, "mean", 0.0).tolist() == [0.5, 0.5, 0.5]
    assert class_values({"b": 2.0}, CLASSES, "mean", 0.0).tolist() == [0.0, 2.0, 0.0]
    assert class_values([1, 2, 3], CLASSES, "mean", 0.0).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="mean must be finite, got nan"):
        class_values(np.nan, CLASSES, "mean", 0.0)
    with pytest.raises(ValueError, match=r"mean must be between -1e\+100 and 1e\+100, got -1e\+300"):
        class_values(-1e300, CLASSES, "mean", 0.0)
    with pytest.raises(ValueError, match="mean must be a number, or a mapping class -> number, got 'large'"):
        class_values("large", CLASSES, "mean", 0.0)
    with pytest.raises(ValueError, match="mean names the class 'x'"):
        class_values({"x": 1.0}, CLASSES, "mean", 0.0)
