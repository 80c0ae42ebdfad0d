"""Whatever takes long by default says so: with no patience, each piece of work gives a warning that names it."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from coxfield import LGCPClassifier, PermanentalClassifier, SLGCPClassifier, progress
from coxfield.baselines import HarmonicFunctions, ParzenClassifier, SVMClassifier, VariationalGPClassifier
from coxfield.estimators import scored
from coxfield.field import (
    Gibbs,
    LabelField,
    PerturbAndMap,
    RandomisedCut,
    SwendsenWang,
    log_partition,
    map_labels,
    sample,
)
from coxfield.process import LogGaussianCoxProcess, sample_gaussian_field, thinned_label_distribution

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
Y = (X[:, 0] > 0).astype(int)
MORE = np.tile(X, (2, 1)), np.tile(Y, 2)  # more than a tile
FEW = np.where(np.arange(400) < 12, Y, -1)
KERNEL = RBF(0.3)
FIELD = LabelField.from_points(X[:60], RBF(0.5), np.where(np.arange(60) < 8, np.arange(60) % 4, -1))
FREE = LabelField.from_points(X[:18], RBF(0.5), [-1] * 18)
WINDOW = [(0.0, 4.0), (0.0, 4.0)]
PROCESS = LogGaussianCoxProcess(RBF(1.0))
DRAWN = {"inference": "marginals", "length_scales": [0.3], "random_state": 0}

FITTED = SLGCPClassifier().fit(X, FEW)
WORK = {
    "leave-one-out sums of": lambda: LGCPClassifier().fit(X, Y),
    "weights of": lambda: LGCPClassifier().fit(X, Y),
    "leave-one-out, 24 length scales": lambda: LGCPClassifier(selection="loo_error").fit(*MORE),
    "learning, 100 steps": lambda: LGCPClassifier(selection="pseudo_likelihood").fit(X, Y),
    "4 graphs of 400 points": lambda: SLGCPClassifier().fit(X, FEW),
    "modes of the graph": lambda: SLGCPClassifier("precomputed").fit(KERNEL(X), FEW),
    "cross validation, 24 length scales": lambda: SLGCPClassifier(KERNEL, inference="map").fit(X, FEW),
    "cross validation of marginals": lambda: SLGCPClassifier(KERNEL, **DRAWN).fit(X[:60], FEW[:60]),
    "draws": lambda: SLGCPClassifier(KERNEL, **DRAWN).fit(X[:60], FEW[:60]),
    "scores of 400 points": lambda: LGCPClassifier(KERNEL, selection=None).fit(X, Y).predict(X),
    "leave-one-out, 6 length scales": lambda: PermanentalClassifier().fit(X[:40], Y[:40]),
    "ratios of 40 points": lambda: PermanentalClassifier(KERNEL, selection=None).fit(X[:40], Y[:40]).predict(X[:40]),
    "neighbours of 400 points": lambda: FITTED.predict(X),
    "harmonic functions, 24 length": lambda: HarmonicFunctions().fit(X[:60], FEW[:60]),
    "11 starts": lambda: VariationalGPClassifier(random_state=0).fit(X[:40], Y[:40]),
    "leave-one-out, 3 length scales": lambda: SVMClassifier(length_scales=[1.0, 0.5, 0.2]).fit(X[:60], Y[:60]),
    "leave-one-out, 24": lambda: ParzenClassifier().fit(*MORE),
    "minimum cuts of the label field": lambda: map_labels(FIELD),
    "lower bound of the energy": lambda: map_labels(FIELD),
    "draws from 4 chains": lambda: sample(Gibbs(FIELD), 20, random_state=0),
    "draws from 3 chains": lambda: sample(SwendsenWang(FIELD), 20, n_chains=3, random_state=0),
    "draws from 2 chains": lambda: sample(PerturbAndMap(FIELD), 20, n_chains=2, random_state=0),
    "draws from 1 chains": lambda: sample(RandomisedCut(FIELD), 20, n_chains=1, random_state=0),
    "annealing of 64 pilots": lambda: log_partition(FREE, method="annealing", random_state=0),
    "annealing of 512 particles": lambda: log_partition(FREE, method="annealing", random_state=0),
    "subgraphs of 8 chains": lambda: log_partition(FREE, method="subgraphs", n_particles=8, random_state=0),
    "9 patterns": lambda: PROCESS.sample(WINDOW, resolution=8, size=9, random_state=0),
    "9 fields": lambda: sample_gaussian_field(RBF(1.0), WINDOW, resolution=8, size=9, random_state=0),
    "100 intensities": lambda: thinned_label_distribution(
        [PROCESS, PROCESS], [[1.0, 1.0]], WINDOW, 0.5, n_samples=100, resolution=8, random_state=0
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_work_that_may_take_long_says_so(name, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(scored, "ROWS", 100)
    monkeypatch.setattr("coxfield.graphs.neighbours.AT_ONCE", 100)
    monkeypatch.setattr("coxfield.process.fields.AT_ONCE", 2**8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", progress.SlowWarning)
        WORK[name]()
    sentences = [str(warning.message) for warning in caught]
    assert any(sentence.startswith(name) for sentence in sentences), sentences
    assert len(set(sentences)) == len(sentences)
