"""Marginals of labelled points with hidden labels, by chains that sample all folds at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from coxfield.field.chains import states
from coxfield.field.mcmc import PROPOSALS, SwendsenWang
from coxfield.selection import uniform_label
from coxfield.selection.folds import hide

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coxfield.field import LabelField

CHAINS = 16  # at least; all folds have the same number of chains
BURN_IN, DRAWS = 15, 30  # steps per chain: clusters forget their start within a few steps
NEARLY_ALL = 0.95  # share of the unlabelled points; a class with more has taken nearly all


def chain_marginals(field: LabelField, codes: NDArray, hidden: list[NDArray], seed: int = 0, done=None) -> NDArray:
    """Marginals of all rows by several chains for each fold, shape (n_chains, n_folds, n, Q).

    Parameters
    ----------
    field : LabelField
        The field of all points, none of them labelled.
    codes : array of shape (n,)
        Class numbers, -1 for unlabelled rows.
    hidden : list of arrays
        Rows to hide together.
    seed : int
    done : callable, optional
        Called with shares of the work, which add up to 1.

    Examples
    --------
    A point beside a point of the first class, predicted from the others:

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from coxfield.field import LabelField
    >>> X = np.array([[0.0], [0.3], [5.0]])
    >>> field = LabelField.from_points(X, 3.0 * RBF(0.5), labels=[-1, -1, -1], n_classes=2)
    >>> chain_marginals(field, np.array([0, 0, 1]), [np.array([1])]).mean(axis=0)[0, 1].round(1)
    array([0.9, 0.1])
    """
    unary = np.tile(clamped_unary(field, codes, hidden), (repeats(hidden), 1, 1))
    # Each chain has its own unary terms, so a sampler gets only as many chains as it moves at once.
    size = max(1, int(PROPOSALS / max(field.totals.sum() / 2, 1)))
    rng = np.random.default_rng(seed)
    share = 1 / len(unary)
    tell = (lambda chains: None) if done is None else (lambda chains: done(chains * share))
    means = np.concatenate([_chain_means(field, unary[part], rng, tell) for part in gen_batches(len(unary), size)])
    return means.reshape(-1, len(hidden), *means.shape[1:])


def repeats(hidden: list[NDArray]) -> int:
    """Chains per fold."""
    return -(-CHAINS // len(hidden))


def clamped_unary(field: LabelField, codes: NDArray, hidden: list[NDArray]) -> NDArray:
    """Unary terms for each fold that fix all labelled rows but its hidden ones, shape (n_folds, n, Q)."""
    visible = np.array([hide(codes, rows) for rows in hidden])
    other = (visible >= 0)[:, :, None] & (visible[:, :, None] != np.arange(field.n_classes))
    return np.where(other, np.inf, field.relative_unary)


def _chain_means(field: LabelField, unary: NDArray, rng: np.random.Generator, tell) -> NDArray:
    """Mean distribution of each node in each chain; every chain has its own unary terms.

    `tell` is called with shares of chains.
    """
    sampler = SwendsenWang(replace(field, relative_unary=unary))
    total = np.zeros(unary.shape)
    for step, state in enumerate(states(sampler, rng, sampler.init(rng, len(unary)), BURN_IN + DRAWS)):
        if step >= BURN_IN and state.probabilities is not None:  # Swendsen-Wang always knows them
            total += state.probabilities
        tell(len(unary) / (BURN_IN + DRAWS))
    return total / DRAWS


def held_out(chains: NDArray, hidden: list[NDArray]) -> NDArray:
    """Marginals of rows by the chains of the fold that hides them, (n_chains, n, Q); NaN for other rows."""
    result = np.full((len(chains), *chains.shape[2:]), np.nan)
    for fold, rows in enumerate(hidden):
        result[:, rows] = chains[:, fold, rows]
    return result


def one_takes_all(chains: NDArray) -> bool:
    """Whether in most chains one class is the most probable class of nearly all unlabelled rows.

    Examples
    --------
    >>> import numpy as np
    >>> ordered, mixed = np.tile([0.1, 0.9], (20, 1)), np.eye(2)[np.arange(20) % 2]
    >>> one_takes_all(np.array([[ordered, ordered, mixed]])), one_takes_all(np.array([[ordered, mixed, mixed]]))
    (True, False)
    """
    if chains.shape[2] < 2:
        return False
    winners = chains.argmax(axis=-1)[..., None] == np.arange(chains.shape[-1])
    return bool(np.mean(winners.mean(axis=2).max(axis=-1) > NEARLY_ALL) > 1 / 2)


def scores(probabilities: NDArray, y: NDArray, n_draws: int = DRAWS) -> tuple[float, float]:
    """Log loss with the uniform label mixed in (see `uniform_label`), and the share of errors.

    The log loss of each chain counts separately. Chains that froze in different labellings are each certain. Their mean
    would look like uncertainty, although no chain is uncertain.

    Parameters
    ----------
    probabilities : array of shape (n_chains, n, n_classes)
        Means over the draws of each chain. One draw of uniform labels is added, because a class that no draw showed is
        not impossible.
    y : array of shape (n,), class numbers
    n_draws : int, optional
        Draws per chain; by default as many as `chain_marginals` takes.

    Examples
    --------
    Three right labels; with so few labels, some doubt is better than none:

    >>> import numpy as np
    >>> right = np.array([0, 0, 0])
    >>> [round(scores(np.tile([p, 1 - p], (1, 3, 1)), right, 100)[0], 2) for p in (0.5, 0.9, 1.0)]
    [0.69, 0.38, 0.67]
    """
    _, n, n_classes = probabilities.shape
    logs = np.log((n_draws * probabilities + 1 / n_classes) / (n_draws + 1))
    wanted = uniform_label.mixed(logs, y, n)
    return float(-wanted.mean()), float((probabilities.mean(axis=0).argmax(axis=1) != y).mean())
