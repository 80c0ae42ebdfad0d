import numpy as np

from coxfield.dask.plan import Plan, Results, each_chunk
from coxfield.engine.class_sums import ClassSums, Scores


def results(n_classes=3, here=False, size=1.0):
    values = size * np.random.default_rng(0).random((5, n_classes))
    scores = Scores(np.zeros((1, n_classes)), ClassSums(values, np.log(values)))
    plan = Plan()
    return scores, Results(plan, [plan.value("scores", scores)], (5,), n_classes, np.dtype("f4"), here=here)


def test_what_is_asked_of_scores():
    scores, found = results()
    assert found.decisions.compute().tolist() == scores.decisions.tolist()
    for name in ("values", "relative", "log_probabilities"):
        lazy = getattr(found, name)
        assert lazy.dtype == np.float32
        np.testing.assert_array_equal(lazy.compute(), getattr(scores, name).astype("f4"))


def test_a_function_of_each_chunk_has_the_name_of_its_step():
    scores, found = results()
    lazy = each_chunk("predict-proba", np.exp, found.log_probabilities, np.float32)
    assert lazy.name.startswith("lgcp-predict-proba-")
    np.testing.assert_array_equal(lazy.compute(), np.exp(scores.log_probabilities.astype("f4")))
    assert each_chunk("x", np.exp, np.zeros(2), float).tolist() == [1, 1]


def test_results_may_be_computed_at_once():
    assert isinstance(results(here=True)[1].log_probabilities, np.ndarray)


def test_no_number_is_infinite():
    assert results(size=1e300)[1].values.compute().max() == np.finfo("f4").max
