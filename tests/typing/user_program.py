"""A program as users write it. `make types` checks it with `mypy --strict`, so every public class must have types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import coxfield
from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier
from coxfield.baselines import HarmonicFunctions, ParzenClassifier, SVMClassifier, VariationalGPClassifier
from coxfield.calibration import Comparison, Reliability, compare, reliability
from coxfield.dask import DaskLGCPClassifier, neighbour_distances
from coxfield.datasets import CorruptDatasetError, DatasetUnavailableError, load_synth, make_circles, make_double_helix
from coxfield.field import (
    Gibbs,
    LabelField,
    LogPartition,
    LogPredictive,
    MapResult,
    PerturbAndMap,
    RandomisedCut,
    Round,
    Samples,
    State,
    SwendsenWang,
    log_joint_predictive,
    log_partition,
    log_predictive_density,
    map_labels,
    sample,
)
from coxfield.kernels import Member
from coxfield.permanents import (
    PermanentEstimate,
    alpha_permanent,
    importance_permanent,
    insertion_matrix,
    log_permanent_ratio_cyclic,
)
from coxfield.plotting import figure, plot_few_labels, plot_mixture, plot_probability, plot_reliability
from coxfield.process import (
    Bootstrap,
    CoarseGridWarning,
    Covariates,
    Envelope,
    FittedCoxProcess,
    FittedPermanental,
    FittedTypes,
    FitWarning,
    Grid,
    Intensity,
    LabelDistribution,
    LogGaussianCoxProcess,
    Pattern,
    PatternWarning,
    PointPattern,
    PolygonWindow,
    Posterior,
    Residuals,
    Summary,
    Trend,
    Window,
    fit_permanental,
    label_distribution,
    pair_correlation,
    poisson_process,
    superpose,
    thin,
)

Numbers = NDArray[np.float64]


def classify(X: Numbers, y: NDArray[np.int64], new: Numbers) -> NDArray[np.int64]:
    """Use the supervised classifier and what it can say about itself."""
    clf = LGCPClassifier([Member(transform="raw")], selection_part=0.5, random_state=0).fit(X, y)
    clf.partial_fit(X, y).forget([0]).reselect()
    labels, probabilities = clf.predict_with_proba(new)
    doubtful = clf.label_quality()["rank"]
    sets, reasons = clf.predict_set(new, 0.9), clf.contributions(new, top=3)
    print(probabilities.shape, doubtful, sets.sum(), len(reasons), reasons.table()["share"], clf.loo_predict_proba())
    ax = plot_mixture(clf, figure().subplots())
    ax.set_title("a mixture")
    plot_probability(clf, X, ax)
    found: NDArray[np.int64] = labels
    return found


def label(X: Numbers, y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Use the classifier for few labels."""
    clf = SLGCPClassifier(missing_label=-1, random_state=0, n_jobs=1).fit(X, y)
    left, right = plot_few_labels(clf)
    left.set_title("classes")
    right.set_title("doubt")
    rows: NDArray[np.int64] = clf.suggest(3)
    return rows


def judge(X: Numbers, y: NDArray[np.int64]) -> float:
    """Use the baselines and the calibration."""
    for clf in (PermanentalClassifier(), ParzenClassifier(), VariationalGPClassifier(random_state=0)):
        found: Reliability = reliability(y, clf.fit(X, y).predict_proba(X))
        plot_reliability({type(clf).__name__: found}).set_title("reliability")
    print(SVMClassifier(1.0).fit(X, y).decision_function(X), HarmonicFunctions(1.0).fit(X, y).predict(X))
    both: Comparison = compare(X, y, X, y)
    both.plot()
    return both.after.log_loss - both.before.expected_calibration_error


def cut(field: LabelField) -> NDArray[np.int64]:
    """Use the label field, its samplers and its partition function."""
    result: MapResult = map_labels(field)
    for sampler in (Gibbs(field), SwendsenWang(field), PerturbAndMap(field)):
        drawn: Samples = sample(sampler, 10, random_state=0)
        print(drawn.marginals, drawn.r_hat)
    z: LogPartition = log_partition(field)
    p: LogPredictive = log_joint_predictive(field, [0, 1])
    density: LogPredictive = log_predictive_density(field, [0])
    print(z.log_z + p.value + density.value, result.rounds, RandomisedCut, Round, State)
    labels: NDArray[np.int64] = result.labels
    return labels


def describe(pattern: PointPattern, covariates: Covariates) -> FittedCoxProcess:
    """Fit a process to a pattern, and ask what can be asked."""
    g: Summary = pair_correlation(pattern.clipped(PolygonWindow([(0, 0), (1, 0), (0, 1)])))
    fit: FittedCoxProcess = LogGaussianCoxProcess.fit(pattern, trend=["x"], covariates=covariates)
    errors: Bootstrap = fit.bootstrap(19, random_state=0)
    curve: Envelope = fit.envelope("pcf", 39)
    left: Residuals = fit.residuals(0.1)
    where: Posterior = fit.posterior()
    trend: Trend | None = fit.trend_
    types: FittedTypes = LogGaussianCoxProcess.fit_types(pattern)
    rival: FittedPermanental = fit_permanental(pattern, fit.kernel_)
    print(g.band(), errors.intervals(), curve.p_value, left.bandwidth, where.mean, trend, rival.n_fields_)
    print(types.classifier().predict_proba(pattern.points), FitWarning, PatternWarning)
    return fit


def simulate(process: LogGaussianCoxProcess) -> Pattern:
    """Use the point processes."""
    window = Window.of([(0, 1), (0, 1)])
    one: Pattern = process.sample([(0, 1), (0, 1)], random_state=0)
    several: list[Pattern] = process.sample([(0, 1), (0, 1)], size=3)
    intensity: Intensity | None = one.intensity
    if intensity is not None:
        intensity.plot().set_title("intensity")
    both = superpose({"a": one, "b": poisson_process(1.0, [(0, 1), (0, 1)])})
    labels: LabelDistribution = label_distribution([process, process], [[0.0], [1.0]])
    print(window.dimension, len(several), labels.probabilities, Grid, CoarseGridWarning)
    return thin(both, 0.5, random_state=1)


def permanents(A: Numbers) -> float:
    """Use the alpha-permanents."""
    estimate: PermanentEstimate = importance_permanent(A, random_state=0)
    ratio = log_permanent_ratio_cyclic(A, A[:1], A[0, :1])
    return float(alpha_permanent(A) + insertion_matrix(A).sum() + estimate.insertion.sum() + ratio[0])


def on_a_cluster(X: Numbers, y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Use the classifier of Dask arrays, and the graph of all points."""
    clf = DaskLGCPClassifier(selection="loo_error", random_state=0).fit(X, y)
    print(clf.predict_proba(X), clf.predict_set(X, 0.9), clf.contributions(X, top=3), clf.label_quality()["margin"])
    graph = neighbour_distances(X, 5)
    few = SLGCPClassifier(kernel="precomputed_distances").fit(graph, y)
    labels: NDArray[np.int64] = few.transduction_
    return labels


def data() -> tuple[Numbers, NDArray[np.int64]]:
    """Load and draw data; say which version this is."""
    print(coxfield.__version__)
    try:
        load_synth()
    except (DatasetUnavailableError, CorruptDatasetError) as error:
        print(error)
    X, y = make_double_helix(10, random_state=0)
    print(X.shape, y.shape)
    return make_circles(2, random_state=0)
