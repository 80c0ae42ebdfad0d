"""Models for other programs: a fitted `LGCPClassifier` as an ONNX graph.

The graph computes what `predict` and `predict_proba` do: representations, squared distances by one product of matrices
each, kernels, class sums, densities of the queries, softmax. It computes in double precision, whatever the precision
of its input, and takes sums relative to the nearest point, so nothing underflows far from the data.

All that is read from a model is read in `_Parts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process import kernels
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from coxfield import LGCPClassifier, __version__
from coxfield.estimators.scored import scores_in_parts
from coxfield.estimators.tables import FARTHEST, TableColumns
from coxfield.kernels.mixture import Mixture, inverse
from coxfield.utils.whole_files import whole_file

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError:
    raise ImportError("export to ONNX needs onnx: pip install 'coxfield[onnx]'") from None

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

OPSETS = {"": 18, "ai.onnx.ml": 3}
IR_VERSION = 9
TRIED = 16  # training points that are predicted before anything is written
TOLERABLE = 1e-4  # difference of a probability; what is missing changes more, and single precision less
LARGEST = 1e300  # of a class sum, as in the library
TINY = 1e-300  # in place of 0 in a division, where nothing is left to solve


class ExportError(ValueError):
    """A model that ONNX cannot express, or that this export does not know."""


def export(model: LGCPClassifier, path: Path) -> None:
    """Write a fitted classifier as an ONNX file, whole or not at all.

    Parameters
    ----------
    model : LGCPClassifier
        Fitted, on NumPy arrays or a table. Its kernels are RBF, Matern with nu 0.5, 1.5, 2.5 or infinite, or
        RationalQuadratic, times constants, on the representations of the default bank, on scalers or on PCA.
    path : Path
        An existing file is replaced.

    Raises
    ------
    ExportError
        The model has a part that cannot be exported; the sentence names it.

    Notes
    -----
    The outputs are ``label``, and ``probabilities`` of shape (n, n_classes) in the order of `classes_`. A model of
    numbers has one input ``X`` of shape (n, n_features), in the precision it was fitted in. A model of a table has one
    input of shape (n, 1) per column, under its name: numbers, with NaN for blanks, or texts, with "" for blanks.
    """
    content = graph(model).SerializeToString()
    with whole_file(path) as stream:
        stream.write(content)


def graph(model: LGCPClassifier) -> Any:
    """The model as an ONNX graph; see `export`."""
    check_is_fitted(model)
    parts = _Parts.of(model)
    _check(model, parts)
    builder = _Builder()
    X, inputs = _inputs(builder, model, parts)
    scores = _scores(builder, X, parts)
    probabilities = builder.add("Softmax", [scores], axis=1)
    precision = np.dtype(parts.X.dtype)
    tensor = helper.np_dtype_to_tensor_dtype(precision)
    builder.add("Cast", [probabilities], to=tensor, out="probabilities")
    code = builder.add("ArgMax", [scores], axis=1, keepdims=0)
    label_type = _label(builder, code, model.classes_)
    outputs = [
        helper.make_tensor_value_info("label", label_type, ["n"]),
        helper.make_tensor_value_info("probabilities", tensor, ["n", len(model.classes_)]),
    ]
    made = helper.make_graph(builder.nodes, "coxfield", inputs, outputs, builder.constants)
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    proto = helper.make_model(
        made, opset_imports=opsets, ir_version=IR_VERSION, producer_name=f"coxfield {__version__}"
    )
    try:
        onnx.checker.check_model(proto)
    except ValueError as error:  # protobuf holds at most 2 GB
        raise ExportError(f"the model is too large for an ONNX file ({' '.join(str(error).split())})") from None
    return proto


def _check(model: LGCPClassifier, parts: _Parts) -> None:
    """Compare the probabilities of some training points with those of the model: a part may be missing here."""
    builder, points = _Builder(), parts.X[np.linspace(0, len(parts.X) - 1, TRIED).astype(int)].astype(float)
    builder.add("Softmax", [_scores(builder, "Z", parts)], axis=1, out="P")
    ends = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n", "k"]) for name in "ZP"]
    made = helper.make_graph(builder.nodes, "trial", ends[:1], ends[1:], builder.constants)
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSETS[""])], ir_version=IR_VERSION)
    (found,) = ReferenceEvaluator(proto).run(None, {"Z": points})
    points = points.astype(parts.X.dtype)
    expected = np.exp(scores_in_parts(model._store, model._covariances, model._means, points).log_probabilities)
    if not np.allclose(found, expected, atol=TOLERABLE):
        raise ExportError(
            "the model has a part that this export does not know, because it predicts other probabilities: use "
            "coxfield serve, or fit the model with a kernel and selection=None"
        )


# What is read from a model.


@dataclass(frozen=True)
class _Term:
    """w k(t(x), t(x')) / ((q(x) + floor) (q(x') + floor))^alpha, for some classes."""

    kernel: Any
    weight: float
    alpha: float = 0.0
    floor: float = 0.0
    log_divisor: NDArray | None = None
    """log (q + floor)^alpha of the training points, as the model has it; None without a density."""
    classes: NDArray | None = None
    """Mask of the classes that have it; None for all."""
    points: NDArray | None = None
    """Weights of the training points; None if each counts as it does elsewhere."""


@dataclass(frozen=True)
class _Parts:
    """A model as terms on representations."""

    X: NDArray
    weights: NDArray
    """Of each training point in each class, shape (n, n_classes)."""
    prior: NDArray
    """mu_i + C_i(0) / 2, up to what all classes share."""
    ladders: list[tuple[Any, list[_Term]]]
    """A fitted transformer, or None, and the terms on it."""
    reference: NDArray
    """Points of which the densities of new points are sums; X itself if they are the same."""
    counts: NDArray

    @classmethod
    def of(cls, model: LGCPClassifier) -> _Parts:
        X = model.X_fit_
        if not isinstance(X, np.ndarray):
            raise ExportError("only models of dense NumPy arrays can be exported: fit the model to a NumPy array")
        weights = np.eye(len(model.classes_))[model.y_fit_]
        if model._weights is not None:
            weights *= np.asarray(model._weights, float)[:, None]
        kernel, mean = model.kernel_, np.asarray(model.mean_, float)
        if isinstance(kernel, Mixture):
            counts = np.ones(kernel.X.shape[0]) if kernel.counts is None else np.asarray(kernel.counts, float)
            reference = X if np.array_equal(kernel.X, X) else np.asarray(kernel.X)
            points = kernel.bind_reference() if reference is X else kernel.bind(X)
            known = zip(kernel.ladders, points.log_densities, strict=True)
            ladders = [(ladder.transform, list(_terms(ladder, log_q))) for ladder, log_q in known]
            return cls(X, weights, mean, ladders, reference, counts)
        each = [kernel[label] for label in model.classes_.tolist()] if isinstance(kernel, dict) else [kernel]
        terms = [
            _Term(one, 1.0, classes=np.arange(len(each)) == c if len(each) > 1 else None) for c, one in enumerate(each)
        ]
        halves = np.array([_variance(one) / 2 for one in each])
        return cls(X, weights, mean + halves, [(None, terms)], X, np.ones(len(X)))


def _terms(ladder: Any, log_q: NDArray) -> Iterator[_Term]:
    free = getattr(ladder, "point_weights", None)
    if free is not None:
        for f, points in enumerate(free):
            yield _Term(ladder.kernel(f), 1.0, points=np.asarray(points, float))
        return
    for f, a in ladder.terms:
        floor = float(ladder.one * ladder.floors[a])
        divisor = ladder.log_divisor(a, log_q[f]) if ladder.alphas[a] else None
        yield _Term(ladder.kernel(f), float(ladder.weights[f, a]), float(ladder.alphas[a]), floor, divisor)


def _factors(kernel: Any) -> tuple[float, Any]:
    """A product of constants with one stationary kernel: the constant, and that kernel."""
    if isinstance(kernel, kernels.Product):
        (one, first), (two, second) = _factors(kernel.k1), _factors(kernel.k2)
        if first is None or second is None:
            return one * two, second if first is None else first
    elif isinstance(kernel, kernels.ConstantKernel):
        return float(kernel.constant_value), None
    elif type(kernel) in (kernels.RBF, kernels.RationalQuadratic) or (
        type(kernel) is kernels.Matern and kernel.nu in (0.5, 1.5, 2.5, np.inf)
    ):
        return 1.0, kernel
    raise ExportError(
        f"the kernel {kernel!r} cannot be exported: only RBF, Matern with nu of 0.5, 1.5, 2.5 or inf, and "
        "RationalQuadratic, times constants, can be"
    )


def _variance(kernel: Any) -> float:
    return _factors(kernel)[0]


# The graph.


@dataclass
class _Builder:
    """Nodes and constants of a graph. What is asked for twice is computed once."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    known: dict[Any, str] = field(default_factory=dict)

    def add(self, op: str, inputs: Sequence[str], *, out: str | None = None, domain: str = "", **attributes) -> str:
        """A node with one output, whose name is returned."""
        key = (op, tuple(inputs), str(sorted(attributes.items())))
        if out is None and key in self.known:
            return self.known[key]
        name = out or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], domain=domain, **attributes))
        self.known.setdefault(key, name)
        return name

    def const(self, values: Any) -> str:
        """A constant."""
        array = np.asarray(values)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.known:
            self.known[key] = f"constant_{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, self.known[key]))
        return self.known[key]

    def number(self, value: float) -> str:
        """A constant of double precision."""
        return self.const(np.float64(value))

    def wide(self, values: NDArray) -> str:
        """A constant in double precision, which is stored in its own."""
        found = self.const(values)
        return found if values.dtype == np.float64 else self.double(found)

    def double(self, name: str) -> str:
        return self.add("Cast", [name], to=TensorProto.DOUBLE)

    def row_sum(self, name: str) -> str:
        return self.add("ReduceSum", [name, self.const(np.array([1]))], keepdims=1)


