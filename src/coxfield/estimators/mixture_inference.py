"""The part of `SLGCPClassifier` that labels points by covariances of all points, or of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from numbers import Real
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from coxfield import threads
from coxfield.engine.class_sums import StatedScores
from coxfield.estimators.few_labels import Known, Prepared, learn_few_labels
from coxfield.estimators.supervised import LGCPClassifier
from coxfield.estimators.trivial import warn_if_contradicted
from coxfield.estimators.validation import like
from coxfield.field.potts import check_couplings
from coxfield.graphs.experts import EXPERTS as VOICES
from coxfield.graphs.neighbours import listed
from coxfield.graphs.spectrum import Heat, time_of_rank
from coxfield.graphs.suggest import suggest
from coxfield.utils.numbers import generator, logs_of, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

GRAPHS = ("precomputed", "precomputed_distances")
FEW = 5000  # points below which one thread is faster than two


class MixtureInference:
    """The part of `SLGCPClassifier` that labels points by covariances of all points."""

    kernel: Any
    inference: str
    inference_: str
    mean: Any
    classes: Any
    class_prior: Any
    n_jobs: int | None
    verbose: int
    random_state: Any
    classes_: NDArray
    mean_: NDArray
    _prepared: Prepared

    @property
    def _is_graph(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel in GRAPHS

    @property
    def _resolved(self) -> str:
        """The inference, where "auto" is left to the kernel."""
        learns = self.kernel is None or self._is_graph
        return self.inference if self.inference != "auto" else ("mixture" if learns else "map")

    def _check_mixture(self) -> None:
        """Refuse kernels and inferences that do not go together."""
        if isinstance(self.kernel, str) and not self._is_graph:
            raise ValueError(
                f"kernel must be None, a kernel, or one of {', '.join(map(repr, GRAPHS))}; got {self.kernel!r}"
            )
        if self.inference == "mixture" and self.kernel is not None and not self._is_graph:
            raise ValueError(
                f"inference='mixture' learns its covariances from all points, but kernel is {self.kernel!r}: give "
                "kernel=None, or inference='map' for the label field of a kernel"
            )
        if self._is_graph and self.inference not in ("auto", "mixture"):
            raise ValueError(
                f"inference={self.inference!r} needs a kernel, but kernel is {self.kernel!r}: for a graph use "
                "coxfield.field.LabelField.from_graph"
            )
        check_shares(self.class_prior, None)
        if self.class_prior is not None and self._resolved != "mixture":
            raise ValueError(
                f"class_prior is for inference='mixture', but the inference is {self._resolved!r}: give mean, a prior "
                "bias between classes"
            )
        if self.classes is not None and self._resolved != "mixture":
            raise ValueError(
                f"classes are announced, but inference={self._resolved!r} needs a label of every class: leave classes "
                "out, or give kernel=None and inference='mixture'"
            )

    @property
    def _missing(self) -> str:
        """What is missing for predictions."""
        if not len(self._few_labels.rows):
            return "no training point is labelled yet"
        return f"all labels are of one class, {self.classes_.tolist()[0]!r}, and no other class is announced"

    def _preparation(self, X) -> Prepared:
        if self.kernel == "precomputed":
            return Prepared(check_affinities(X), self.kernel)
        if self.kernel == "precomputed_distances":
            return Prepared(check_distances(X), self.kernel)
        columns = getattr(self, "columns_", None)  # of a table: its last columns are categories
        return Prepared(X, n_categories=getattr(columns, "n_categories", 0))

    def _learn(self, codes: NDArray, sample_weight, prior) -> None:
        """Learn from the labels of some points, which are prepared."""
        Q, n = max(len(self.classes_), 2), len(codes)  # a second class is still to come
        mean = np.zeros(Q)
        mean[: len(self.mean_)] = self.mean_
        known = Known(sample_weight, prior, check_shares(self.class_prior, self.classes_))
        # On few points, waiting for each other costs threads more than they save.
        with threads.small_steps() if n < FEW else nullcontext():
            few = learn_few_labels(self._prepared, codes, mean, known, verbose=self.verbose)
        self._few_labels = few
        if len(self.classes_) < 2 or not (len(few.rows) or prior is not None):  # labels are to be asked for first
            return
        if few.unexpected is not None:
            warn_if_contradicted(self.classes_, *few.unexpected)
        self.label_distributions_ = few.distributions
        self.transduction_ = self.classes_[few.distributions.argmax(axis=1)]
        self.voices_ = dict(zip(VOICES, few.committee.loudness.tolist(), strict=True))
        self.members_ = few.table

    def _fit_mixture_supervised(self, X, codes: NDArray, sample_weight=None) -> None:
        """If all points are labelled, this is the supervised classifier."""
        if self._is_graph:
            raise ValueError(
                f"all {len(codes)} points of the graph are labelled, so there is nothing to find: mark the unknown "
                "labels with missing_label"
            )
        classifier = LGCPClassifier(mean=self.mean, n_jobs=self.n_jobs, verbose=self.verbose)
        self.inference_ = "supervised"
        self.classifier_ = classifier.fit(X, self.classes_[codes], sample_weight=sample_weight)
        self.kernel_ = classifier.kernel_
        self.label_distributions_ = np.eye(len(self.classes_))[codes]
        self.transduction_ = self.classes_[codes]

    @property
    def map_(self) -> NDArray:
        """Two coordinates of each training point, to draw it at, shape (n_samples, 2); only with "mixture".

        The features, if there are two. Otherwise two principal components of the heat covariance that speaks loudest.
        """
        few = self._few_labels
        points = few.prepared.points
        if isinstance(points, np.ndarray) and points.shape[1] == 2:
            return points
        spoken = zip(few.committee.shares.tolist(), few.committee.members, strict=True)
        _, loudest = max(
            ((share, one) for share, one in spoken if one.source >= 0), default=(0, None), key=itemgetter(0)
        )
        if loudest is None:  # only linear covariances speak
            modes = few.prepared.views[0].spectrum.modes[0]
            heat = Heat(modes, time_of_rank(modes.values, len(self.classes_)), centred=True)
        else:
            modes = few.prepared.views[loudest.view].spectrum.modes[loudest.source]
            heat = Heat(modes, loudest.parameter, loudest.means)
        at = PCA(2, svd_solver="covariance_eigh").fit_transform(heat.features().astype(float))
        return at * np.sign(at[np.abs(at).argmax(axis=0), [0, 1]])  # the farthest point is at the right, and above

    def suggest(self, n: int = 1) -> NDArray:
        """The points to ask labels for next: rows without a label whose labels would teach most.

        A label lowers the variance of the points near it, along the graphs. The first row lowers the variances of all
        points most, where the variance of a point counts as much as its class is in doubt. The next row does so after
        the first, and so on. Fit again when the labels are known.

        Parameters
        ----------
        n : int, default=1
            How many rows. It is best to ask for few, and to fit again.

        Returns
        -------
        ndarray of shape (n,)
            Row numbers of training points, in the order of asking. They come from a random sample: `random_state`
            makes them the same in each call.

        Examples
        --------
        Three clouds, with labels in two of them. The label to ask for is in the third:

        >>> import numpy as np
        >>> from sklearn.datasets import make_blobs
        >>> from coxfield import SLGCPClassifier
        >>> X, truth = make_blobs(150, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
        >>> y = np.full(150, -1)
        >>> for known in (0, 1):
        ...     y[np.flatnonzero(truth == known)[0]] = known
        >>> rows = SLGCPClassifier(random_state=0).fit(X, y).suggest()
        >>> print(truth[rows])
        [2]
        """
        check_is_fitted(self)
        n = whole_number("n", n)
        if self.inference_ == "supervised":
            raise ValueError("every training point is labelled, so there is no label to ask for")
        if self.inference_ != "mixture":
            raise ValueError(
                f"suggest needs the covariances of inference='mixture', but this was fitted by {self.inference_!r}"
            )
        few = self._few_labels
        free = len(few.distributions) - len(few.rows)
        if n > free:
            raise ValueError(
                f"n={n} labels are asked for, but only {free} training points have none: give at most {free}"
            )
        return suggest(few.features, few.distributions, few.rows, n, generator(self.random_state))

    def _mixture_scores(self, X) -> StatedScores:
        if not hasattr(self, "label_distributions_"):
            raise ValueError(f"{self._missing}: ask for labels by suggest, and give them to relabel")
        if self._is_graph:
            _check_sign(X, "distances" if self.kernel == "precomputed_distances" else "affinities", "as in fit")
        else:
            X = like(X, self._prepared.X)
        return StatedScores(logs_of(self._few_labels.probabilities(X)))


def check_affinities(X) -> sparse.csr_array:
    """A graph as a symmetric sparse matrix without diagonal."""
    _check_square(X, "affinities")
    _check_sign(X, "affinities", "leave out the entries of points that are not tied")
    return check_couplings(X)


def check_distances(X) -> sparse.csr_array:
    """Distances as a sparse matrix. An entry that is stored once counts for both points, by the graph made of it."""
    _check_square(X, "distances")
    _check_sign(X, "distances", "give lengths, or kernel='precomputed' if larger means closer")
    return listed(X)


def _check_square(X, what: str) -> None:
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"precomputed {what} must be a square matrix with a row and a column per point, got shape {X.shape}: "
            "give kernel=None if X holds features"
        )


def _check_sign(X, what: str, remedy: str) -> None:
    least = X.min()
    if least < 0:
        raise ValueError(f"precomputed {what} must not be negative, got {least:g}: {remedy}")


def check_shares(class_prior, classes: NDArray | None) -> NDArray | None:
    """Class shares that a user states, adding up to 1; None if there are none, or `classes` are not known yet."""
    if class_prior is None:
        return None
    if isinstance(class_prior, str) and class_prior == "balanced":
        return None if classes is None else np.full(max(len(classes), 2), 1 / max(len(classes), 2))
    if not isinstance(class_prior, Mapping):
        raise ValueError(f"class_prior must be None, 'balanced', or a mapping class -> share, got {class_prior!r}")
    for name, share in class_prior.items():
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) < np.inf:
            raise ValueError(f"class_prior must hold shares from 0 on, got {share!r} for class {name!r}")
    if not sum(class_prior.values()) > 0:
        raise ValueError("class_prior is zero everywhere: at least one class must have a share")
    if classes is None:
        return None
    listed = classes.tolist()
    missing, strange = [c for c in listed if c not in class_prior], [c for c in class_prior if c not in listed]
    if missing or (strange and len(listed) > 1):
        what = f"has no share for class {missing[0]!r}" if missing else f"has a share for {strange[0]!r}, not a class"
        raise ValueError(f"class_prior {what}: give one share for each of {', '.join(map(repr, listed))}")
    if len(listed) < 2:  # nothing is predicted yet
        return None
    shares = np.array([float(class_prior[c]) for c in listed])
    return shares / shares.sum()


def check_prior(prior, classes: NDArray, n: int) -> NDArray | None:
    """A guess per row as probabilities, shape (n, n_classes). A row that is blank or zero says nothing."""
    if prior is None:
        return None
    names = list(getattr(prior, "columns", prior if isinstance(prior, Mapping) else []))
    if names:
        missing = [c for c in classes.tolist() if c not in names]
        if missing:
            raise ValueError(f"prior has no column {missing[0]!r}: give a column for each class")
        prior = np.stack([np.asarray(prior[c], dtype=float) for c in classes.tolist()], axis=1)
    guess = np.asarray(prior, dtype=float)
    if guess.shape != (n, len(classes)):
        raise ValueError(
            f"prior must have a row per point and a column per class, shape {(n, len(classes))}, got {guess.shape}: "
            f"the classes are {', '.join(map(repr, classes.tolist()))}"
        )
    guess = np.where(np.isnan(guess).all(axis=1, keepdims=True), 1.0, guess)
    if not np.isfinite(guess).all() or (guess < 0).any():
        row = int(np.flatnonzero(~(np.isfinite(guess) & (guess >= 0)).all(axis=1))[0])
        raise ValueError(f"prior must hold probabilities, got {guess[row].tolist()} in row {row}: leave the row blank")
    guess = np.where(guess.any(axis=1, keepdims=True), guess, 1.0)
    guess = guess / guess.max(axis=1, keepdims=True)
    return guess / guess.sum(axis=1, keepdims=True)
