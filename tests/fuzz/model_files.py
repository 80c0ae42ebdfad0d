"""Damage many model files: `PYTHONPATH=tests python -m fuzz.model_files --cases 10000 --seed 0`.

A file that was damaged must be refused in one sentence, or predict as before. A file that was changed on purpose, with
a checksum that is right, may also be another model that works.
"""

import argparse
import contextlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coxfield.io import model_file
from fuzz.model_bases import FEATURES, bases, queries, queries_for
from fuzz.model_mutations import damaged, edited

SAME, REFUSED, OTHER, FAILED = "same predictions", "refused", "another valid model", "FAILED"
SECONDS = 20  # after which a case is stopped
MEMORY = 2**33  # bytes of addresses that this process may take
EVERY = 200  # of so many cases one is given to the command line too


@dataclass(frozen=True)
class Outcome:
    """What became of one file."""

    kind: str
    detail: str


def mutant(seed, number):
    """The base, the name and the content of one case; the same every time."""
    rng = np.random.default_rng([seed, number])
    base = bases()[number % len(bases())]
    name, content = (damaged if rng.random() < 0.25 else edited)(base.content, rng)
    return base, name, content


def examine(base, name, path):
    """Load a file and predict with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _judged(base, name, path)
    except Exception:
        return Outcome(FAILED, traceback.format_exc())


def _judged(base, name, path):
    try:
        saved = model_file.load(path)
    except model_file.ModelFileError as error:
        sentence = str(error).replace(str(path), "MODEL")
        return Outcome(REFUSED if sentence.isascii() and sentence.isprintable() else FAILED, ascii(sentence)[1:-1])
    model = saved.model
    repr(model)
    if saved.ids is not None and len(saved.ids) != len(model.y_fit_):
        return Outcome(FAILED, f"{len(saved.ids)} ids for {len(model.y_fit_)} training rows")
    model.set_params(n_jobs=None)
    labels, found = model.predict_with_proba(queries_for(saved))
    same = found.shape == base.probabilities.shape and np.abs(found - base.probabilities).max() <= 1e-12
    if same and labels.tolist() == base.labels.tolist() and list(saved.features) == base.features:
        return Outcome(SAME, "")
    if name.startswith("bytes") and base.has_checksum:
        return Outcome(FAILED, "damage that was not found")
    sound = np.isfinite(found).all() and np.allclose(found.sum(axis=1), 1, atol=1e-4)
    known = set(labels.tolist()) <= set(model.classes_.tolist())
    return Outcome(OTHER if sound and known else FAILED, f"probabilities {found.tolist()}, labels {labels.tolist()}")


def on_command_line(path, outcome):
    """Whether `coxfield predict` says in one sentence what is wrong, and writes nothing then."""
    table, output = path.with_name("new.csv"), path.with_name("predictions.csv")
    rows = [",".join(FEATURES), *(",".join(map(str, row)) for row in queries(len(FEATURES)).tolist())]
    table.write_text("\n".join(rows))
    command = [sys.executable, "-m", "coxfield", "predict", path, table, "--proba", "--no-id", "-o", output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    written = output.exists()
    output.unlink(missing_ok=True)
    said = done.stderr.strip()
    # Another valid model may have other features than the table, or classes that cannot be written.
    allowed = {REFUSED: {1}, SAME: {0}, OTHER: {0, 1}}.get(outcome.kind, set())
    return done.returncode in allowed and "Traceback" not in said and written == (done.returncode == 0), said


@contextlib.contextmanager
def stopped_after(seconds):
    """A context that is left by a TimeoutError after some seconds."""

    def stop(number, frame):
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Report:
    """Outcomes of many cases."""

    counts: Counter
    sentences: Counter
    failures: list
    slowest: float = 0.0
    commands: int = 0


def run(cases, seed, *, start=0, every=EVERY, show=lambda text: None):
    """Examine many cases, one after the other, and some of them on the command line too."""
    report = Report(Counter(), Counter(), [])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        for number in range(start, start + cases):
            base, name, content = mutant(seed, number)
            path.write_bytes(content)
            began = time.perf_counter()
            try:
                with stopped_after(SECONDS):
                    outcome = examine(base, name, path)
            except TimeoutError as error:
                outcome = Outcome(FAILED, str(error))
            report.slowest = max(report.slowest, time.perf_counter() - began)
            if every and number % every == 0:
                right, said = on_command_line(path, outcome)
                report.commands += 1
                if not right:
                    outcome = Outcome(FAILED, f"on the command line after {outcome.kind}: {said}")
            _count(report, number, base, name, outcome, show)
    return report


def _count(report, number, base, name, outcome, show):
    report.counts[outcome.kind] += 1
    if outcome.kind == REFUSED:
        report.sentences["".join("#" if letter.isdigit() else letter for letter in outcome.detail)[:110]] += 1
    if outcome.kind == FAILED:
        report.failures.append(number)
        show(f"case {number}: {base.name}: {name}\n{outcome.detail}")


def main():
    """Run the fuzzer, and print what became of the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--sentences", action="store_true", help="print how often each sentence was said")
    options = parser.parse_args()
    bases()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    began = time.perf_counter()
    report = run(options.cases, options.seed, start=options.start, show=print)
    for kind in (SAME, REFUSED, OTHER, FAILED):
        print(f"{kind}: {report.counts[kind]}")
    if options.sentences:
        for sentence, count in report.sentences.most_common():
            print(f"{count:6d}  {sentence}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{report.commands} on the command line; slowest case {report.slowest:.2f} s; peak memory {peak:.0f} MB")
    print(f"{time.perf_counter() - began:.0f} s")
    return bool(report.failures)


if __name__ == "__main__":
    sys.exit(main())
