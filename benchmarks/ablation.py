"""What each part of `SLGCPClassifier()` is worth: fewer graphs, more modes, single voices, a cut on top.

`python -m benchmarks.ablation` reads the sets of the book 'Semi-Supervised Learning' from the folder COXFIELD_DATA. It
takes some minutes, and is no part of `make bench`.
"""

import numpy as np

from benchmarks.harness import Row, console, show
from coxfield import threads
from coxfield.datasets import DatasetUnavailableError
from coxfield.estimators.few_labels import Prepared, View, learn_few_labels
from coxfield.field import LabelField, map_labels
from coxfield.graphs.bank import EDGE_RULES, n_modes
from coxfield.graphs.neighbours import Search
from coxfield.graphs.spectrum import spectrum_of_points
from coxfield.graphs.units import AsGiven
from coxfield_paper.studies.few_labels_sets import draw

CASES = (
    *(("digit1", 10), ("USPS", 100), ("g241c", 10), ("BCI", 100)),
    *(("digits", 1), ("digits", 10), ("double helix", 20), ("three rings", 5)),
)
DRAWS = 10
BANKS = {
    "all four graphs, 64 modes": (EDGE_RULES, 1),
    "5 neighbours alone": (EDGE_RULES[:1], 1),
    "40 neighbours alone": (EDGE_RULES[1:2], 1),
    "without one scale for all": (EDGE_RULES[:2], 1),
    "128 modes": (EDGE_RULES, 2),
}


def run(quick=False):
    for data, labels in CASES:
        try:
            errors = [one_draw(data, labels, seed) for seed in range(2 if quick else DRAWS)]
        except DatasetUnavailableError as error:
            console.print(f"{data} is left out: {error}")
            continue
        means = {name: np.mean([one[name] for one in errors]) for name in errors[0]}
        show(
            f"{data}, {labels} labels: error in per cent", [Row(name, f"{error:.2f}") for name, error in means.items()]
        )


def one_draw(data, labels, seed):
    """Errors of all variants on one draw of labels."""
    X, truth, y = draw(data, labels, seed)
    classes = truth.max() + 1
    wrong = {}

    def count(name, found):
        wrong[name] = 100 * np.mean(found != truth, where=y < 0)

    with threads.alone():
        for name, (rules, factor) in BANKS.items():
            count = factor * n_modes(len(X), classes)
            prepared = Prepared(X, views=(View(AsGiven(), spectrum_of_points(X, rules, count)),), count=count)
            few = learn_few_labels(prepared, y, np.zeros(classes))
            count(name, few.distributions.argmax(axis=1))
            if name == next(iter(BANKS)):
                whole = few
        committee = whole.committee
        count("the average alone", committee.average.probabilities(committee.sums).argmax(axis=1))
        if committee.blend is not None:
            count("the mixture alone", committee.blend.probabilities(committee.sums).argmax(axis=1))
        count("a cut on top", cut(X, y, whole.distributions))
    return wrong


def cut(X, y, distributions):
    """The most probable labelling of the graph of 5 neighbours, with the log probabilities as unary terms."""
    graph = EDGE_RULES[0].graph(Search.among(X).of_all(EDGE_RULES[0].neighbours))
    field = LabelField.from_graph(graph, y, unary=-np.log(np.maximum(distributions, 1e-12)))
    found = y.copy()
    found[field.nodes] = map_labels(field, tolerance=1e-3).labels
    return found


if __name__ == "__main__":
    run()
