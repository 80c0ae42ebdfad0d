import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coxfield.estimators.trivial import (
    AGREE,
    ChainsDisagreeWarning,
    TrivialLabellingWarning,
    warn_if_chains_disagree,
    warn_if_trivial,
)


@pytest.mark.parametrize(
    ("inference", "words"),
    [
        ("map", "the most probable labelling gives all 3 unlabelled points to class 'a', as minimum cuts do"),
        ("marginals", "the label distributions give all 3 unlabelled points to class 'a', as happens when"),
        ("perturb_and_map", "the label distributions give all 3 unlabelled points to class 'a'"),
    ],
)
def test_a_labelling_of_one_class_is_said_with_what_helps(inference, words):
    with pytest.warns(TrivialLabellingWarning, match=words) as caught:
        warn_if_trivial(np.array(["a", "a", "a"]), inference)
    assert "try a shorter length scale, class means that speak for the other classes, or more labels" in str(
        caught[0].message
    )


@pytest.mark.parametrize("labels", [["a", "a", "b"], ["a"], []])
def test_two_classes_or_next_to_no_points_are_no_reason_to_warn(labels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_trivial(np.array(labels), "map")


def test_points_that_chains_disagree_on_are_counted():
    words = r"chains disagree on the labels of 2 points, R-hat up to 3\.50 where 1\.1 is acceptable: .*larger n_draws"
    with pytest.warns(ChainsDisagreeWarning, match=words):
        warn_if_chains_disagree(np.array([1.0, 1.2, 3.5, AGREE]))
    assert issubclass(ChainsDisagreeWarning, ConvergenceWarning)


def test_chains_that_agree_are_no_reason_to_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_chains_disagree(np.array([1.0, AGREE]))
        warn_if_chains_disagree(np.zeros(0))
