"""What `fit` guarantees of a model. A file that holds anything else is refused before anything is computed with it.

An attribute that `LGCPClassifier` gets, an array of a ladder or of a representation has one line here: what is not
listed is not saved, so that it cannot be forgotten.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, PowerTransformer, StandardScaler

from coxfield import LGCPClassifier
from coxfield.estimators import validation
from coxfield.estimators.supervised import BANKS, SELECTIONS
from coxfield.estimators.tables import CYCLES, KINDS, RIDGE, Column, Joint, TableColumns
from coxfield.io.model_data import (
    FITTED,
    FUNCTIONS,
    KERNELS,
    NAMES,
    TRANSFORMERS,
    Unsound,
    is_integer,
    is_number,
    is_text,
    quoted,
    require,
    require_array,
    require_arrays,
)
from coxfield.kernels.mixture import Ladder, Mixture
from coxfield.kernels.radial import Radial, recognise
from coxfield.kernels.transforms import Beside, Member, Transformer, Whitening

PARAMETERS = tuple(LGCPClassifier().get_params(deep=False))
#: Arrays of a model: n points, c classes, d columns of the user's table. `require_arrays` says what the words mean.
MODEL = {
    "y_fit_": "n codes c",
    "mean_": "c",
    "relevance_": "d nonnegative optional",
    "_chosen_from": "n mask optional",
    "_announced": "c mask optional",
    "_arrived": "c mask optional",
}
#: Arrays of a ladder: f factors, a powers of the density, n reference points.
LADDER = {
    "factors": "f positive",
    "alphas": "a nonnegative",
    "floors": "a nonnegative",
    "weights": "fa nonnegative",
    "point_weights": "fn nonnegative optional",
}
TABLES = ("mixture_", "selection_path_", "learning_path_")  # that only some fits make
COUNTS = ("_changed", "_n_chosen", "_n_pilot", "_n_left_out", "_n_candidates", "_near_cells")
#: Likewise, from 0 to a largest one.
NUMBERS = {"loo_error_": 1.0, **dict.fromkeys(("loo_log_loss_", "_largest_evidence", "_rate", *COUNTS), np.inf)}
NEEDED = ("X_fit_", "y_fit_", "classes_", "mean_", "kernel_", "n_features_in_", "_weights")
KNOWN = {*PARAMETERS, *NEEDED, *MODEL, *TABLES, *NUMBERS, "columns_", "feature_names_in_"}
HEADER = ("version", "target", "features", "id_column")

MOST_THREADS = 2**15
TERMS = 200  # kernels in one sum or product
PARTS = ("k1", "k2", "kernel")  # parameters of a kernel that are kernels
SIGNED = ("exponent", "gamma")  # those that may be negative
MEMBERS = 2_000  # length scales times powers of the density, in all ladders; a bank has some hundred
LARGEST_POWER = 16  # of the density; those of use are at most 1
SLACK = 3.0  # nats by which rounding changes the density of points that are beyond the precision of their distances
VALUES = 2**27  # coordinates of all points in a representation; more only if the points themselves have so many
LARGEST = 100_000  # of a parameter that is a number of things, such as components or quantiles
LIMITS = {"degree": 16, "sample_steps": 1_000}  # of parameters by which coordinates multiply
STEPS = 20  # of a pipeline
INNER = (
    (Pipeline, "steps"),
    (Beside, "representation"),
    (PowerTransformer, "_scaler"),
)  # attributes that `_inner` checks


def check_header(header: Any, n_features: int, *, has_ids: bool) -> None:
    """Refuse names of columns that no table of a fit has."""
    missing = [name for name in HEADER if name not in header]
    require(not missing, f"its description has no {', '.join(missing)}")
    for name in ("version", "target"):
        require(is_text(header[name]), f"the {name} in it is not text")
    require(header["id_column"] is None or is_text(header["id_column"]), "the id_column in it is not text")
    require(header["id_column"] is not None or not has_ids, "it has ids, but no name of their column")
    features = header["features"]
    names = type(features) is list and all(map(is_text, features))
    require(names, "the features in it are not a list of names")
    require(len(features) == n_features, f"it has {len(features)} names for {n_features} features")
    require(len(set(features)) == len(features), "two of its features have the same name")


def checked_state(parts: dict[str, Any]) -> dict[str, Any]:
    """The state of a model, as ``LGCPClassifier.__setstate__`` takes it; refused if no fit leaves it behind."""
    missing = [name for name in NEEDED if name not in parts]
    require(not missing, f"the model has no {', '.join(missing)}")
    strange = [name for name in parts if name not in KNOWN]
    require(not strange, f"the model has a part {quoted(strange)} that no fit makes")
    model = LGCPClassifier(**{name: parts[name] for name in PARAMETERS if name in parts})
    state = {**model.get_params(deep=False), **{name: parts[name] for name in parts if name not in PARAMETERS}}
    X = checked_points(state["X_fit_"], "X_fit_")
    classes = _checked_classes(state["classes_"])
    _check_columns(state, X.shape[1])
    require_arrays(state, MODEL, {"n": X.shape[0], "c": len(classes), "d": state["n_features_in_"]}, "")
    _check_weights(state["_weights"], X, len(classes))
    for name in TABLES:
        if name in state:
            _check_table(state[name], name)
    for name in NUMBERS.keys() & state:
        require(is_number(state[name]) and 0 <= state[name] <= NUMBERS[name], f"{name} is {quoted(state[name])}")
    for name in COUNTS:
        require(is_integer(state.get(name, 0)), f"{name} is not an integer")
    given, used = checked_parameters(state), _used_kernels(state, classes)
    return {**state, **given, "kernel_": used}


def checked_points(X: Any, what: str) -> Any:
    """Points that are an array, or a sparse array, of finite numbers in single or double precision."""
    numbers = require_array(X.data, what, (None,)) if sparse.issparse(X) else require_array(X, what, (None, None))
    require(numbers.dtype in (np.float32, np.float64), f"{what} is an array of type {numbers.dtype}")
    require(min(X.shape) > 0, f"{what} is empty")
    return X


def _checked_classes(classes: Any) -> list:
    """The classes as a list: sorted, different from each other, and at least two."""
    require(type(classes) is np.ndarray and classes.ndim == 1, "classes_ is not an array of classes")
    kind = classes.dtype
    require(kind.kind in "biufmMUO" and kind.isnative, f"classes_ is of type {quoted(kind.str)}")
    listed = classes.tolist()
    require(len(listed) >= 2, "classes_ holds fewer than two classes")
    if kind.kind in "UO":
        require(all(map(is_text, listed)), "classes_ holds values that are not text")
    else:
        require(bool(np.isfinite(classes).all()), "classes_ holds values that are not finite")
    require(all(one < other for one, other in pairwise(listed)), "classes_ is not sorted")
    return listed


def _check_weights(weights: Any, X: Any, n_classes: int) -> None:
    """None, one positive number per point, or one number per point and class."""
    if type(weights) is np.ndarray and weights.ndim == 2:
        require_arrays({"_weights": weights}, {"_weights": "nc nonnegative"}, {"n": X.shape[0], "c": n_classes}, "")
        require(bool(weights.any()), "_weights are all 0")
    elif weights is not None:
        require_arrays({"_weights": weights}, {"_weights": "n positive"}, {"n": X.shape[0]}, "")
        require(weights.dtype == X.dtype, "_weights are not in the precision of the points")


def _check_columns(state: dict[str, Any], d: int) -> None:
    """The columns of the table that the points come from, and their names."""
    columns, names = state.get("columns_"), state.get("feature_names_in_")
    n_features = d
    if columns is not None:
        require(type(columns) is TableColumns, "columns_ are not those of a table")
        listed = type(columns.columns) is tuple and all(map(_is_column, columns.columns))
        require(listed, "columns_ holds a column that no table has")
        n_features = len(columns.columns)
        fits = columns.n_numbers + columns.n_categories == d and bool(d)
        require(fits, f"columns_ are not those of points with {d} coordinates")
        whole = columns.joint is None or _is_joint(columns.joint, columns.n_numbers)
        require(whole, "columns_ fills in blanks as no table does")
    same = is_integer(state["n_features_in_"]) and state["n_features_in_"] == n_features
    require(same, f"n_features_in_ is not {n_features}")
    if names is not None:
        fits = type(names) is np.ndarray and names.shape == (n_features,) and all(map(is_text, names.tolist()))
        require(fits, "feature_names_in_ does not hold the name of each feature")


def _is_column(column: Any) -> bool:
    """Whether a column is one that `TableColumns.of` makes."""
    plain = type(column) is Column and column.kind in KINDS and (is_text(column.name) or is_integer(column.name))
    listed = plain and all(type(each) is tuple for each in (column.levels, column.filling, column.cycles))
    return (
        listed
        and all(map(is_text, column.levels))
        and len(set(column.levels)) == len(column.levels)
        and set(column.cycles) <= CYCLES.keys()
        and (not column.cycles or column.kind == "date")
        and len(column.filling) == column.n_numbers
        and all(map(is_number, column.filling))
        and type(column.blanks) is type(column.rare) is bool
    )


def _is_joint(joint: Any, d: int) -> bool:
    """Whether a Gaussian of d numbers is one that `Joint.of` makes: all that is solved with it can be solved."""
    if type(joint) is not Joint or type(joint.covariance) is not tuple or len(joint.covariance) != d:
        return False
    rows = (joint.centre, joint.scale, *joint.covariance)
    if not all(type(row) is tuple and len(row) == d and all(map(is_number, row)) for row in rows):
        return False
    covariance = np.array(joint.covariance, float)
    return (
        is_number(joint.ridge)
        and joint.ridge >= RIDGE
        and min(joint.scale) > 0
        and bool(np.allclose(covariance, covariance.T))
        and bool(np.linalg.eigvalsh(covariance).min() > -RIDGE / 2)
    )


def _check_table(table: Any, name: str) -> None:
    """A mapping from names to columns of the same length."""
    columns = list(table.values()) if type(table) is dict and all(map(is_text, table)) else []
    arrays = all(type(column) is np.ndarray and column.ndim == 1 for column in columns)
    require(bool(columns) and arrays and len({len(column) for column in columns}) == 1, f"{name} is not a table")


def checked_parameters(state: dict[str, Any]) -> dict[str, Any]:
    """The parameters that the user gave."""
    jobs = state["n_jobs"]
    require(jobs is None or (is_integer(jobs) and 0 < abs(jobs) <= MOST_THREADS), f"n_jobs is {quoted(jobs)}")
    validation.check_option("selection", state["selection"], SELECTIONS)
    validation.check_option("bank", state["bank"], BANKS)
    validation.check_share("selection_part", state["selection_part"])
    for name in PARAMETERS:
        require(name == "kernel" or _is_plain(state[name]), f"{name} is not made of numbers and names")
    kernel = state["kernel"]
    if isinstance(kernel, Mapping):
        return {"kernel": {key: _checked_given(each) for key, each in kernel.items()}}
    if type(kernel) in (list, tuple):
        return {"kernel": type(kernel)(map(_checked_given, kernel))}
    return {"kernel": _checked_given(kernel)}


def _checked_given(kernel: Any) -> Any:
    """A kernel, a mixture or a member as users give it."""
    if isinstance(kernel, Mixture):
        return checked_mixture(kernel)
    if type(kernel) is Member:
        require(_is_plain(kernel.alphas), "alphas of a member are not numbers")
        if not isinstance(kernel.transform, str):
            check_transformer(kernel.transform)
    inner = kernel.kernel if type(kernel) is Member else kernel
    if inner is not None:
        check_kernel(inner)
    return kernel


def _is_plain(value: Any) -> bool:
    """Whether a value is made of numbers, names, arrays, lists and mappings."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return value is None or isinstance(value, str | int | float) or type(value) is np.ndarray


