"""The studio: from a key press to the next card and to new colours, and what simulated labellers leave wrong.

`python -m benchmarks.studio speed|cost|labellers|checks`. COXFIELD_DATA names a folder with mnist.npz and ssl_usps.npz.
`speed` drives a real browser; it needs chromium and playwright. Times are measured in the page: from the event of the
key to the frame after the card, and to the frame after the colours of a model that has learned the label.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from copy import copy
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.datasets import load_digits

from benchmarks.harness import Row, show
from coxfield import SLGCPClassifier
from coxfield.datasets import DatasetUnavailableError, fetch_mnist
from coxfield.studio.rows import from_arrays, reduced
from coxfield.studio.session import Session

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--use-angle=swiftshader"]
MEASURE = """async (key) => {
  const turns = Number(document.body.dataset.turns || 0), row = document.body.dataset.row;
  const frame = () => new Promise((done) => requestAnimationFrame(() => done(performance.now())));
  const until = async (ready) => { while (!ready()) await frame(); return performance.now(); };
  const start = performance.now();
  document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const card = await until(() => document.body.dataset.row !== row);
  const colours = await until(() => Number(document.body.dataset.turns || 0) > turns);
  return [card - start, colours - start];
}"""
PAN = """async () => {
  const map = window.studioMap, times = [];
  for (let k = 0; k < 60; k++) {
    map.centre = [0.3 * Math.sin(k / 9), 0.2 * Math.cos(k / 7)];
    map.draw();
    await new Promise((done) => requestAnimationFrame(done));
    map.gl?.finish();
    times.push(performance.now());
  }
  return 59000 / (times.at(-1) - times[0]);
}"""


def mnist():
    data = fetch_mnist()
    X = np.vstack([data.X_train, data.X_test]).reshape(-1, 784)
    return X.astype(np.float32), np.concatenate([data.y_train, data.y_test]).astype(str)


def sets(names):
    """Title, points, true labels and the shape of their pictures. A number stands for so many rows of MNIST."""
    for name in names:
        try:
            if name == "digits":
                X, y = load_digits(return_X_y=True)
                yield name, X, y.astype(str), (8, 8)
            elif name == "usps":
                with np.load(Path(os.environ.get("COXFIELD_DATA", ".")) / "ssl_usps.npz") as data:
                    yield name, data["X"], data["y"].ravel().astype(str), None
            else:
                X, y = mnist()
                yield f"MNIST {int(name):,}", X[: int(name)], y[: int(name)], (28, 28)
        except (DatasetUnavailableError, FileNotFoundError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)


def speed(names, keys):
    from playwright.sync_api import sync_playwright

    rows = []
    for name, X, truth, shape in sets(names):
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
            path = Path(folder) / "data.parquet"
            pl.DataFrame({f"p{k}": X[:, k] for k in range(X.shape[1])}).write_parquet(path)
            words = [sys.executable, "-m", "coxfield", "studio", str(path), "--no-browser", "--check-every", "0"]
            words += [] if shape is None else ["--pixels", f"{shape[0]}x{shape[1]}"]
            process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
            try:
                start = time.perf_counter()
                address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
                browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(address)
                _until(page, "document.body.dataset.row !== undefined && Number(document.body.dataset.turns) > 0")
                ready = time.perf_counter() - start
                times = [_pressed(page, truth) for _ in range(keys)]
                frames = page.evaluate(PAN)
                memory = _megabytes(process.pid)
                browser.close()
            finally:
                process.kill()
                process.wait()
        cards, colours = np.array(times[12:]).T  # after the first keys there are classes
        rows += [
            Row(f"{name}: next card", _quantiles(cards), "50 ms"),
            Row(f"{name}: new colours", _quantiles(colours), "1,000 ms"),
            Row(
                f"{name}: ready for the first question; panning; memory", f"{ready:.0f} s; {frames:.0f}/s; {memory} MB"
            ),
        ]
        show(f"Studio, {keys - 12} keys, load of the machine {os.getloadavg()[0]:.0f}", rows[-3:])
    return rows


def _until(page, condition, patience=300):
    end = time.monotonic() + patience
    while not page.evaluate(condition):
        if time.monotonic() > end:
            raise TimeoutError(f"still not: {condition}")
        time.sleep(0.05)


def _pressed(page, truth):
    _until(page, "document.body.dataset.busy === 'no'")
    label = truth[int(page.evaluate("document.body.dataset.row"))]
    known = page.evaluate("[...document.querySelectorAll('#classes kbd')].map((key) => key.textContent)")
    if label not in known:
        before = page.evaluate("document.body.dataset.row")
        page.keyboard.press("a")
        page.wait_for_selector("dialog[open] input")
        page.keyboard.type(label)
        page.keyboard.press("Enter")
        _until(page, f"document.body.dataset.row !== '{before}' && document.getElementById('thinking').hidden")
        return np.nan, np.nan
    found = page.evaluate(MEASURE, label)
    time.sleep(0.3)  # a person thinks
    return found


def _quantiles(times):
    times = times[~np.isnan(times)]
    return f"median {np.median(times):.0f} ms, 95 % {np.quantile(times, 0.95):.0f} ms"


def _megabytes(number):
    for line in Path(f"/proc/{number}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024)
    return "?"


def cost(names, keys=20):
    """Processor time of one key in the process of the studio: the label, and all that the model makes of it.

    Other programs on the machine do not change it much, as they change `speed`.
    """
    for name, X, truth, _ in sets(names):
        start = time.process_time()
        session = Session(from_arrays(X), check_every=0)
        session.start()
        session.learner.wait()
        ready = time.process_time() - start
        times = []
        for _ in range(12 + keys):
            row = session.next()
            start = time.process_time()
            session.label([row], truth[row])
            session.learner.wait()
            times.append(1000 * (time.process_time() - start))
        session.end()
        rows = [
            Row("graphs of all rows, and the map, once", f"{ready:.1f} s"),
            Row("a key: colours, questions, doubtful labels", _quantiles(np.array(times[12:]))),
        ]
        show(f"Processor time of the studio, {name}", rows)


def prepared(X):
    """Graphs of all rows, as the studio makes them. They depend on neither labels nor chance."""
    return SLGCPClassifier(classes=[]).fit(reduced(X), np.full(len(X), -1))


def labeller(X, truth, keys, slips, seed, model, *, check_every=10):
    """Errors left after some numbers of keys, and the interval of the checks at the end."""
    rng = np.random.default_rng(seed)
    session = Session(from_arrays(X), check_every=check_every, random_state=seed)
    session.learner.model = copy(model).set_params(random_state=seed)
    session.learner.model.fit = session.learner._place = lambda *_: None  # the graphs are there; nobody sees the map
    session.start()
    session.learner.wait()
    names = np.unique(truth)
    left = {}
    for key in range(1, max(keys) + 1):
        row = session.next()
        said = rng.choice(names[names != truth[row]]) if rng.random() < slips else truth[row]
        session.label([row], said, check=True)
        session.learner.wait()
        if key in keys:
            left[key] = int((session.labelled()["label"] != truth).sum())
    measured = session.measured()
    found = session.learner.answer
    free = session.labels.codes < 0
    names_found = np.array([*session.labels.classes, None], dtype=object)[
        np.minimum(found.found, len(session.labels.classes))
    ]
    session.end()
    return left, measured, float(np.mean(names_found[free] != truth[free]))


def labellers(names, seeds, slips=(0.0, 0.05), keys=(20, 40, 100)):
    for name, X, truth, _ in sets(names):
        rows, model = [], prepared(X)
        for share in slips:
            title = f", {share:.0%} slips" if share else ""
            runs = [labeller(X, truth, keys, share, seed, model)[0] for seed in seeds]
            rows.append(Row(f"studio{title}", " / ".join(f"{np.mean([run[key] for run in runs]):.0f}" for key in keys)))
            rows.append(Row(f"random order{title}", random_order(model, truth, keys, share, seeds)))
        show(f"{name}: errors left of {len(X):,} after {' / '.join(map(str, keys))} keys, {len(seeds)} runs", rows)


def random_order(model, truth, keys, slips, seeds):
    """What `SLGCPClassifier` leaves wrong with as many labels of random rows."""
    names, codes = np.unique(truth, return_inverse=True)
    wrong = np.zeros((len(seeds), len(keys)))
    for run, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        n = len(truth)
        order = rng.permutation(n)
        said = np.where(rng.random(n) < slips, (codes + rng.integers(1, len(names), n)) % len(names), codes)
        for k, key in enumerate(keys):
            y = np.full(n, -1)
            y[order[:key]] = said[order[:key]]
            wrong[run, k] = (model.relabel(y).transduction_ != codes).sum()
    return " / ".join(f"{mean:.0f}" for mean in wrong.mean(axis=0))


def checks(runs, keys=60):
    """How often the interval of the checks holds the true error of the model on rows without a label."""
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(1)
    inside, shares = 0, []
    for seed in range(runs):
        some = rng.choice(len(X), 500, replace=False)
        part, names = X[some], truth[some].astype(str)
        _, measured, true = labeller(part, names, (keys,), 0.0, seed, prepared(part), check_every=4)
        inside += measured.low <= true <= measured.high
        shares.append((measured.wrong / measured.checks, true))
    found, true = np.mean(shares, axis=0)
    rows = [
        Row("interval holds the true error", f"{inside} of {runs}", "95 %"),
        Row("mean share of wrong checks; mean true error", f"{found:.3f}; {true:.3f}"),
    ]
    show(f"Checks: 500 digits, {keys} keys, each fourth a check", rows)


def run(quick=False):
    labellers(["digits"], range(1 if quick else 10), keys=(10, 20) if quick else (20, 40, 100))
    checks(2 if quick else 40, keys=20 if quick else 60)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "cost", "labellers", "checks"))
    parser.add_argument(
        "--data", nargs="*", default=["digits", "20000", "70000"], help="digits, usps, or a number of rows of MNIST"
    )
    parser.add_argument("--slips", type=float, nargs="*", default=[0.0, 0.05], help="shares of wrong answers")
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.what == "speed":
        speed(options.data, options.keys)
    elif options.what == "cost":
        cost(options.data)
    elif options.what == "labellers":
        labellers(options.data, range(options.runs), options.slips)
    else:
        checks(options.runs)