def _scores(g: _Builder, X: str, parts: _Parts) -> str:
    """F of eq. activationFunction, up to a constant per row."""
    same = parts.reference is parts.X
    total = g.const(parts.prior[None] if parts.prior.ndim == 1 else parts.prior)
    for transform, terms in parts.ladders:
        points, Z = _represented(transform, parts.X), _represent(g, X, transform, parts.X.shape[1])
        reference = points if same else _represented(transform, parts.reference)
        for term in terms:
            total = g.add("Add", [total, _term(g, Z, term, points, reference, same, parts)])
    # Zeros of the right shape: without terms, the scores are the prior of every row.
    none = g.add("Mul", [g.row_sum(X), g.number(0.0)])
    return g.add("Add", [total, none])


def _represented(transform: Any, X: NDArray) -> NDArray:
    with np.errstate(over="ignore", invalid="ignore"):
        return X if transform is None else np.asarray(transform.transform(X))


def _term(g: _Builder, Z: str, term: _Term, points: NDArray, reference: NDArray, same: bool, parts: _Parts) -> str:
    """What a term adds to the scores, shape (n, n_classes)."""
    weights = parts.weights if term.classes is None else parts.weights * term.classes
    weights = weights if term.points is None else weights * term.points[:, None]
    log_variance = float(np.log(_variance(term.kernel)))
    if term.log_divisor is None:
        top, values = _relative(g, Z, term.kernel, points)
        sums = g.add("MatMul", [values, g.const(weights)])
        scale = g.add("Exp", [g.add("Add", [top, g.number(log_variance)])])
        return _limited(g, g.add("Mul", [sums, scale]), term.weight)
    divided = weights * inverse(term.log_divisor)[:, None]
    top, values = _relative(g, Z, term.kernel, points)
    over, of = (top, values) if same else _relative(g, Z, term.kernel, reference)
    counted = g.add("MatMul", [of, g.const(parts.counts[:, None])])
    log_q = g.add("Add", [g.add("Add", [over, g.add("Log", [counted])]), g.number(log_variance)])
    if term.floor:
        log_floor = g.number(float(np.log(term.floor)))
        larger = g.add("Max", [log_q, log_floor])
        less = g.add("Neg", [g.add("Abs", [g.add("Sub", [log_q, log_floor])])])
        log_q = g.add("Add", [larger, g.add("Log", [g.add("Add", [g.add("Exp", [less]), g.number(1.0)])])])
    divisor = g.add("Mul", [log_q, g.number(term.alpha)])
    scale = g.add("Exp", [g.add("Sub", [g.add("Add", [top, g.number(log_variance)]), divisor])])
    sums = g.add("MatMul", [values, g.const(divided)])
    return _limited(g, g.add("Mul", [sums, scale]), term.weight)


