"""Label fields on a graph that is given: noisy pictures whose pixels are coupled with their four neighbours.

The exact most probable labelling of two classes is timed beside PyMaxflow on the same grid, and beside the max-flow
engine alone. Three classes are labelled by alpha-expansion, with a bound on how far the energy is from the minimum.
"""

import argparse
import importlib.util
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.feature_extraction.image import grid_to_graph

from benchmarks.harness import Row, show
from coxfield.field import LabelField, map_labels
from coxfield.field.mincut import min_cut

TOLERANCE = 1e-4  # of three classes: the bound rises slowly, and each step is three cuts


@dataclass(frozen=True)
class Picture:
    """A picture whose grey levels are class numbers plus noise, to be cleaned with a coupling between neighbours."""

    side: int
    n_classes: int
    noise: float
    coupling: float

    @property
    def name(self):
        """How hard it is."""
        return f"noise {self.noise:g}, coupling {self.coupling:g}"

    def truth(self):
        """Smooth regions: the class whose blurred noise is the largest."""
        rng = np.random.default_rng(0)
        heights = rng.normal(size=(self.n_classes, self.side, self.side))
        return np.argmax([gaussian_filter(one, self.side / 20, mode="wrap") for one in heights], axis=0)

    def grey(self):
        """The grey level of each pixel."""
        return self.truth() + self.noise * np.random.default_rng(1).normal(size=(self.side, self.side))

    def costs(self):
        """Negative log likelihoods of the classes, shape (pixels, n_classes)."""
        return np.square(self.grey().reshape(-1, 1) - np.arange(self.n_classes)) / (2 * self.noise**2)

    def field(self):
        """The label field of the pixels."""
        couplings = self.coupling * grid_to_graph(self.side, self.side)
        return LabelField.from_graph(couplings, np.full(self.side**2, -1), unary=self.costs())


EASY, HARD = Picture(1000, 2, 1.0, 1.0), Picture(1000, 2, 2.0, 3.0)
THREE = Picture(1000, 3, 0.5, 1.0), Picture(1000, 3, 1.0, 1.0)


def py_maxflow(picture, pull):
    """Boykov and Kolmogorov's algorithm, given the picture as a grid: the labels."""
    import maxflow

    network = maxflow.GraphFloat(pull.size, 2 * pull.size)
    nodes = network.add_grid_nodes((picture.side, picture.side))
    cross = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    network.add_grid_edges(nodes, picture.coupling, structure=cross, symmetric=False)
    pull = pull.reshape(nodes.shape)
    network.add_grid_tedges(nodes, np.maximum(pull, 0), np.maximum(-pull, 0))
    network.maxflow()
    return (~network.get_grid_segments(nodes)).ravel()


def own_engine(picture, pull):
    """The max-flow engine of the package, given the same cut as a list of edges: the labels."""
    number = np.arange(pull.size).reshape(picture.side, -1)
    i = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    j = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    return min_cut(np.maximum(pull, 0), np.maximum(-pull, 0), i, j, np.full(len(i), picture.coupling)).side


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def ours(picture, tolerance=1e-9):
    """Build the field and label it; in a process of its own, so that its peak memory is known."""
    before = megabytes()
    building, field = timed(picture.field)
    solving, result = timed(lambda: map_labels(field, tolerance=tolerance))
    wrong = np.mean(result.labels != picture.truth().ravel())
    return {"building": building, "solving": solving, "MB": megabytes() - before, "result": result, "wrong": wrong}


def bare(picture, cut):
    """An engine on the cut that the field comes to; in a process of its own."""
    before = megabytes()
    costs = picture.costs()
    pull = costs[:, 0] - costs[:, 1]
    seconds, labels = timed(lambda: cut(picture, pull))
    peak = megabytes() - before
    return {"seconds": seconds, "MB": peak, "energy": picture.field().energy(labels.astype(int))}