def _used_kernels(state: dict[str, Any], classes: list) -> Any:
    """The covariance in use: one for all classes, or one for each of them."""
    kernel, X = state["kernel_"], state["X_fit_"]
    if "mixture_" in state:
        require(type(kernel) is Mixture, "it has a table of a mixture, but not a mixture")
        require(kernel.log_densities is not None, "the mixture has no densities")
        kernel = _over_rows(kernel, X, state["_weights"], state.get("_chosen_from"))
    if isinstance(kernel, dict):
        require(kernel.keys() == set(classes), "kernel_ has wrong classes")
        return {label: _used(kernel[label], X.shape[1]) for label in classes}
    return _used(kernel, X.shape[1])


def _over_rows(mixture: Mixture, X: Any, weights: Any, chosen_from: Any) -> Mixture:
    """A mixture over the training points, which it does not hold itself: they are in the file once.

    In files of format 4 and before, these are the points that it was chosen from.
    """
    listed = [log_q for log_q in mixture.log_densities or () if type(log_q) is np.ndarray and log_q.ndim == 2]
    if chosen_from is not None and any(log_q.shape[1] != X.shape[0] for log_q in listed):
        X, weights = X[chosen_from], None if weights is None else weights[chosen_from]
    return replace(mixture, X=X, counts=weights)