def _limited(g: _Builder, sums: str, weight: float) -> str:
    return g.add("Min", [g.add("Mul", [sums, g.number(weight)]), g.number(LARGEST)])


def _relative(g: _Builder, Z: str, kernel: Any, points: NDArray) -> tuple[str, str]:
    """The largest log c of each row, and c relative to it: kernel values that do not underflow."""
    logs = _log_profile(g, Z, kernel, points)
    top = g.add("ReduceMax", [logs, g.const(np.array([1]))], keepdims=1)
    return top, g.add("Exp", [g.add("Sub", [logs, top])])


def _log_profile(g: _Builder, Z: str, kernel: Any, points: NDArray) -> str:
    """log of the kernel without its constant, at all pairs of a query and a point."""
    _, base = _factors(kernel)
    if base is None:  # a constant alone
        raise ExportError(f"the kernel {kernel!r} is a constant, which cannot be exported")
    length = np.broadcast_to(np.asarray(base.length_scale, float), points.shape[1])
    shape = length / length[0]  # scales that differ by a factor share their distances
    d2 = g.add("Mul", [_sq_distances(g, Z, points, shape), g.number(1 / length[0] ** 2)])
    if isinstance(base, kernels.RationalQuadratic):
        ratio = g.add("Mul", [d2, g.number(0.5 / base.alpha)])
        return g.add("Mul", [g.add("Log", [g.add("Add", [ratio, g.number(1.0)])]), g.number(-base.alpha)])
    if not isinstance(base, kernels.Matern) or base.nu == np.inf:
        return g.add("Mul", [d2, g.number(-0.5)])
    t = g.add("Sqrt", [g.add("Mul", [d2, g.number(2 * base.nu)])])
    if base.nu == 0.5:
        return g.add("Neg", [t])
    factor = t
    if base.nu == 2.5:
        factor = g.add("Add", [t, g.add("Mul", [g.add("Mul", [t, t]), g.number(1 / 3)])])
    return g.add("Sub", [g.add("Log", [g.add("Add", [factor, g.number(1.0)])]), t])


