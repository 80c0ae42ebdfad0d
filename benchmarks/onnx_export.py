"""Models as ONNX graphs: ten sets in both precisions, the largest difference from the library, file size, and time.

Sets are scikit-learn's and generated ones, each cut in two halves: one is fitted, the other predicted. onnxruntime and
the library have one thread each; times are of the processor. The graph computes in double precision, with the densities
of the training points that the model has. So a model of single precision differs by what the library rounds when it
predicts: squared distances, by up to eps (|x|^2 + |x'|^2) / scale^2, far more than probabilities.
"""

from time import process_time

import numpy as np
import onnxruntime
from sklearn import datasets as sk

from benchmarks.harness import Row, seconds, show
from coxfield import LGCPClassifier
from coxfield.datasets import load_pima, load_synth, make_circles
from coxfield.io import onnx_export

PROMISES = {"float64": 1e-10, "float32": 1e-5}
REPEATS = 5


def sets():
    """Ten sets: X and y."""
    yield "iris", sk.load_iris(return_X_y=True)
    yield "wine", sk.load_wine(return_X_y=True)
    yield "breast cancer", sk.load_breast_cancer(return_X_y=True)
    yield "digits", sk.load_digits(return_X_y=True)
    yield "moons", sk.make_moons(500, noise=0.3, random_state=0)
    yield "blobs", sk.make_blobs(600, 5, centers=4, cluster_std=3.0, random_state=0)
    yield "hard", sk.make_classification(800, 20, n_informative=6, n_classes=3, random_state=0)
    yield "rings", make_circles(3, random_state=0)
    for name, load in (("Synth", load_synth), ("Diabetes", load_pima)):
        data = load()
        yield name, (np.vstack([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test]))


def measured(name, X, y):
    """The rows of one set."""
    found = []
    for precision in (np.float64, np.float32):
        train, test = X[::2].astype(precision), X[1::2].astype(precision)
        model = LGCPClassifier(n_jobs=1).fit(train, y[::2])
        content = onnx_export.graph(model).SerializeToString()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(content, options)
        probabilities = session.run(["probabilities"], {"X": test})[0]
        worst = np.abs(probabilities - model.predict_proba(test)).max()
        theirs = seconds(lambda s=session, Z=test: s.run(None, {"X": Z}), REPEATS, process_time)
        ours = seconds(lambda m=model, Z=test: m.predict_with_proba(Z), REPEATS, process_time)
        what = f"{worst:.1e}; {len(content) / 1e3:,.0f} kB; {1e3 * theirs:.1f} ms, ours {1e3 * ours:.1f} ms"
        digits = np.dtype(precision).name
        title = f"{name}, {digits}, {len(train)} x {train.shape[1]}"
        found.append(Row(title, what, f"at most {PROMISES[digits]:g}"))
    return found


def run(quick=False):
    chosen = list(sets())[: 3 if quick else None]
    show(
        "ONNX: largest difference, size, time of all new rows",
        [row for name, s in chosen for row in measured(name, *s)],
    )


if __name__ == "__main__":
    run()