def _used(kernel: Any, d: int) -> Any:
    if isinstance(kernel, Mixture):
        kernel = checked_mixture(kernel)
        require(kernel.X.shape[1] == d, f"the mixture is of points with {kernel.X.shape[1]} features, not {d}")
    else:
        check_kernel(kernel)
        recognise(kernel, d)
    return kernel


def check_kernel(kernel: Any, terms: int = TERMS) -> int:
    """Refuse a kernel whose parameters are not numbers that `recognise` can judge; how many parts may still come."""
    require(terms > 0, f"a kernel has more than {TERMS} parts")
    kind = type(kernel)
    require(kind in KERNELS, f"a kernel is a {kind.__name__}, which is not a kernel of scikit-learn")
    require(kind is not CompoundKernel, "a kernel is a CompoundKernel, which is not a covariance")
    terms -= 1
    for name in inspect.signature(kind).parameters:
        value = getattr(kernel, name)
        if name in PARTS:
            terms = check_kernel(value, terms)
        else:
            require(_is_parameter(name, value), f"{name} of {kind.__name__} is {quoted(value)}, which no kernel has")
    return terms


def _is_parameter(name: str, value: Any) -> bool:
    if name.endswith("_bounds"):
        return _is_bounds(value)
    if name == "metric":
        return is_text(value)
    if name == "pairwise_kernels_kwargs":
        return value is None or (isinstance(value, dict) and all(map(is_number, value.values())))
    if name == "length_scale" and not is_number(value):
        if type(value) in (list, tuple):
            return bool(value) and all(is_number(each) and each > 0 for each in value)
        array = type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind in "iuf" and value.size > 0
        return bool(array and (np.isfinite(value) & (value > 0)).all())
    if name == "nu" and isinstance(value, float) and np.isposinf(value):
        return True  # the squared exponential
    zero = name in ("sigma_0", "noise_level")
    return is_number(value) and (name in SIGNED or value > 0 or (zero and value == 0))