def _sq_distances(g: _Builder, Z: str, points: NDArray, shape: NDArray) -> str:
    """Squared distances of all pairs, by one product of matrices; the mean of the points is moved to the origin."""
    even = bool((shape == 1).all())
    centre = points.mean(axis=0, dtype=float)
    near = points - centre.astype(points.dtype)
    moved = g.add("Sub", [Z, g.const(centre.astype(points.dtype).astype(float))])
    if not even:
        near, moved = near / shape, g.add("Div", [moved, g.const(shape)])
    held = g.wide(np.ascontiguousarray(near.T))
    own = g.row_sum(g.add("Mul", [moved, moved]))
    others = np.einsum("jd,jd->j", near, near, dtype=float)[None]
    product = g.add("Mul", [g.add("MatMul", [moved, held]), g.number(-2.0)])
    return g.add("Max", [g.add("Add", [g.add("Add", [product, own]), g.const(others)]), g.number(0.0)])


# Representations.


def _represent(g: _Builder, X: str, transform: Any, width: int) -> str:
    """Points in a representation; `width` is the number of columns of X."""
    if transform is None:
        return X
    kind = type(transform).__name__
    if kind == "Transformer":
        return _represent(g, X, transform.fitted, width)
    if isinstance(transform, Pipeline):
        for _, step in transform.steps:
            X = X if step == "passthrough" else _represent(g, X, step, width)
        return X
    if kind == "Beside":
        others = _columns(g, X, transform.first, width)
        if transform.representation is None:
            return others
        Z = _represent(g, _columns(g, X, 0, transform.first), transform.representation, transform.first)
        return g.add("Concat", [Z, others], axis=1) if transform.others else Z
    if kind not in REPRESENTATIONS:
        raise ExportError(
            f"the representation {kind} cannot be exported: only {', '.join(REPRESENTATIONS)} and pipelines of them "
            "can be"
        )
    return REPRESENTATIONS[kind](g, X, transform)


def _columns(g: _Builder, X: str, start: int, stop: int) -> str:
    return g.add("Slice", [X, *(g.const(np.array([value])) for value in (start, stop, 1))])


def _affine(g: _Builder, X: str, origin: Any = None, scale: Any = None, matrix: Any = None) -> str:
    """(X - origin) / scale @ matrix."""
    if origin is not None:
        X = g.add("Sub", [X, g.const(np.asarray(origin, float))])
    if scale is not None:
        X = g.add("Div", [X, g.const(np.asarray(scale, float))])
    return X if matrix is None else g.add("MatMul", [X, g.const(np.asarray(matrix, float))])


