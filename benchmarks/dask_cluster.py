"""`DaskLGCPClassifier` on a cluster of two processes: beside one machine, within little memory, and its growth.

`python -m benchmarks.dask_cluster --costs` compares the formulas of docs/scaling.md with measurements.
"""

import argparse
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.harness import Row, console, images, seconds, show
from coxfield import LGCPClassifier

KERNEL = RBF(2.0)
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "dask_growth.png"
BIG = {"n": 10**8, "q": 10**6, "d": 784, "classes": 10, "shards": 10**4, "workers": 100, "rows": 10**4, "scales": 30}


def run(quick=False):
    if not _has_dask():
        return
    beside_memory(*((6000, 2000) if quick else (60_000, 10_000)))
    little_memory(450 if quick else 700)
    growth(*((2000, 1000) if quick else (10_000, 5000)), save=not quick)
    costs(quick)


def _has_dask():
    try:
        import coxfield.dask  # noqa: F401
    except ImportError as error:
        console.print(f"The cluster is left out: {error}")
        return False
    return True


@contextmanager
def cluster(**options):
    """A client of two workers with one thread each, on the loopback interface."""
    from distributed import Client, LocalCluster

    import dask

    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0, "host": "127.0.0.1", **options}
    with (
        dask.config.set({"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}),
        LocalCluster(dashboard_address="127.0.0.1:0", silence_logs=50, **options) as workers,
        Client(workers) as client,
    ):
        client.run(_ready)
        yield client


def _ready():
    """Let a worker import what it needs, before a clock starts."""
    X = np.random.default_rng(0).random((200, 5), dtype=np.float32)
    LGCPClassifier(KERNEL, selection=None).fit(X, X[:, 0] > 0.5).predict(X)


def held(array, rows):
    """An array on the workers, in chunks of rows."""
    import dask.array as da
    from distributed import wait

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        there = da.from_array(array, chunks=(rows, *array.shape[1:])).persist()
        wait(there)
    return there


def fitted(X, y, rows):
    """A classifier of arrays, or of arrays that are held on the workers already."""
    from coxfield.dask import DaskLGCPClassifier

    X, y = (part if hasattr(part, "dask") else held(part, rows) for part in (X, y))
    return DaskLGCPClassifier(KERNEL, selection=None).fit(X, y)


def beside_memory(n, q, rounds=3):
    """Two workers with one thread each, beside two threads of the estimator in memory, in turns; medians of rounds."""
    X, y, Q = images(n, q, np.float32)
    here = LGCPClassifier(KERNEL, selection=None, n_jobs=2).fit(X, y)
    with cluster() as client:
        clf = fitted(X, y, n // 6)
        queries = {rows: held(Q, rows) for rows in (q // 2, q // 8)}
        jobs = {"memory": (time.process_time, lambda: here.predict_proba(Q))}
        for rows, blocks in queries.items():
            clf.predict_proba(blocks[:rows]).compute()
            jobs[rows] = partial(_processor_time, client), partial(dask_compute, clf, blocks)
        taken = {name: [] for name in jobs}
        for _ in range(rounds):  # in turns, because the speed of a machine drifts
            for name, job in jobs.items():
                taken[name].append(_times(*job))
        apart = np.abs(clf.predict_proba(blocks[:rows]).compute() - here.predict_proba(Q[:rows])).max()
    alone = np.array(taken.pop("memory"))
    table = [Row("in memory, two threads", f"{np.median(alone[:, 0]):.1f} s")]
    for rows, there in taken.items():
        wall, used = np.median(np.array(there) / alone, axis=0)
        table += [
            Row(f"two workers, blocks of {rows:,} queries", f"{np.median(there, axis=0)[0]:.1f} s"),
            Row("   ratio", f"{wall:.2f}", "at most 1.25" if rows == q // 2 else ""),
            Row("   ratio of processor times", f"{used:.2f}"),
        ]
    table.append(Row("largest difference of probabilities", f"{apart:.1g}"))
    show(f"Probabilities of {q:,} queries from {n:,} points, 784 features, float32, 10 classes", table)


def _times(clock, job):
    """Seconds that a job takes: on the wall, and by a clock of processors."""
    before, start = clock(), time.perf_counter()
    job()
    wall = time.perf_counter() - start
    return wall, clock() - before


def _processor_time(client):
    return sum(client.run(time.process_time).values())


def little_memory(limit, rows=5000):
    """Training points that are four times larger than the memory of a worker, made again whenever they are needed."""
    import dask.array as da

    from coxfield.dask import DaskLGCPClassifier

    n = 4 * limit * 2**20 // (784 * 4) // rows * rows
    rng = da.random.default_rng(0)
    X, y = rng.random((n, 784), dtype="f4", chunks=(rows, 784)), rng.integers(10, size=n, chunks=rows)
    with cluster(memory_limit=limit * 2**20) as client:
        clf = DaskLGCPClassifier(selection="loo_log_loss", length_scales=[8.0, 4.0], selection_rows=100, random_state=0)
        taken = seconds(lambda: clf.fit(X, y), 1)
        asked = seconds(lambda: clf.predict(X[:200]).compute(), 1)
        peaks = client.run(_peak_megabytes).values()
        restarts = client.run_on_scheduler(_failures)
    table = [
        Row("training points", f"{n * 784 * 4 / 2**20:.0f} MiB", f"{4 * limit} MiB"),
        Row("most memory of a worker", f"{max(peaks):.0f} MiB", f"below {limit} MiB"),
        Row("fit, 100 rows choose", f"{taken:.0f} s"),
        Row("predict 200 rows", f"{asked:.0f} s"),
        Row("tasks that failed", str(restarts), "0"),
    ]
    show(f"{n:,} points, 784 features, float32, memory limit {limit} MiB, nothing spilled", table)


def _failures(dask_scheduler):
    return sum(group.states.get("erred", 0) for group in dask_scheduler.task_groups.values())


def _peak_megabytes():
    """Not `getrusage`, whose peak is never below that of the process that started this one."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


def worked(client, job):
    """Processor time that the workers take for a job."""
    return _times(partial(_processor_time, client), job)[1]


def growth(rows, some, save=False, rounds=3):
    """Processor time against the number of shards, and against the number of blocks of queries; least of rounds."""
    counts = (2, 4, 8)
    rng = np.random.default_rng(0)
    X, y = 0.4 * rng.random((counts[-1] * rows, 784), dtype=np.float32), rng.integers(10, size=counts[-1] * rows)
    Q = 0.4 * rng.random((counts[-1] * some, 784), dtype=np.float32)
    names = f"shards of {rows:,} points", f"blocks of {some:,} queries"
    with cluster() as client:
        fits = {count: fitted(X[: count * rows], y[: count * rows], rows) for count in counts}
        asked = {count: held(Q[: count * some], some) for count in counts}
        taken = np.empty((rounds, 2, len(counts)))
        for k in range(rounds):  # in turns, because the speed of a machine drifts
            for j, count in enumerate(counts):
                for which, (clf, queries) in enumerate(((fits[count], asked[4]), (fits[4], asked[count]))):
                    job = partial(dask_compute, clf, queries)
                    taken[k, which, j] = worked(client, job)
    times = dict(zip(names, taken.min(axis=0).tolist(), strict=True))
    slopes = {name: np.polyfit(np.log(counts), np.log(least), 1)[0] for name, least in times.items()}
    table = [Row(name, ", ".join(f"{t:.1f} s" for t in least)) for name, least in times.items()]
    table += [Row(f"exponent, {name}", f"{slope:.2f}", "0.95 to 1.05") for name, slope in slopes.items()]
    show(f"Processor time of {counts} shards or blocks, 784 features, float32", table)
    if save:
        draw(counts, times, slopes)


def dask_compute(clf, queries):
    """The probabilities of queries."""
    return clf.predict_proba(queries).compute()


def draw(counts, times, slopes, path=PICTURE):
    """The growth, as a picture."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
    for name, taken in times.items():
        axes.loglog(counts, taken, "o-", base=2, label=f"{name}: exponent {slopes[name]:.2f}")
    axes.set(xlabel="number of shards, or of blocks of queries", ylabel="processor time in s")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def cost(n, q, d, classes, shards, workers, width=4):
    """The formulas of docs/scaling.md for a prediction."""
    other = (workers - 1) / workers
    return {
        "operations": n * q * (2 * d + 20),
        "moved": workers * q * d * width + other * q * shards * (16 * classes + 1) + q * classes * width,
        "held": n * (d * width + 8),
    }


def fit_cost(n, rows, d, classes, shards, workers, scales, width=4):
    """The formulas of docs/scaling.md for a selection; all rows are looked at once before it."""
    other = (workers - 1) / workers
    return {
        "operations": rows * n * (2 * 2 * d + 6 * scales),
        "moved": 2 * workers * rows * d * width + other * shards * rows * 8 * classes * scales,
        "held": 8 * rows * classes * scales,
    }


def received(client, X):
    """Bytes that workers have received: of X, and of all else."""
    found = client.run(_received).values()
    moved = [(name == X.name, size) for transfers in found for name, size in transfers]
    return np.array([sum(size for of_X, size in moved if of_X is kind) for kind in (True, False)])


def _received(dask_worker):
    log = dask_worker.transfer_incoming_log
    return [(key[0], size) for entry in log for key, size in entry["keys"].items()]


def _held(dask_worker):
    return sum(getattr(value, "nbytes", 0) for value in dask_worker.data.values())


def costs(quick=False):
    """Formulas beside measurements at three sizes, and what they say of a hundred million points."""
    rng, table = np.random.default_rng(0), []
    sizes = (
        [(4000, 1000), (8000, 2000), (16_000, 4000)] if quick else [(20_000, 5000), (40_000, 5000), (60_000, 10_000)]
    )
    for n, q in sizes:
        X, Q = (0.4 * rng.random((m, 784), dtype=np.float32) for m in (n, q))
        y, said = rng.integers(10, size=n), cost(n, q, 784, 10, 4, 2)
        with cluster() as client:
            shards, queries = held(X, n // 4), held(Q, q // 4)
            clf = fitted(shards, y, n // 4)
            inside = sum(client.run(_held).values()) - Q.nbytes
            clf.predict(queries[: q // 4]).compute()
            before = received(client, shards)
            taken = worked(client, lambda clf=clf, queries=queries: clf.predict_proba(queries).compute())
            of_shards, others = received(client, shards) - before
        rate = said["operations"] / taken
        table += [
            Row(f"{n:,} x {q:,}: operations", f"{taken:.1f} s", f"{said['operations']:.3g}, {rate / 1e9:.0f} per ns"),
            Row("   queries and sums moved", f"{others / 1e6:.1f} MB", f"at most {said['moved'] / 1e6:.1f} MB"),
            Row("   shards moved by the scheduler", f"{of_shards / 1e6:.1f} MB"),
            Row("   bytes held", f"{inside / 1e6:.1f} MB", f"{said['held'] / 1e6:.1f} MB"),
        ]
    show("Costs of a prediction on two workers, 4 shards, 4 blocks: measured and by formula", table)
    far(rate)


def far(rate):
    """A hundred million points on a hundred workers, at the rate that was measured here."""
    size = {name: BIG[name] for name in ("n", "d", "classes", "shards", "workers")}
    one = cost(q=BIG["q"], **size)
    choice = fit_cost(rows=BIG["rows"], scales=BIG["scales"], **size)
    rows = []
    for name, said in (("a million predictions", one), ("selection by 10,000 rows", choice)):
        hours = said["operations"] / rate / BIG["workers"] / 3600
        rows += [
            Row(f"{name}: operations", f"{said['operations']:.2g}, {hours:.1f} h"),
            Row("   bytes moved per worker", f"{said['moved'] / BIG['workers'] / 1e9:.1f} GB"),
            Row("   bytes held per worker", f"{said['held'] / BIG['workers'] / 1e9:.2f} GB"),
        ]
    show(
        "A hundred million points of 784 float32 features on 100 workers, by formula, at the rate of this machine", rows
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--costs", action="store_true", help="only formulas beside measurements")
    options = parser.parse_args()
    if not options.costs:
        run(options.quick)
    elif _has_dask():
        costs(options.quick)
