"""Comparisons of floating point results with a tolerance that is derived, not picked.

Two correct programs that add the same numbers in different orders get different last digits. Which digits differ
depends on the CPU, the BLAS and the number of threads. A test that compares such results exactly, or with a tolerance
that happened to be large enough on one machine, fails on the next machine. The functions here say how much rounding
can do:

- `assert_close`: numbers that two different computations must agree on;
- `assert_same_decisions`: labels that two different computations must agree on, wherever rounding cannot move them;
- `assert_same_error`: the share of wrong labels, likewise;
- `assert_same_minimum`: labellings of least energy.

Exact equality (``==``, ``np.testing.assert_array_equal``) is right for integers, for labels that no rounding can move,
and for the same arithmetic done twice on the same arrays.
"""

import numpy as np

#: Units of machine epsilon that the summands may cost. A product costs half a unit. An exponential, logarithm, root or
#: power costs at most four: NumPy and the C library promise that. A summand is a few products and one such function:
#: below 8 units. Two sides are compared, and each may err: 16. The units of the summation come on top: half a
#: unit for each addition on each side, in whatever order.
UNITS = 16


def precision(*arrays, dtype=None):
    """Machine epsilon of the least precise floating point array given, of float64 if there is none, or of `dtype`."""
    if dtype is not None:
        return float(np.finfo(dtype).eps)
    kinds = [np.asarray(array).dtype for array in arrays]
    return max([float(np.finfo(kind).eps) for kind in kinds if kind.kind in "fc"], default=float(np.finfo(float).eps))


def rounding(scale, *arrays, terms=1, condition=1.0, dtype=None):
    """How far apart rounding can bring two computations of one number: eps x (16 + terms) x condition x scale.

    Below the smallest normal number digits are lost one by one, so that no two results are told apart there.
    """
    eps = precision(*arrays, dtype=dtype)
    return eps * (UNITS + terms) * np.asarray(condition) * np.asarray(scale) + np.finfo(float).tiny


def assert_close(actual, desired, *, terms=1, scale=None, condition=1.0, dtype=None, err_msg=""):
    """Two computations of the same numbers agree up to rounding.

    That is ``|actual - desired| <= eps x (16 + terms) x condition x scale``, element by element. Numbers that
    underflowed, below 1e-307, are all alike.

    Parameters
    ----------
    actual, desired : array-like of the same shape; desired may be a single number
        NaN agrees with NaN only, and an infinity with the same infinity only.
    terms : int
        Summands of the largest sum behind one number, or the steps of a recursion.
    scale : array-like, optional
        Size of the summands, where they cancel: the sum of their absolute values. The default is the larger of the two
        numbers compared, which is right where all summands have one sign. A result that is near 0 by cancellation
        needs `scale`.
    condition : array-like
        By how much the computation multiplies a relative error of its input: ``|x|`` for ``exp(x)``, a condition number
        for a linear system.
    dtype : dtype, optional
        The precision of the computation, where results are stored in a wider type. The default is the less precise
        type of the two.
    """
    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    if desired.ndim and actual.shape != desired.shape:
        raise AssertionError(f"shapes differ: {actual.shape} and {desired.shape}. {err_msg}")
    if scale is None:
        scale = np.maximum(np.abs(actual), np.abs(desired))
    finite = np.isfinite(actual) & np.isfinite(desired)
    allowed = rounding(scale, actual, desired, terms=terms, condition=condition, dtype=dtype)
    allowed = np.where(finite, allowed, 0.0)
    if not np.all(np.isfinite(allowed)):
        raise AssertionError(f"the tolerance is not finite: terms, condition or scale is not. {err_msg}")
    # What is finite must be near; what is not finite must be the same on both sides.
    alike = (actual == desired) | (np.isnan(actual) & np.isnan(desired))
    apart = np.where(alike, 0.0, np.inf)
    np.subtract(actual, desired, out=apart, where=finite, dtype=float)
    excess = np.abs(apart) - allowed
    wrong = excess > 0
    if np.any(wrong):
        k = np.unravel_index(np.argmax(excess), wrong.shape)
        raise AssertionError(
            f"{int(np.sum(wrong))} of {wrong.size} numbers differ by more than rounding; the worst, at "
            f"{tuple(map(int, k))}: {actual[k]!r} and {np.broadcast_to(desired, wrong.shape)[k]!r} are "
            f"{abs(apart[k]):.3g} apart, rounding allows {allowed[k]:.3g}. {err_msg}"
        )


