"""`coxfield serve` under load, on the loopback only: latency, memory, wrong requests, clients that hang up.

The server is a process of its own with one thread for predictions; the client is this process. Latencies grow with
whatever else the machine does; the server's processor time for a request hardly does. Sizes are small enough for a
minute or two.
"""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

from benchmarks.harness import Row, show
from coxfield import LGCPClassifier
from coxfield.io import model_file

TRAINING, FEATURES = 1000, 10
NAMES = [f"x{k}" for k in range(FEATURES)]


def model(folder):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, TRAINING)
    X = rng.normal(size=(TRAINING, FEATURES)) + np.eye(3, FEATURES)[y] * 2
    fitted = LGCPClassifier().fit(X, np.array(["a", "b", "c"])[y])
    path = folder / "model.skops"
    model_file.save(fitted, path, target="y", features=NAMES)
    return path


@contextmanager
def server(path):
    """A process that serves, and its port."""
    command = [sys.executable, "-m", "coxfield", "serve", str(path), "--port", "0", "--jobs", "1"]
    said = path.with_suffix(".txt")
    with said.open("w") as stream:
        process = subprocess.Popen(command, stderr=stream)
    try:
        while not (line := re.search(r":(\d+) ", said.read_text())):
            sleep(0.05)
        yield process.pid, int(line[1])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def megabytes(pid):
    """Resident memory of a process (Linux)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e3


def processor_seconds(pid):
    """Processor time that a process has taken so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rows(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, FEATURES))
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


def ask(port, content, path="/predict"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, content, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def latencies(port, n_rows, requests):
    content = json.dumps(rows(n_rows)).encode()
    taken = []
    for _ in range(requests):
        start = perf_counter()
        status, found = ask(port, content)
        taken.append(perf_counter() - start)
        assert status == 200
        assert len(found) == n_rows
    return np.array(taken) * 1e3


def refused(port):
    """Wrong requests, and what is said about them."""
    good = rows(1)[0]
    wrong = {
        "not JSON": b"{",
        "a column missing": json.dumps(dict.fromkeys(NAMES[1:], 0)).encode(),
        "a text": json.dumps({**good, "x0": "warm"}).encode(),
    }
    return [
        Row(what, "{}: {}".format(*(lambda s, f: (s, f["error"]))(*ask(port, body)))) for what, body in wrong.items()
    ]


def huge(port, size=100_000_000):
    """A body of 100 MB: the answer comes before it is sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n"
        client.sendall(head.encode())
        return client.recv(4096).split(b"\r\n")[0].decode()


def crowd(port, clients=50, each=10):
    """Clients at once, each with rows of its own; every answer must be the one that a lone client gets."""
    bodies = [json.dumps(rows(5, seed)).encode() for seed in range(clients)]
    alone = [ask(port, body)[1] for body in bodies]

    def work(k):
        return sum(ask(port, bodies[k])[1] == alone[k] for _ in range(each))

    start = perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        right = sum(pool.map(work, range(clients)))
    return right, clients * each, perf_counter() - start


def hang_up(port, clients=20):
    body = json.dumps(rows(1000)).encode()
    for _ in range(clients):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body))
        client.sendall(body[: len(body) // 2])
        client.close()
    return ask(port, json.dumps(rows(1)[0]).encode())[0]


def run(quick=False):
    requests = 50 if quick else 1000
    found = []
    with tempfile.TemporaryDirectory() as folder, server(model(Path(folder))) as (pid, port):
        latencies(port, 10, 20)
        for n_rows in (1, 10, 1000):
            before, worked = megabytes(pid), processor_seconds(pid)
            taken = latencies(port, n_rows, requests)
            middle, slow = np.quantile(taken, [0.5, 0.95])
            work = (processor_seconds(pid) - worked) / requests * 1e3
            said = f"{middle:.1f} ms, 95 % {slow:.1f} ms; work {work:.1f} ms; {before:.0f} to {megabytes(pid):.0f} MB"
            found.append(Row(f"{requests} requests of {n_rows} rows", said))
        found += refused(port)
        found.append(Row("100 MB", huge(port), "413"))
        right, asked, seconds = crowd(port)
        found.append(Row("50 clients at once", f"{right} of {asked} answers right in {seconds:.1f} s", "all"))
        found.append(Row("after 20 clients hung up", f"{hang_up(port)}; {megabytes(pid):.0f} MB", "200"))
    show(f"coxfield serve, {TRAINING} training rows of {FEATURES} features, 3 classes", found)


if __name__ == "__main__":
    run()