def alone(work, *arguments):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def two_classes(picture):
    """The rows of a table: the exact labelling beside two engines."""
    found, engine = alone(ours, picture), alone(bare, picture, own_engine)
    result = found["result"]
    yield Row(f"{picture.name}: costs, graph and field", f"{found['building']:.1f} s")
    yield Row("map_labels, beside the engine alone", f"{found['solving'] / engine['seconds']:.2f}", "at most 2")
    yield Row("map_labels", f"{found['solving']:.1f} s, {found['MB']:,.0f} MB with the field")
    yield Row("its engine alone", f"{engine['seconds']:.1f} s, {engine['MB']:,.0f} MB")
    energies = [engine["energy"]]
    if importlib.util.find_spec("maxflow"):  # under the GPL, so that it serves only here and in tests
        peer = alone(bare, picture, py_maxflow)
        energies.append(peer["energy"])
        yield Row("PyMaxflow", f"{peer['seconds']:.1f} s, {peer['MB']:,.0f} MB")
        yield Row("map_labels, beside PyMaxflow", f"{found['solving'] / peer['seconds']:.1f}")
    apart = max(abs(result.energy - energy) for energy in energies) / result.cost
    yield Row("energies differ by, relative to the cost", f"{apart:.0e}", "at most 1e-9")
    yield Row("cuts, relative gap", f"{result.cuts}, {result.relative_gap:.0e}", "1, below 1e-9")
    yield Row("wrong pixels", f"{100 * found['wrong']:.2f} %")


def three_classes(picture):
    """The rows of a table: alpha-expansion and its gap."""
    found = alone(ours, picture, TOLERANCE)
    result = found["result"]
    yield Row(f"{picture.name}: costs, graph and field", f"{found['building']:.1f} s")
    yield Row("map_labels", f"{found['solving']:.1f} s, {found['MB']:,.0f} MB with the field")
    yield Row(f"cuts until the relative gap is {TOLERANCE:g}, or no step helps", f"{result.cuts}")
    yield Row("relative gap", f"{result.relative_gap:.0e}")
    yield Row("labels proven", f"{100 * result.certified.mean():.1f} %")
    yield Row("wrong pixels", f"{100 * found['wrong']:.2f} %")


def draw(path):
    """Truth, noisy picture and labels, for two classes and for three."""
    from matplotlib.colors import ListedColormap

    from coxfield.plotting import COLOURS, encode, figure

    pictures = Picture(160, 2, 1.0, 1.0), Picture(160, 3, 0.7, 1.5)
    drawing = figure(7.2, 4.9)
    for row, picture in enumerate(pictures):
        labels = map_labels(picture.field()).labels.reshape(picture.side, -1)
        wrong = 100 * np.mean(labels != picture.truth())
        classes = {"cmap": ListedColormap(COLOURS[: picture.n_classes]), "vmin": 0, "vmax": picture.n_classes - 1}
        panels = (
            ("truth", picture.truth(), classes),
            ("noisy picture", picture.grey(), {"cmap": "gray"}),
            (f"labels, {wrong:.1f} % wrong", labels, classes),
        )
        for column, (title, image, style) in enumerate(panels):
            ax = drawing.add_subplot(2, 3, 3 * row + column + 1, title=title, xticks=[], yticks=[])
            ax.imshow(image, interpolation="nearest", **style)
    path.write_bytes(encode(drawing, path))


def run(quick=False, plot=None):
    for pictures, measure in (((EASY, HARD), two_classes), (THREE, three_classes)):
        sized = [replace(one, side=150) if quick else one for one in pictures]
        title = f"{sized[0].side ** 2:,} pixels of {sized[0].n_classes} classes, each coupled with four neighbours"
        show(title, [row for one in sized for row in measure(one)])
    if plot is not None:
        draw(plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--plot", type=Path, help="file for a picture, such as docs/images/sparse_field.png")
    options = parser.parse_args()
    run(options.quick, options.plot)
