"""Points: values of all magnitudes in all containers that the estimators accept, and some that they refuse."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from fuzz.chance import generator_seeds, happens, mostly

LARGEST = {"float32": float(np.finfo(np.float32).max), "int": 2.0**53}
DENSE = ("float64", "float32", "int", "bool", "list", "frame")
SPARSE = ("csr", "csc", "coo", "csr_matrix")
SHAPES = ("normal", "clusters", "few", "constant", "identical", "outlier", "offset", "zeros", "ramp")


@dataclass(frozen=True)
class Points:
    """A table of numbers, and the container in which it is given."""

    values: np.ndarray
    kind: str = "float64"

    @property
    def source(self):
        """Python that makes these points, with nothing rounded."""
        rows = self._rows()
        if self.kind == "list":
            return rows
        if self.kind == "frame":
            names = [f"f{i}" for i in range(self.values.shape[1])]
            return f"pd.DataFrame({rows}, columns={names})"
        if self.kind in SPARSE:
            name = self.kind if self.kind.endswith("matrix") else f"{self.kind}_array"
            return f"sparse.{name}(np.array({rows}, float))"
        kinds = {"float64": "float", "float32": "np.float32", "int": "int", "bool": "bool"}
        return f"np.array({rows}, {kinds[self.kind]})"

    def _rows(self):
        # A cast warns when a number is too large; the wild numbers are meant.
        with np.errstate(all="ignore"):
            if self.kind == "int":
                limit = LARGEST["int"]
                return str(np.clip(np.nan_to_num(self.values), -limit, limit).astype(int).tolist())
            if self.kind == "bool":
                return str((self.values > 0).tolist())
        return str(self.values.tolist())

    def take(self, rows):
        """Some of the points."""
        return replace(self, values=self.values[rows])

    def columns(self, columns):
        """Some of the features."""
        return replace(self, values=self.values[:, columns])


def shaped(shape, n, d, rng):
    """Points of about unit size with a certain shape."""
    X = rng.normal(size=(n, d))
    if shape == "clusters":
        return X * 0.3 + 3 * rng.integers(0, 3, (n, 1))
    if shape == "few":
        return rng.integers(-2, 3, (n, d)).astype(float)
    if shape == "constant" and d:
        X[:, rng.integers(d)] = 1.5
    if shape == "identical":
        return np.tile(X[:1], (n, 1))
    if shape == "outlier":
        X[rng.integers(n)] *= 2.0 ** rng.integers(10, 500)
    if shape == "offset":
        return X * 2.0 ** -rng.integers(10, 45) + 3.0
    if shape == "zeros":
        return np.where(rng.random((n, d)) < 0.7, rng.choice([0.0, -0.0], (n, d)), X)
    if shape == "ramp":
        return np.arange(n, dtype=float)[:, None] * 2.0 ** np.arange(d)
    return X


@st.composite
def exponents(draw, d):
    """Powers of two for the columns: mostly 0, else one for all columns, or one for each."""
    if not happens(draw, 50):
        return np.zeros(d, int)
    wild = st.integers(-1070, 1020) if happens(draw, 60) else st.integers(-60, 60)
    if happens(draw, 40):
        return np.array([draw(wild) for _ in range(d)], int)
    return np.full(d, draw(wild))


def scaled(values, powers):
    """Values times powers of two, kept below infinity."""
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(np.ldexp(values, powers), -1.7e308, 1.7e308)


@st.composite
def spoiled(draw, values):
    """Values of which one may be NaN or infinite."""
    if values.size and happens(draw, 3):
        row, column = draw(st.integers(0, len(values) - 1)), draw(st.integers(0, values.shape[1] - 1))
        values = values.copy()
        values[row, column] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return values


def fitting(values, kind):
    """Values within the range of the container, because most cases should be accepted."""
    if kind == "float32":
        return np.clip(values, -LARGEST[kind], LARGEST[kind])
    return values


@st.composite
def points(draw, max_rows=60, sparse=True):
    """Points to fit."""
    n = draw(st.integers(2, 14)) if happens(draw, 60) else draw(st.integers(1, max_rows))
    d = mostly(draw, [1, 2, 2, 3, 4], [0, 5, 6, 12], percent=15)
    kind = draw(st.sampled_from(DENSE)) if happens(draw, 40) else "float64"
    if sparse and happens(draw, 12):
        kind = draw(st.sampled_from(SPARSE))
    rng = np.random.default_rng(draw(generator_seeds()))
    values = shaped(draw(st.sampled_from(SHAPES)), n, d, rng)
    if happens(draw, 20):
        values = values[rng.integers(n, size=n)]  # duplicates
    values = draw(spoiled(scaled(values, draw(exponents(d)))))
    return Points(fitting(values, kind), kind)


@st.composite
def queries(draw, training):
    """New points: copies of training points, points near them, and points of any magnitude."""
    values, d = training.values, training.values.shape[1]
    rng = np.random.default_rng(draw(generator_seeds()))
    form = draw(st.sampled_from(["near", "far", "huge", "zero", "tiny", "mixed"]))
    some = np.nan_to_num(values[rng.integers(len(values), size=draw(st.integers(1, 5)))], posinf=1.0, neginf=-1.0)
    with np.errstate(all="ignore"):
        if form == "near":
            some = some + rng.normal(size=some.shape) * np.abs(some)
        elif form == "far":
            some = some * 2.0 ** draw(st.integers(-200, 200))
        elif form == "huge":
            some = np.copysign(draw(st.sampled_from([1e154, 1e300, 1.7e308])), rng.normal(size=some.shape))
        elif form in ("zero", "tiny"):
            some = np.full(some.shape, -0.0 if form == "zero" else 5e-324)
        else:
            some = np.ldexp(rng.normal(size=some.shape), rng.integers(-1070, 1020, some.shape))
        some = np.clip(np.nan_to_num(some), -1.7e308, 1.7e308)
    if happens(draw, 2):
        some = some[:, : max(d - 1, 0)]
    some = draw(spoiled(some))
    kind = training.kind if not happens(draw, 15) else mostly(draw, ["float64", "list"], ["csr", "float32"])
    return Points(fitting(some, kind), kind)


@st.composite
def graphs(draw, n):
    """A square matrix of affinities or distances, mostly symmetric and not negative."""
    rng = np.random.default_rng(draw(generator_seeds()))
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.2, 0.6, 1.0]))), 1)
    values = scaled(upper + upper.T, draw(exponents(n)).max(initial=0))
    if happens(draw, 5):
        values = values - np.tril(values) * draw(st.sampled_from([0.5, 2.0]))  # not symmetric, or negative
    return Points(draw(spoiled(values)), draw(st.sampled_from(["csr", "csr", "float64", "csc", "coo", "list"])))