def _principal(g: _Builder, X: str, t: Any) -> str:
    scale = np.sqrt(np.maximum(t.explained_variance_, np.finfo(float).eps)) if t.whiten else None
    return _affine(g, _affine(g, X, t.mean_, matrix=t.components_.T), scale=scale)


def _minmax(g: _Builder, X: str, t: Any) -> str:
    if t.clip:
        raise ExportError("a MinMaxScaler that clips cannot be exported: give clip=False")
    return g.add("Add", [_affine(g, X, scale=1 / t.scale_), g.const(np.asarray(t.min_, float))])


def _compressed(g: _Builder, X: str, t: Any) -> str:
    """asinh, by logarithms: onnxruntime has it for single precision only."""
    u = _affine(g, X, t.centre_, t.scale_)
    size = g.add("Abs", [u])
    root = g.add("Sqrt", [g.add("Add", [g.add("Mul", [u, u]), g.number(1.0)])])
    return g.add("Mul", [g.add("Sign", [u]), g.add("Log", [g.add("Add", [size, root])])])


def _ranked(g: _Builder, X: str, t: Any) -> str:
    """Lines between knots: each climbs by its share of what was passed of it."""
    values, scores = np.asarray(t.values_, float), np.asarray(t.scores_, float)
    widths = np.diff(values, axis=0)
    steps = np.where(widths > 0, np.diff(scores, axis=0), 0)
    clipped = g.add("Min", [g.add("Max", [X, g.const(values[0])]), g.const(values[-1])])
    passed = g.add("Sub", [g.add("Unsqueeze", [clipped, g.const(np.array([1]))]), g.const(values[:-1][None])])
    share = g.add("Div", [passed, g.const(np.where(widths > 0, widths, 1)[None])])
    share = g.add("Max", [g.add("Min", [share, g.number(1.0)]), g.number(0.0)])
    climbed = g.add("ReduceSum", [g.add("Mul", [share, g.const(steps[None])]), g.const(np.array([1]))], keepdims=0)
    beyond = g.add("Mul", [g.add("Sub", [X, clipped]), g.const(np.asarray(t.slopes_, float))])
    return g.add("Add", [g.add("Add", [climbed, g.const(scores[0])]), beyond])


REPRESENTATIONS = {
    "StandardScaler": lambda g, X, t: _affine(g, X, t.mean_ if t.with_mean else None, t.scale_),
    "RobustScaler": lambda g, X, t: _affine(
        g, X, t.center_ if t.with_centering else None, t.scale_ if t.with_scaling else None
    ),
    "MinMaxScaler": _minmax,
    "PCA": _principal,
    "Whitening": lambda g, X, t: _affine(g, X, t.origin_, matrix=t.matrix_),
    "Compression": _compressed,
    "NormalScores": _ranked,
}


# Inputs and labels.


def _inputs(g: _Builder, model: LGCPClassifier, parts: _Parts) -> tuple[str, list[Any]]:
    """The points in double precision, and the inputs of the graph."""
    precision = helper.np_dtype_to_tensor_dtype(np.dtype(parts.X.dtype))
    table = getattr(model, "columns_", None)
    if table is None:
        shape = ["n", parts.X.shape[1]]
        return g.double("X"), [helper.make_tensor_value_info("X", precision, shape)]
    inputs, numbers, categories = [], [], []
    for column in table.columns:
        if not column.n_numbers + column.n_categories:
            continue
        name = str(column.name)
        if column.kind == "date":
            raise ExportError(f"column {name!r} is a date, which cannot be exported: give the day as a number")
        kind = precision if column.kind == "number" else TensorProto.STRING
        inputs.append(helper.make_tensor_value_info(name, kind, ["n", 1]))
        made = _number(g, name, column) if column.kind == "number" else _words(g, name, column)
        numbers += [_columns(g, made, 0, column.n_numbers)] if column.n_numbers else []
        categories += [_columns(g, made, column.n_numbers, column.n_numbers + column.n_categories)]
    if numbers:
        numbers = [_filled(g, g.add("Concat", numbers, axis=1), table)]
    return g.add("Concat", [*numbers, *categories], axis=1), inputs