def _is_bounds(value: Any) -> bool:
    """Whether a value is "fixed", or pairs of numbers."""
    if isinstance(value, str):
        return value == "fixed"
    array = value if type(value) is np.ndarray else np.asarray(value if type(value) in (list, tuple) else [])
    return array.dtype.kind in "iuf" and array.shape[-1:] == (2,)


def checked_mixture(mixture: Mixture) -> Mixture:
    """A mixture whose arrays fit together, with the covariances of its kernels."""
    X = checked_points(mixture.X, "X of the mixture")
    require_arrays(vars(mixture), {"counts": "n positive optional"}, {"n": X.shape[0]}, " of the mixture")
    ladders, densities = mixture.ladders, mixture.log_densities
    require(type(ladders) is tuple and len(ladders) > 0, "the mixture has no members")
    mixture = replace(mixture, ladders=tuple(_checked_ladder(ladder, X) for ladder in ladders))
    members = sum(max(ladder.weights.size, len(ladder.factors)) for ladder in mixture.ladders)
    require(members <= MEMBERS, f"the mixture has {members} members, more than {MEMBERS}")
    weighted = any(ladder.weights.any() for ladder in mixture.ladders) or mixture.support.any()
    require(bool(weighted), "weights of the mixture are all 0")
    if densities is not None:
        listed = type(densities) is tuple and len(densities) == len(ladders)
        require(listed, "the mixture does not have the densities of each representation")
        for ladder, log_q in zip(mixture.ladders, densities, strict=True):
            _check_densities(ladder, log_q, mixture)
    return mixture


