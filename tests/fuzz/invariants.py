"""What must hold in every case: a refusal in one sentence, or finite probabilities, in bounded time and memory."""

import resource
import time
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from coxfield import LGCPClassifier
from coxfield.progress import SlowWarning
from fuzz.cases import evaluate
from fuzz.faults import BrokenError, check_labels, check_numbers, check_probabilities
from fuzz.powers import check_label_quality, check_live_data, check_reasons, check_sets
from fuzz.refusals import place, refusal

SECONDS = 10.0  # in silence
ANNOUNCED = 60.0  # after a warning that says how long it will take
MEGABYTES = 500


@dataclass(frozen=True)
class Outcome:
    """How a case ended: "fitted", "refused by ours", "refused by scikit-learn", "refused by kernel", or "FAILED"."""

    kind: str
    key: str = ""
    """For a failure, the same for all cases with the same bug; for a refusal, its sentence."""
    detail: str = ""

    @property
    def failed(self):
        """Whether an invariant does not hold."""
        return self.kind == "FAILED"


@contextmanager
def listening():
    """All RuntimeWarnings and SlowWarnings in the block, each with the line of the package that was running."""
    heard = {RuntimeWarning: [], SlowWarning: []}

    def hear(message, category, *_):
        for kind, found in heard.items():
            if issubclass(category, kind):
                found.append((str(message), place(traceback.extract_stack())))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = hear
        yield heard


class Longest:
    """A clock for calls, as a context: the longest counts."""

    seconds = 0.0

    def __enter__(self):
        self._start = time.process_time()  # of this process: other programs may be busy too

    def __exit__(self, *_):
        self.seconds = max(self.seconds, time.process_time() - self._start)


def examine(case):
    """Run a case and compare it with the invariants."""
    call, before = Longest(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with listening() as heard:
        outcome = _ended(case, call)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if outcome.failed:
        return outcome
    if heard[RuntimeWarning]:
        message, where = heard[RuntimeWarning][0]
        return Outcome("FAILED", f"RuntimeWarning at {where}", message)
    if call.seconds > (ANNOUNCED if heard[SlowWarning] else SECONDS):
        return Outcome(
            "FAILED", f"slow: {case.estimator} {case.options.get('inference', '')}", f"{call.seconds:.0f} seconds"
        )
    if grown > MEGABYTES:
        return Outcome("FAILED", f"large: {case.estimator}", f"{grown:.0f} MB")
    return outcome


def _ended(case, call):
    """The outcome of a case, without time, memory and warnings."""
    X, y = evaluate(case.X.source), None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas, when it makes the labels
            y, asked = evaluate(case.y.source), [evaluate(query.source) for query in case.queries]
        estimator = evaluate(case.constructor)
    except Exception:  # a constructor of pandas or of scikit-learn's kernels refuses, before the package is asked
        return Outcome("refused by scikit-learn", "not a case")
    try:
        weighted = {} if case.weights is None else {"sample_weight": np.array(case.weights)}
        with call:
            estimator.fit(X, y, **weighted)
    except Exception as error:
        return _refused(error)
    return _asked(estimator, X, asked, call)


def _refused(error, step="fit"):
    found = refusal(error)
    if found.fault:
        return Outcome(
            "FAILED", f"{type(error).__name__} ({found.fault}) at {found.where}", f"{step}: {found.sentence}"
        )
    return Outcome(f"refused by {found.who}", found.sentence)


def _asked(estimator, X, asked, call):
    """Check what a fitted estimator says."""
    questions = [("training", lambda: check_training(estimator))]
    questions += [("the training points", lambda: check_queries(estimator, X))]
    questions += [("queries", lambda query=query: check_queries(estimator, query)) for query in asked]
    if isinstance(estimator, LGCPClassifier):
        questions += [("live data", lambda: check_live_data(estimator))]
    for step, check in questions:
        try:
            with call:
                check()
        except BrokenError as broken:
            return Outcome("FAILED", f"{type(estimator).__name__} {step}: {broken}", "")
        except Exception as error:  # a query may be refused, like data; and too few rows may be left
            outcome = _refused(error, step)
            if outcome.failed or step not in ("queries", "live data"):
                return outcome
    return Outcome("fitted")


def check_training(estimator):
    """What is said about the training points without asking about queries."""
    if hasattr(estimator, "loo_predict_proba"):
        check_probabilities(estimator.loo_predict_proba(), "loo_predict_proba")
        check_labels(estimator, estimator.loo_predict(), "loo_predict")
        check_numbers(estimator.loo_class_scores(), "loo_class_scores")
    if isinstance(estimator, LGCPClassifier):
        check_label_quality(estimator)
    if hasattr(estimator, "transduction_"):
        check_labels(estimator, estimator.transduction_, "transduction_")
        check_probabilities(estimator.label_distributions_, "label_distributions_")
    mixes = getattr(estimator, "inference_", "") == "mixture"
    if mixes and np.isin(estimator.suggest(), estimator._few_labels.rows).any():
        raise BrokenError("suggest names a labelled row")


def check_queries(estimator, X):
    """What is said about queries. A graph has none."""
    if sparse.issparse(X) and not estimator.__sklearn_tags__().input_tags.sparse:
        return
    probabilities = estimator.predict_proba(X)
    check_probabilities(probabilities, "predict_proba")
    check_labels(estimator, estimator.predict(X), "predict")
    if probabilities.shape != (len(estimator.predict(X)), len(estimator.classes_)):
        raise BrokenError("predict_proba has a wrong shape")
    if hasattr(estimator, "decision_function"):
        check_numbers(estimator.decision_function(X), "decision_function")
    if isinstance(estimator, LGCPClassifier):
        check_reasons(estimator, X)
        check_sets(estimator, X)
