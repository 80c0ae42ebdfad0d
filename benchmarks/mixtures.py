"""Mixtures of covariances: fits beside a grid search for an SVC, a large fit step by step, and prediction."""

import time
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.harness import Row, console, images, peak_megabytes, seconds, show
from coxfield import LGCPClassifier
from coxfield.datasets import DatasetUnavailableError
from coxfield.engine.class_sums import class_sums
from coxfield.engine.store import store_bound
from coxfield.kernels.protocol import PerClass
from coxfield.selection.mixture import learn, loo_members
from coxfield_paper.studies.data_sets import load

STEPS = {  # what is timed in a large fit: where the function is looked up, and its name
    "densities of all points": (loo_members, "log_others_of"),
    "leave-one-out sums": (loo_members, "ladder_layers"),
    "weights": (learn.Problem, "solve"),
}


def training_sets(quick):
    """Name, points and classes of the sets on which fits are compared."""
    yield ("digits", *load_digits(return_X_y=True))
    for name in () if quick else ("satimage", "pendigits"):
        try:
            yield (name, *load(name)[:2])
        except DatasetUnavailableError as error:
            console.print(f"{name} is left out: {error}")


def fits(quick):
    """One fit of the default beside an SVC with a 5 x 5 grid by 5-fold cross validation."""
    for name, X, y in training_sets(quick):
        grid = {"svc__C": np.logspace(-1, 3, 5), "svc__gamma": np.logspace(-2, 2, 5) / X.shape[1]}
        search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5)
        ours, theirs = (
            seconds(lambda X=X, y=y: LGCPClassifier().fit(X, y), 1),
            seconds(lambda X=X, y=y, s=search: s.fit(X, y), 1),
        )
        rows = [
            Row("LGCPClassifier().fit", f"{ours:.2f} s"),
            Row("SVC, 5 x 5 grid, 5 folds", f"{theirs:.2f} s"),
            Row("mixture / grid search", f"{ours / theirs:.2f}", "at most 1"),
        ]
        show(f"Fit, {name}, {len(y):,} x {X.shape[1]}", rows)


@contextmanager
def clocks(steps):
    """Take the time of some functions; a dict of seconds by name."""
    taken = dict.fromkeys(steps, 0.0)

    def timed(name, function):
        def run(*args, **options):
            start = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                taken[name] += time.perf_counter() - start

        return run

    with ExitStack() as stack:
        for name, (home, function) in steps.items():
            stack.enter_context(mock.patch.object(home, function, timed(name, getattr(home, function))))
        yield taken


def large_fit(quick):
    """The default beside the paper's rule on MNIST, with the share of each step and the peak memory."""
    n, n_test = (4000, 500) if quick else (60_000, 10_000)
    X, y, Z = images(n, n_test, np.float32)
    clf = LGCPClassifier()
    with clocks(STEPS) as taken:
        ours = seconds(lambda: clf.fit(X, y), 1)
    paper = seconds(lambda: LGCPClassifier(selection="loo_error").fit(X, y), 1)
    memory = peak_megabytes(lambda: LGCPClassifier().fit(X, y)) if quick else _resident()
    taken["representations, arranging and the rest"] = ours - sum(taken.values())
    rows = [Row(f"step: {name}", f"{spent:.1f} s, {100 * spent / ours:.0f} %") for name, spent in taken.items()]
    rows += [
        Row("LGCPClassifier().fit", f"{ours:.1f} s"),
        Row('LGCPClassifier(selection="loo_error").fit', f"{paper:.1f} s"),
        Row("mixture / loo_error", f"{ours / paper:.2f}", "at most 6"),
        Row("peak memory of the process" if not quick else "peak extra memory", f"{memory:.0f} MB", "below 4000 MB"),
    ]
    show(f"Fit, MNIST, {n:,} x 784, float32", rows)
    prediction(clf, Z)


def _resident():
    """The most memory that this process has had, in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def prediction(clf, Z):
    """A prediction by the mixture beside one class-sum pass per representation in use."""
    clf.predict_proba(Z[:10])
    ours = seconds(lambda: clf.predict_proba(Z), 2)
    passes, members = 0.0, len(clf.mixture_["weight"])
    for ladder in clf.kernel_.ladders:
        alone = ladder.covariance
        store = store_bound([alone.bind(ladder.represent(clf.X_fit_))], clf.y_fit_, PerClass.shared_by(alone, 10))
        passes += seconds(lambda s=store, r=ladder: class_sums(s, r.represent(Z)), 2)
    rows = [
        Row("predict_proba of the mixture", f"{ours:.2f} s"),
        Row(f"one pass for each of {len(clf.kernel_.ladders)} representations", f"{passes:.2f} s"),
        Row(f"ratio, {members} members", f"{ours / passes:.2f}", f"at most {1 + 0.35 * members:.2f}"),
    ]
    show(f"Prediction of {len(Z):,} from {len(clf.y_fit_):,} points", rows)


def run(quick=False):
    fits(quick)
    X, y = load_digits(return_X_y=True)
    prediction(LGCPClassifier().fit(X, y), np.repeat(X, 5, axis=0))
    large_fit(quick)


if __name__ == "__main__":
    run()