def decided(scores, margin=None, *, terms=1, scale=None, condition=1.0, dtype=None, at_least=0.9, err_msg=""):
    """Which rows rounding cannot decide otherwise: the best score is further from the second best than that.

    Parameters
    ----------
    scores : array-like of shape (n, n_classes) or (n,)
        The largest of a row wins. One column, or shape (n,), is a difference of two scores that is compared with 0; it
        needs `margin` or `scale`, since the scores themselves are not known.
    margin : array-like, optional
        Gap above which a decision is certain. The default is what rounding can do to a gap: twice ``eps x (16 + terms)
        x condition x scale``, where `scale` defaults to the largest absolute finite score of the row.
    at_least : float
        Share of rows that must be above the margin. Otherwise a comparison would show too little, and it fails.
    """
    scores = np.asarray(scores)
    gap, size = _gaps(scores, scale is None and margin is None)
    if margin is None:
        margin = 2 * rounding(size if scale is None else scale, scores, terms=terms, condition=condition, dtype=dtype)
    clear = gap > margin
    if gap.size == 0 or clear.mean() < at_least:
        raise AssertionError(
            f"only {int(clear.sum())} of {gap.size} rows have a gap above the margin "
            f"({np.max(margin, initial=0):.3g}); at least {at_least:.0%} must have. {err_msg}"
        )
    return clear


def assert_same_decisions(labels_a, labels_b, scores, margin=None, *, err_msg="", **how):
    """Decisions of two computations agree on every row that rounding cannot decide otherwise.

    `scores` are what either of them compared; `margin` and the other arguments are those of `decided`.
    """
    labels_a, labels_b = np.asarray(labels_a), np.asarray(labels_b)
    clear = decided(scores, margin, err_msg=err_msg, **how)
    if not labels_a.shape == labels_b.shape == clear.shape:
        raise AssertionError(f"shapes differ: {labels_a.shape}, {labels_b.shape} and {clear.shape} rows. {err_msg}")
    wrong = np.flatnonzero(clear & (labels_a != labels_b))
    if wrong.size:
        k = wrong[0]
        raise AssertionError(
            f"{wrong.size} of {int(clear.sum())} decisions differ; the first, at row {k}: {labels_a[k]!r} and "
            f"{labels_b[k]!r} with scores {np.asarray(scores)[k]}. {err_msg}"
        )


def assert_same_error(error, labels, truth, scores, margin=None, *, weights=None, err_msg="", **how):
    """An error rate is that of `labels`, up to the rows that rounding can decide otherwise.

    Parameters
    ----------
    error : float
        The share of errors that another computation found.
    labels, truth, scores : array-like
        Decisions, right answers, and the scores that were compared.
    margin, **how : see `decided`
    weights : array-like, optional
        Weight of each row in the share.
    """
    clear = decided(scores, margin, err_msg=err_msg, **how)
    wrong = np.asarray(labels) != np.asarray(truth)
    certain, open_ = np.average(wrong & clear, weights=weights), np.average(~clear, weights=weights)
    slack = rounding(1.0, terms=len(clear))
    if not certain - slack <= error <= certain + open_ + slack:
        raise AssertionError(f"the error is {error!r} and should be {certain!r} + (0 to {open_!r}). {err_msg}")


def assert_same_minimum(energy, labels_a, labels_b, *, terms):
    """Two labellings of least energy are the same, or they tie: then rounding decides which of them is found.

    `energy` is a function of a labelling; `terms` is the number of its summands.
    """
    if not np.array_equal(labels_a, labels_b):
        assert_close(energy(labels_a), energy(labels_b), terms=terms)


def _gaps(scores, sized_here):
    """Gap between the best and the second best score of each row, and the largest absolute finite score of each row."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        if sized_here:
            raise AssertionError("a difference of two scores does not tell their size: give margin or scale")
        return np.abs(scores.reshape(len(scores))), None
    second, best = np.moveaxis(np.partition(scores, [-2, -1], axis=1)[:, -2:], 1, 0)
    with np.errstate(invalid="ignore"):
        gap = np.where(best == second, 0.0, best - second)  # two scores of -inf are a tie
    size = np.max(np.where(np.isfinite(scores), np.abs(scores), 0.0), axis=1)
    return gap, size
