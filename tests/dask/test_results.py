import numpy as np

from coxfield.dask.chunks import Results, returned
from coxfield.dask.shards import Plan
from coxfield.engine.class_sums import ClassSums
from coxfield.engine.decision import Scores


def results(n_classes, here=False):
    values = np.random.default_rng(0).random((5, n_classes))
    scores = Scores(np.zeros((1, n_classes)), ClassSums(values, np.log(values)))
    plan = Plan()
    classes = np.array(list("abc"))[:n_classes]
    return scores, Results(plan, [plan.value("scores", scores)], (5,), classes, np.dtype("f4"), here=here)


def test_what_users_see():
    scores, found = results(3)
    assert found.labels().compute().tolist() == np.array(list("abc"))[scores.decisions].tolist()
    np.testing.assert_array_equal(found.class_scores().compute(), scores.values.astype("f4"))
    np.testing.assert_array_equal(found.decision_function().compute(), scores.relative.astype("f4"))
    np.testing.assert_array_equal(found.probabilities(), np.exp(found.log_probabilities().compute()))
    assert found.probabilities().dtype == np.float32


def test_two_classes_have_one_decision_value():
    scores, found = results(2)
    values = found.decision_function()
    assert values.shape == (5,)
    expected = scores.relative.astype("f4")
    np.testing.assert_array_equal(values.compute(), expected[:, 1] - expected[:, 0])


def test_results_may_be_computed_at_once():
    assert isinstance(results(2, here=True)[1].probabilities(), np.ndarray)


def test_no_number_is_infinite():
    assert returned(np.dtype("f4"), np.array([1e300, -1e300])).tolist() == [np.finfo("f4").max, np.finfo("f4").min]