def _filled(g: _Builder, numbers: str, table: TableColumns) -> str:
    """Numbers without blanks, as `TableColumns.filled` has them.

    ONNX cannot solve linear equations. So conjugate gradients solve those of all rows at once: in exact arithmetic as
    many steps as there are numbers are enough, and the ridge keeps the equations so well conditioned that twice as many
    reach rounding.
    """
    blank = g.add("IsNaN", [numbers])
    if table.joint is None:
        filling = np.array([one for column in table.columns for one in column.filling])
        return g.add("Where", [blank, g.const(filling[None]), numbers])
    joint, there = table.joint, g.double(g.add("Not", [blank]))
    centre, scale, covariance = (np.array(each) for each in (joint.centre, joint.scale, joint.covariance))
    z = g.add("Div", [g.add("Sub", [numbers, g.const(centre[None])]), g.const(scale[None])])
    z = g.add("Where", [blank, g.number(0.0), g.add("Clip", [z, g.number(-FARTHEST), g.number(FARTHEST)])])
    ridged = g.const(covariance + joint.ridge * np.eye(len(centre)))
    solved, rest, way = g.add("Sub", [z, z]), z, z
    size = _inner(g, rest, rest)
    for _ in range(2 * len(centre)):
        image = g.add("Mul", [g.add("MatMul", [way, ridged]), there])
        step = g.add("Div", [size, g.add("Max", [_inner(g, way, image), g.number(TINY)])])
        solved = g.add("Add", [solved, g.add("Mul", [step, way])])
        rest = g.add("Sub", [rest, g.add("Mul", [step, image])])
        before, size = size, _inner(g, rest, rest)
        turn = g.add("Div", [size, g.add("Max", [before, g.number(TINY)])])
        way = g.add("Add", [rest, g.add("Mul", [turn, way])])
    said = g.add("Mul", [g.add("MatMul", [solved, g.const(covariance)]), g.const(scale[None])])
    return g.add("Where", [blank, g.add("Add", [said, g.const(centre[None])]), numbers])


def _inner(g: _Builder, one: str, other: str) -> str:
    """The inner products of rows, as a column."""
    return g.add("ReduceSum", [g.add("Mul", [one, other]), g.const(np.array([1]))], keepdims=1)


WORDS = [
    form(word) for word in ("yes", "no", "y", "n", "true", "false", "t", "f") for form in (str, str.upper, str.title)
]


def _words(g: _Builder, name: str, column: Any) -> str:
    """The points of words: each word that the column knows, a blank, and any other word has a row of a matrix."""
    words = [*column.levels] or [word for word in WORDS if _points(column, word) is not None]
    blank, other = _points(column, None), _points(column, "\1 never seen")
    rows = [*(_points(column, word) for word in words), blank, blank if other is None else other]
    codes = list(range(len(words) + 1))
    found = g.add(
        "LabelEncoder",
        [name],
        domain="ai.onnx.ml",
        keys_strings=[*words, ""],
        values_int64s=codes,
        default_int64=len(codes),
    )
    flat = g.add("Reshape", [found, g.const(np.array([-1]))])
    return g.add("Gather", [g.const(np.stack(rows)), flat])


def _points(column: Any, value: Any) -> Any:
    """How the library sees one value of a column, as a row, NaN for a blank number; None if it refuses the value."""
    cell = np.empty((1, 1), object)
    cell[0, 0] = value
    alone = TableColumns((column,))
    try:
        return np.concatenate([alone.numbers(cell), alone.points(cell)[:, column.n_numbers :]], axis=1)[0].astype(float)
    except ValueError:
        return None


def _number(g: _Builder, name: str, column: Any) -> str:
    """The number, and whether it was blank if that counts."""
    values, blank = g.double(name), _points(column, None)
    if not column.n_categories:
        return values
    marked = g.add("Mul", [g.double(g.add("IsNaN", [values])), g.const(blank[None, 1:])])
    return g.add("Concat", [values, marked], axis=1)


def _label(g: _Builder, code: str, classes: NDArray) -> int:
    """The classes of class numbers; the type of the output."""
    if classes.dtype.kind in "US" or all(isinstance(label, str) for label in classes.tolist()):
        texts = [str(label) for label in classes.tolist()]
        numbers = list(range(len(texts)))
        g.add("LabelEncoder", [code], out="label", domain="ai.onnx.ml", keys_int64s=numbers, values_strings=texts)
        return TensorProto.STRING
    if classes.dtype.kind not in "iub":
        raise ExportError(f"classes of type {classes.dtype} cannot be exported: fit the model to integers or text")
    g.add("Gather", [g.const(classes.astype(np.int64)), code], out="label")
    return TensorProto.INT64
