"""What `import coxfield` and its classifier cost, beside the import of scikit-learn's neighbours.

Each program runs in a process of its own, in turn with the other, so that other work on the machine slows both. The
start of Python is part of both.
"""

import subprocess
import sys
from statistics import median
from time import perf_counter

from benchmarks.harness import Row, show

OURS = "import coxfield; coxfield.LGCPClassifier"
PEER = "import sklearn.neighbors"
PROMISE = 1.15


def seconds(program):
    start = perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return perf_counter() - start


def run(quick=False):
    times = {program: [] for program in (PEER, OURS)}
    for program in times:
        seconds(program)  # not counted: files are read from the disk, and compiled
    for _ in range(3 if quick else 15):
        for program, taken in times.items():
            taken.append(seconds(program))
    peer, ours = (median(taken) for taken in times.values())
    show(
        "Import time, median",
        [
            Row(PEER, f"{1000 * peer:.0f} ms"),
            Row(OURS, f"{1000 * ours:.0f} ms"),
            Row("ratio", f"{ours / peer:.3f}", f"at most {PROMISE}"),
        ],
    )


if __name__ == "__main__":
    run()