def _checked_ladder(ladder: Any, X: Any) -> Ladder:
    require(type(ladder) is Ladder, f"a part of the mixture is a {type(ladder).__name__}")
    unlisted = [name for name, value in vars(ladder).items() if type(value) is np.ndarray and name not in LADDER]
    require(not unlisted, f"a part of the mixture has an array {quoted(unlisted)} that no fit makes")
    require(is_text(ladder.name), "the name of a representation is not text")
    width = checked_width(ladder.transform, X)
    require_arrays(vars(ladder), LADDER, {"n": X.shape[0]}, " of the mixture")
    require(ladder.free == (not len(ladder.alphas)), "a part of the mixture has neither or both kinds of weights")
    require(bool((ladder.alphas <= LARGEST_POWER).all()), f"alphas of the mixture are larger than {LARGEST_POWER}")
    require(is_number(ladder.one) and ladder.one > 0, "the unit of the density is not a positive number")
    check_kernel(ladder.covariance)
    covariance = recognise(ladder.covariance, width)
    covariance.check_nonnegative()
    return replace(ladder, covariance=covariance)


def _check_densities(ladder: Ladder, log_q: Any, mixture: Mixture) -> None:
    """Refuse densities that are impossible: they have the term of the point itself, and no term is larger."""
    n = mixture.n_reference
    require_array(log_q, "log_densities of the mixture", (len(ladder.factors), n))
    if ladder.point_weights is not None:  # they take the place of densities
        same = np.array_equal(log_q, ladder.point_weights)
        require(same, "log_densities of the mixture are not the weights of its points")
        return
    if not isinstance(ladder.covariance, Radial):
        return  # the power of a kernel may be larger between other points
    counts = np.ones(n) if mixture.counts is None else mixture.counts.astype(float)
    own = np.log(ladder.covariance.variance)
    possible = (log_q >= own + np.log(counts) - SLACK) & (log_q <= own + np.log(counts.sum()) + SLACK)
    require(bool(possible.all()), "log_densities of the mixture are not those of its points")


def checked_width(transform: Any, X: Any) -> int:
    """The number of coordinates of a representation that can be computed for the points X; None for the features.

    It is known from the shapes of arrays, and limited, before the transformer is called for the first point.
    """
    if transform is None:
        return X.shape[1]
    fitted = transform.fitted if type(transform) is Transformer else transform
    check_transformer(fitted)
    width = _width(fitted, *X.shape)
    try:
        with np.errstate(all="ignore"):
            found = transform.transform(X[:1])
    except Exception as error:  # whatever a transformer of scikit-learn may say to parts that do not fit
        raise Unsound(f"a representation cannot be computed ({quoted(str(error))})") from error
    points = sparse.issparse(found) or type(found) is np.ndarray
    require(points and found.shape == (1, width), "a representation does not give a row for each point")
    require(found.dtype.kind == "f", "a representation does not give numbers")
    return width


def check_transformer(transform: Any) -> None:
    """Refuse a transformer, fitted or not, that is not of a known type, or whose parameters could do harm."""
    kind = type(transform)
    require(kind in TRANSFORMERS, f"a representation is a {kind.__name__}, which is not one of {NAMES}")
    for inner in _inner(transform):
        check_transformer(inner)
    for name, value in vars(transform).items():
        if (kind, name) in INNER:
            continue
        what = f"{name} of a {kind.__name__}"
        if kind is FunctionTransformer and name in ("func", "inverse_func"):
            known = value is None or any(value is each for each in FUNCTIONS.values())
            require(known, f"{what} is not a function of NumPy")
        elif name in ("memory", "kw_args", "inv_kw_args"):
            require(value is None, f"{what} is given, which a model file cannot have")
        elif name == "_sklearn_output_config":  # what `set_output` leaves behind
            require(type(value) is dict and all(map(is_text, value.values())), f"{what} is not a mapping of names")
        else:
            plain = type(value) is np.random.RandomState or (not isinstance(value, dict) and _is_plain(value))
            require(plain, f"{what} is neither a number nor a name nor an array")
        if name in kind._get_param_names() and name != "random_state":
            limit, listed = LIMITS.get(name, LARGEST), value if type(value) in (list, tuple) else [value]
            large = any(is_integer(each) and abs(int(each)) > limit for each in listed)
            require(not large, f"{what} is {quoted(value)}, and {limit} is the most that is loaded")


