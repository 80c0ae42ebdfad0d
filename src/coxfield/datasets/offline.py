"""Sets that need no download: circles and the double helix, which are generated, and small ones in the package."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import Bunch

from coxfield.utils.numbers import generator, number_from_zero, positive_number, whole_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from coxfield.utils.numbers import RandomState

# At length scale 1, rings that are 3.5 apart with noise 0.45 nearly touch, and a few labels tell them apart. With noise
# 0.5, every second draw has a point on the wrong side of the gap. The number of points is proportional to the radius.
# So all rings are equally dense, and a minimum cut goes between the rings instead of through the sparsest ring.
_INNERMOST_RADIUS = 2.0
_RING_SPACING = 3.5
_POINTS_PER_UNIT_RADIUS = 40


def make_circles(
    n_rings: int = 2,
    n_per_ring: int | Sequence[int] | None = None,
    *,
    noise: float = 0.45,
    radii: ArrayLike | None = None,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points near concentric circles around the origin, with one class per circle.

    The defaults suit a squared exponential covariance of length scale 1, as in the paper's figure of
    concentric circles: neighbouring rings nearly touch.

    Parameters
    ----------
    n_rings : int, default=2
        Number of circles and of classes.
    n_per_ring : int or sequence of int, default=None
        Points per circle. None means 40 times the radius, so that all circles are equally dense.
    noise : float, default=0.45
        Standard deviation of the Gaussian noise added to each coordinate.
    radii : array-like of shape (n_rings,), default=None
        Increasing radii. None means 2, 5.5, 9, ...
    random_state : int, RandomState instance, numpy Generator or None, default=None
        Seed or generator. With None, every call draws other points.

    Returns
    -------
    X : ndarray of shape (n_points, 2)
        Points in random order.
    y : ndarray of shape (n_points,)
        Number of the circle, 0 for the innermost.

    Examples
    --------
    >>> from coxfield.datasets import make_circles
    >>> X, y = make_circles(3, 50, random_state=0)
    >>> X.shape
    (150, 2)
    >>> [round(float((X[y == ring] ** 2).sum(axis=1).mean() ** 0.5), 1) for ring in range(3)]
    [2.1, 5.5, 9.0]
    """
    n_rings = whole_number("n_rings", n_rings)
    radius_of = _ring_radii(radii, n_rings)
    counts = _ring_counts(n_per_ring, radius_of)
    noise = number_from_zero("noise", noise)
    rng = generator(random_state)

    y = np.repeat(np.arange(n_rings), counts)
    angle = rng.uniform(0.0, 2.0 * np.pi, size=y.size)
    curve = radius_of[y, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _blur_and_shuffle(curve, y, noise, rng)


def make_double_helix(
    n_per_strand: int = 500,
    *,
    turns: float = 2.0,
    noise: float = 0.18,
    radius: float = 1.0,
    pitch: float = 2.0,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points near two interleaved helices around the third axis, with one class per strand.

    The data set follows Zhu, Ghahramani and Lafferty (2003). With the defaults, about one nearest neighbour in a
    hundred has the other class, so a graph of neighbours alone does not solve the problem. A method that uses the
    unlabelled points finds the strands.

    Parameters
    ----------
    n_per_strand : int, default=500
        Points per strand.
    turns : float, default=2.0
        Number of turns of each strand.
    noise : float, default=0.18
        Standard deviation of the Gaussian noise added to each coordinate.
    radius : float, default=1.0
        Radius of both helices.
    pitch : float, default=2.0
        Rise of a strand in one turn. The strands are half a turn apart, which is half a pitch at the same angle.
    random_state : int, RandomState instance, numpy Generator or None, default=None
        Seed or generator. With None, every call draws other points.

    Returns
    -------
    X : ndarray of shape (2 * n_per_strand, 3)
        Points in random order. Without noise, the third coordinate lies in [0, turns * pitch].
    y : ndarray of shape (2 * n_per_strand,)
        Number of the strand, 0 or 1.

    Examples
    --------
    >>> from coxfield.datasets import make_double_helix
    >>> X, y = make_double_helix(200, random_state=0)
    >>> X.shape, [int((y == strand).sum()) for strand in range(2)]
    ((400, 3), [200, 200])
    """
    y = np.repeat([0, 1], whole_number("n_per_strand", n_per_strand))
    turns, radius, pitch = (
        positive_number("turns", turns),
        positive_number("radius", radius),
        positive_number("pitch", pitch),
    )
    noise = number_from_zero("noise", noise)
    rng = generator(random_state)

    turn = rng.uniform(0.0, turns, size=y.size)
    angle = 2.0 * np.pi * turn + np.pi * y
    curve = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), pitch * turn])
    return _blur_and_shuffle(curve, y, noise, rng)


def _blur_and_shuffle(
    curve: NDArray[np.float64], y: NDArray[np.int64], noise: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X = curve + noise * rng.standard_normal(curve.shape)
    order = rng.permutation(y.size)
    return X[order], y[order].astype(np.int64)


def _ring_radii(radii: ArrayLike | None, n_rings: int) -> NDArray[np.float64]:
    """Return one radius per ring, from the centre outwards."""
    if radii is None:
        return _INNERMOST_RADIUS + _RING_SPACING * np.arange(n_rings, dtype=np.float64)
    try:
        values = np.asarray(radii, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"radii={radii!r} are not numbers; pass one radius for each ring.") from None
    if values.shape != (n_rings,):
        raise ValueError(f"radii={radii!r} does not fit n_rings={n_rings}; pass one radius for each ring.")
    if not (np.isfinite(values).all() and values[0] > 0.0 and (np.diff(values) > 0.0).all()):
        raise ValueError(f"radii={radii!r} must be positive, finite and increasing; pass the innermost first.")
    return values


def _ring_counts(n_per_ring: int | Sequence[int] | None, radius_of: NDArray[np.float64]) -> list[int]:
    """Return the number of points of each ring."""
    if n_per_ring is None:
        return [max(1, round(_POINTS_PER_UNIT_RADIUS * radius)) for radius in radius_of]
    if isinstance(n_per_ring, Sequence | np.ndarray) and not isinstance(n_per_ring, str):
        if len(n_per_ring) != radius_of.size:
            raise ValueError(
                f"n_per_ring={n_per_ring!r} does not fit n_rings={radius_of.size}; "
                f"pass one integer for all rings, or one for each."
            )
        return [whole_number("n_per_ring", n) for n in n_per_ring]
    return [whole_number("n_per_ring", n_per_ring)] * radius_of.size


# The small data sets inside the package, as compressed CSV files.
#
# The files ``data/*.md``, which are also the ``DESCR`` of each set, say where the numbers come from and how they were
# changed. ``tools/embed_datasets.py`` rebuilds the files.


_DATA = resources.files("coxfield.datasets") / "data"


def _read_table(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64], list[str]]:
    """Read features, labels (the last column) and feature names from an embedded file."""
    with (_DATA / f"{name}.csv.gz").open("rb") as packed, gzip.open(packed, "rt", encoding="ascii") as text:
        *feature_names, _ = text.readline().strip().split(",")
        table = np.loadtxt(text, delimiter=",")
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64), feature_names


def _describe(name: str) -> str:
    return (_DATA / f"{name}.md").read_text(encoding="utf-8")


def _load_split(name: str, target_names: list[str], return_X_y: bool) -> Bunch | tuple[NDArray, ...]:
    """Load a data set that is published as a training and a test set."""
    X_train, y_train, feature_names = _read_table(f"{name}_train")
    X_test, y_test, _ = _read_table(f"{name}_test")
    if return_X_y:
        return X_train, y_train, X_test, y_test
    return Bunch(
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        feature_names=feature_names,
        target_names=np.array(target_names),
        DESCR=_describe(name),
    )


def load_synth(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, ...]:
    """Load Ripley's synthetic two-class mixture with its standard training and test sets.

    Each class is an equal mixture of two Gaussians in the plane. So the best possible error is known; it is about 8 %.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(X_train, y_train, X_test, y_test)`` instead of a Bunch.

    Returns
    -------
    synth : :class:`~sklearn.utils.Bunch`
        ``X_train`` (250, 2) and ``X_test`` (1000, 2) of float64, ``y_train`` and ``y_test`` of int64 in {0,
        1}, ``feature_names``, ``target_names`` and ``DESCR``, which says where the data come from.

    Examples
    --------
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from coxfield.datasets import load_synth
    >>> X_train, y_train, X_test, y_test = load_synth(return_X_y=True)
    >>> lda = LinearDiscriminantAnalysis().fit(X_train, y_train)
    >>> round(100 * (1 - lda.score(X_test, y_test)), 1)
    10.8
    """
    return _load_split("synth", ["0", "1"], return_X_y)


def load_pima(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, ...]:
    """Load the Pima diabetes data with Ripley's training and test sets: the paper's 'Diabetes'.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(X_train, y_train, X_test, y_test)`` instead of a Bunch.

    Returns
    -------
    pima : :class:`~sklearn.utils.Bunch`
        ``X_train`` (200, 7) and ``X_test`` (332, 7) of float64 in the units of the source, ``y_train`` and
        ``y_test`` of int64 (0 is No, 1 is Yes), ``feature_names``, ``target_names`` and ``DESCR``, which
        states the provenance.

    Examples
    --------
    >>> from coxfield.datasets import load_pima
    >>> pima = load_pima()
    >>> pima.feature_names
    ['npreg', 'glu', 'bp', 'skin', 'bmi', 'ped', 'age']
    >>> pima.X_train.shape, pima.X_test.shape
    ((200, 7), (332, 7))
    """
    return _load_split("pima", ["No", "Yes"], return_X_y)


def load_banana(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, ...]:
    """Load all points of Rätsch's banana data. There is no standard split; the paper draws 400 points to train on.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(X, y)`` instead of a Bunch.

    Returns
    -------
    banana : :class:`~sklearn.utils.Bunch`
        ``X`` (5300, 2) of float64 with three significant digits, ``y`` of int64 (0 for the source's -1, 1
        for its +1), ``feature_names``, ``target_names`` and ``DESCR``, which says where the data come from.

    Examples
    --------
    >>> from sklearn.model_selection import train_test_split
    >>> from coxfield.datasets import load_banana
    >>> banana = load_banana()
    >>> X_train, X_test, y_train, y_test = train_test_split(
    ...     banana.X, banana.y, train_size=400, random_state=0)
    >>> X_test.shape
    (4900, 2)
    """
    X, y, feature_names = _read_table("banana")
    if return_X_y:
        return X, y
    return Bunch(
        X=X,
        y=y,
        feature_names=feature_names,
        target_names=np.array(["-1", "+1"]),
        DESCR=_describe("banana"),
    )
