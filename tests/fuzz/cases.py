"""One case: an estimator with options, the data to fit, and the queries. It can be printed as Python and run again."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process import kernels as sklearn_kernels

from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier
from coxfield.baselines import HarmonicFunctions, ParzenClassifier
from coxfield.kernels import Member
from fuzz import options as choose
from fuzz.chance import happens
from fuzz.data import Points, graphs, points, queries
from fuzz.kernels import Misbehaving
from fuzz.labels import Labels, labels, partial_labels
from fuzz.weights import weights

ESTIMATORS = {
    "lgcp": LGCPClassifier,
    "slgcp": SLGCPClassifier,
    "permanental": PermanentalClassifier,
    "parzen": ParzenClassifier,
    "harmonic": HarmonicFunctions,
}
SEMI_SUPERVISED = ("slgcp", "harmonic")
#: Permanents take time that is exponential, and harmonic functions cubic, in the number of points.
MOST_ROWS = {"lgcp": 60, "slgcp": 40, "permanental": 32, "parzen": 60, "harmonic": 30}
#: What the source of a case may name.
NAMES = {
    **{name: getattr(sklearn_kernels, name) for name in sklearn_kernels.__dict__ if name[0].isupper()},
    "np": np,
    "pd": pd,
    "sparse": sparse,
    "nan": np.nan,
    "inf": np.inf,
    "Member": Member,
    "Misbehaving": Misbehaving,
    **{estimator.__name__: estimator for estimator in ESTIMATORS.values()},
}


@dataclass(frozen=True)
class Case:
    """What a user does: fit an estimator, then ask about queries."""

    estimator: str
    X: Points
    y: Labels
    options: dict[str, str] = field(default_factory=dict)
    weights: tuple[float, ...] | None = None
    queries: tuple[Points, ...] = ()

    @property
    def constructor(self):
        """Source of the estimator."""
        words = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{ESTIMATORS[self.estimator].__name__}({words})"

    @property
    def source(self):
        """The case as Python, to be copied into a shell."""
        weighted = "" if self.weights is None else f", sample_weight={list(self.weights)}"
        lines = [f"X = {self.X.source}", f"y = {self.y.source}", f"clf = {self.constructor}.fit(X, y{weighted})"]
        lines.append("clf.predict_proba(X)")
        return "\n".join([*lines, *(f"clf.predict_proba({query.source})" for query in self.queries)])

    @property
    def size(self):
        """How long the source is: less is easier to read."""
        return len(self.source)

    def take(self, rows):
        """The case with some of its rows. A graph loses the same columns."""
        few = self.X.take(rows)
        if self.is_graph:
            few = few.columns(rows)
        kept = None if self.weights is None else tuple(self.weights[row] for row in rows if row < len(self.weights))
        known = self.y.take([row for row in rows if row < len(self.y.names)])
        return replace(self, X=few, y=known, weights=kept)

    @property
    def is_graph(self):
        """Whether X is a graph of the points."""
        return "precomputed" in self.options.get("kernel", "")


def evaluate(source):
    """The value of a piece of source."""
    return eval(source, dict(NAMES))


@st.composite
def cases(draw, estimator):
    """A case of one estimator."""
    semi = estimator in SEMI_SUPERVISED
    X = draw(points(max_rows=MOST_ROWS[estimator], sparse=estimator in ("lgcp", "slgcp") or happens(draw, 3)))
    n, d = X.values.shape
    graph = estimator == "slgcp" and happens(draw, 8)
    if graph:
        X = draw(graphs(n))
    y, mark = draw(partial_labels(n)) if semi else (draw(labels(n)), None)
    options = draw(_options(estimator, [name for name in y.classes if name != mark] or ["0"], d, graph))
    if semi and (mark != "-1" or happens(draw, 10)) and not happens(draw, 5):
        options["missing_label"] = mark
    given = draw(weights(n)) if estimator == "lgcp" else None
    asked = () if graph else tuple(draw(queries(X)) for _ in range(draw(st.integers(0, 2))))
    return Case(estimator, X, y, options, given, asked)


def _options(estimator, classes, d, graph):
    if estimator in ("lgcp", "permanental"):
        return getattr(choose, estimator)(classes, d)
    return choose.slgcp(classes, d, graph) if estimator == "slgcp" else getattr(choose, estimator)()