def _inner(transform: Any) -> list:
    """The transformers that another one is made of."""
    if type(transform) is Pipeline:
        steps = transform.steps
        pairs = type(steps) is list and all(type(step) is tuple and len(step) == 2 for step in steps)
        require(pairs and 0 < len(steps) <= STEPS, f"a Pipeline does not have 1 to {STEPS} steps")
        require(all(is_text(name) for name, _ in steps), "the name of a step of a Pipeline is not text")
        return [step for _, step in steps]
    if type(transform) is Beside:
        return [] if transform.representation is None else [transform.representation]
    scaler = vars(transform).get("_scaler") if type(transform) is PowerTransformer else None
    require(scaler is None or type(scaler) is StandardScaler, "_scaler of a PowerTransformer is not a StandardScaler")
    return [] if scaler is None else [scaler]


def _width(transform: Any, n: int, d: int) -> int:
    """The number of coordinates that a transformer makes of d features. Its arrays fit together, and it has a limit."""
    kind = type(transform)
    if kind is Pipeline:
        for _, step in transform.steps:
            d = _width(step, n, d)
        return d
    if kind is Beside:
        first, others = transform.first, transform.others
        known = is_integer(first) and is_integer(others) and 0 <= first <= d and others in (0, d - first)
        require(known, f"a Beside is not for {d} features")
        return d - first if transform.representation is None else _width(transform.representation, n, first) + others
    width = _width_by_arrays(transform, n, d) if kind in FITTED else _width_by_parameters(transform, n, d)
    require(0 < n * width <= max(VALUES, 4 * n * d), "a representation is too large")
    return width


def _width_by_arrays(transform: Any, n: int, d: int) -> int:
    """Check the fitted arrays of a transformer."""
    kind, parts = type(transform), vars(transform)
    missing = [array for array in FITTED[kind] if array not in parts]
    require(not missing, f"a {kind.__name__} has no {', '.join(missing)}")
    sizes = require_arrays(parts, FITTED[kind], {"n": n, "d": d}, f" of a {kind.__name__}")
    if kind is Whitening:
        labels = require_array(parts.get("labels_"), "labels_ of a Whitening", (n,), kinds="i")
        more = {"labels_ + 1": labels + 1}  # -1 of a point that came later
        require_arrays(more, {"labels_ + 1": "n codes l"}, {"n": n, "l": sizes["c"] + 1}, " of a Whitening")
        require(is_number(parts.get("shrinkage_")), "shrinkage_ of a Whitening is not a number")
    if kind is PowerTransformer and transform.standardize:
        require(parts.get("_scaler") is not None, "a PowerTransformer has no _scaler")
        _width_by_arrays(transform._scaler, n, d)
    return sizes.get("w", d)


def _width_by_parameters(transform: Any, n: int, d: int) -> int:
    """The number of coordinates of a transformer without fitted arrays."""
    if type(transform) is AdditiveChi2Sampler:
        steps = transform.sample_steps
        require(is_integer(steps) and steps > 0, f"sample_steps of an AdditiveChi2Sampler is {quoted(steps)}")
        return d * (2 * int(steps) - 1)
    if type(transform) is not PolynomialFeatures:
        return d
    degree = transform.degree[-1] if type(transform.degree) is tuple and transform.degree else transform.degree
    require(is_integer(degree) and degree >= 0, f"degree of a PolynomialFeatures is {quoted(degree)}")
    require(n * comb(d + int(degree), d) <= max(VALUES, 4 * n * d), "a representation is too large")
    try:  # it takes memory by what it says that it was fitted with
        fresh = clone(transform).fit(np.zeros((1, d)))
        same = vars(fresh) == vars(transform)
    except Exception as error:  # whatever scikit-learn may say of parameters
        raise Unsound(f"a PolynomialFeatures has wrong parameters ({quoted(str(error))})") from error
    require(same, "a PolynomialFeatures does not have the parts that it was fitted with")
    return fresh.n_output_features_
