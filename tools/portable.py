"""Run the unit tests again as other machines would: other BLAS kernels, vector extensions, threads and versions.

Run ``python tools/portable.py`` from anywhere with the Python that has the package and its tests installed. It prints a
table: what each variant pretends to be, what NumPy and OpenBLAS report that they really use, and how the tests went.

    python tools/portable.py                                       every variant, the whole suite
    python tools/portable.py --list                                the variants, and whether they take effect here
    python tools/portable.py --only nehalem two-threads            some variants
    python tools/portable.py --tests tests/kernels tests/engine    some tests
    python tools/portable.py --oldest                              the oldest versions that pyproject.toml allows
    python tools/portable.py --newest                              the newest versions that there are

A variant that this machine cannot show, or that is the same as an earlier one, is not run, and the table says why.
That is an error only if the variant was named by --only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

# What a process with these environment variables really uses. The product dies where the CPU lacks an instruction.
PROBE = """
import json
import numpy, scipy, scipy.linalg, sklearn, threadpoolctl
from numpy._core import _multiarray_umath as umath
matrix = numpy.random.default_rng(0).normal(size=(300, 300))
scipy.linalg.cholesky(matrix @ matrix.T + numpy.eye(300))
pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
print(json.dumps({
    "kernels": sorted({str(pool.get("architecture", pool["internal_api"])) for pool in pools}),
    "threads": sorted({pool["num_threads"] for pool in pools}),
    "dispatched": list(umath.__cpu_dispatch__),
    "features": [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)],
    "versions": f"numpy {numpy.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}",
}))
"""

# OpenBLAS calls the Prescott kernels Katmai where it was built with a short list of kernels.
ALIASES = {"prescott": {"prescott", "katmai"}}


@dataclass(frozen=True)
class Variant:
    """One machine to pretend to be: an OpenBLAS kernel, NumPy with or without vectors, a number of threads."""

    name: str
    kernel: str | None = None
    threads: int | None = 1
    vectors: bool = True

    def environment(self, native: dict) -> dict[str, str]:
        """The environment variables of this process, and those that make the difference."""
        made = {"OPENBLAS_CORETYPE": self.kernel}
        made |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), self.threads and str(self.threads))
        # Only features that NumPy chooses at run time and that this CPU has may be named.
        made["NPY_DISABLE_CPU_FEATURES"] = None if self.vectors else " ".join(native["features"]) or None
        rest = {name: value for name, value in os.environ.items() if name not in made}
        return rest | {name: value for name, value in made.items() if value is not None}

    def missed(self, seen: dict, native: dict) -> str:
        """Why the variant is not what its name says, or nothing."""
        if self.kernel and not ALIASES.get(self.name, {self.name}).issuperset(k.lower() for k in seen["kernels"]):
            return f"OpenBLAS has no {self.kernel} kernels and takes those of {', '.join(seen['kernels'])}"
        if self.threads and seen["threads"] != [self.threads]:
            return f"the BLAS uses {seen['threads']} threads"
        if not self.vectors and not native["features"]:
            return "NumPy uses no vector extensions on this CPU anyway"
        if not self.vectors and seen["features"]:
            return f"NumPy still uses {', '.join(seen['features'])}"
        return ""


VARIANTS = [
    Variant("prescott", "Prescott"),
    Variant("nehalem", "Nehalem"),
    Variant("sandybridge", "Sandybridge"),
    Variant("haswell", "Haswell"),
    Variant("zen", "Zen"),
    Variant("skylakex", "SkylakeX"),
    Variant("no-vectors", vectors=False),
    Variant("oldest-cpu", "Prescott", vectors=False),
    Variant("one-thread", threads=1),
    Variant("two-threads", threads=2),
    Variant("native", threads=None),
]
ALIASES["oldest-cpu"] = ALIASES["prescott"]


@dataclass
class Row:
    """What came of a variant."""

    name: str
    machine: str = ""
    remark: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def green(self) -> bool:
        """Whether tests ran and none failed."""
        return not self.remark and self.counts.get("passed", 0) > 0 and not self.failures


def probe(python: str, environment: dict[str, str]) -> dict | None:
    """What NumPy and OpenBLAS report under the environment variables, or None if the CPU cannot run it."""
    asked = subprocess.run(
        [python, "-W", "error", "-c", PROBE], env=environment, capture_output=True, text=True, check=False
    )
    if asked.returncode < 0:
        return None
    if asked.returncode:
        raise SystemExit(f"the probe failed:\n{asked.stderr}")
    return json.loads(asked.stdout)


def described(seen: dict) -> str:
    """The machine as the libraries see it."""
    vectors = "+".join(seen["features"]) or "none"
    return f"BLAS {'/'.join(seen['kernels'])}, threads {'/'.join(map(str, seen['threads']))}, vectors {vectors}"


def counts_of(output: str) -> dict[str, int]:
    """Passed, failed, skipped and so on, as the last line of pytest says."""
    lines = [line for line in output.splitlines() if re.search(r"\d+ \w+.* in [\d.]+s", line)]
    found = re.findall(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)", lines[-1] if lines else "")
    return {name.removesuffix("s") if name == "errors" else name: int(count) for count, name in found}


def look(variant: Variant, python: str, native: dict, earlier: list[Row]) -> Row:
    """The variant as the libraries report it, with a remark if running it would show nothing new."""
    seen = probe(python, variant.environment(native))
    if seen is None:
        return Row(variant.name, remark="not run: this CPU lacks the instructions")
    row = Row(variant.name, described(seen))
    same = [other.name for other in earlier if other.machine == row.machine and not other.remark]
    why = variant.missed(seen, native) or (f"the same as {same[0]} on this CPU" if same else "")
    row.remark = f"not run: {why}" if why else ""
    return row


def run(row: Row, python: str, environment: dict[str, str], arguments: list[str]) -> None:
    """The tests under one variant; the row takes down what came of them."""
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    start = time.perf_counter()
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    row.seconds = time.perf_counter() - start
    row.counts = counts_of(ran.stdout)
    row.failures = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if ran.returncode and not row.failures:
        row.failures = [f"pytest ended with status {ran.returncode}:\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}"]


def table(rows: list[Row]) -> str:
    """The rows as Markdown, and below it the tests that failed."""
    lines = [
        "| variant | passed | failed | skipped | seconds | what NumPy and OpenBLAS report |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        failed = row.counts.get("failed", 0) + row.counts.get("error", 0)
        skipped = row.counts.get("skipped", 0) + row.counts.get("xfailed", 0)
        numbers = (
            ["-"] * 4
            if not (row.counts or row.failures)
            else [row.counts.get("passed", 0), failed, skipped, f"{row.seconds:.0f}"]
        )
        lines.append(f"| {row.name} | {' | '.join(map(str, numbers))} | {row.remark or row.machine} |")
    for row in rows:
        lines += [f"{row.name}: {failure}" for failure in row.failures]
    return "\n".join(lines)


def lower_bounds(project: dict) -> list[str]:
    """``name==version`` for every ``name>=version`` of pyproject.toml's dependencies and extras."""
    extras = project["project"].get("optional-dependencies", {}).values()
    requirements = [*project["project"]["dependencies"], *(line for extra in extras for line in extra)]
    bounds = (re.match(r"([\w.-]+)(?:\[[\w,-]+\])?\s*>=\s*([\w.]+)", line) for line in requirements)
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


def environment_of(age: str) -> str:
    """Python of a fresh virtual environment with the oldest or the newest versions allowed, beside .venv."""
    folder = ROOT / f".venv-{age}"
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["-e", f"{ROOT}[test]", "-e", str(ROOT / "paper")]
    if age == "oldest":
        files = (ROOT / "pyproject.toml", ROOT / "paper" / "pyproject.toml")
        projects = [tomllib.loads(path.read_text(encoding="utf-8")) for path in files]
        oldest = folder / "oldest.txt"
        oldest.write_text("\n".join(bound for one in projects for bound in lower_bounds(one)) + "\n", encoding="utf-8")
        pip += ["-c", str(oldest)]
    subprocess.run(pip, check=True)
    return python


def main(arguments: list[str] | None = None) -> int:
    """Run the variants and print the table; 1 if a test failed or a variant named by --only took no effect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [variant.name for variant in VARIANTS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"variants to run: {', '.join(names)}")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="tests to run, instead of all")
    parser.add_argument(
        "--workers", type=int, help="test processes at once; by default, as many as leave a core per thread"
    )
    parser.add_argument(
        "--list", action="store_true", help="show the variants and whether they take effect, run nothing"
    )
    ages = parser.add_mutually_exclusive_group()
    ages.add_argument("--oldest", dest="age", action="store_const", const="oldest", help="in .venv-oldest, made afresh")
    ages.add_argument("--newest", dest="age", action="store_const", const="newest", help="in .venv-newest, made afresh")
    options = parser.parse_args(arguments)

    python = environment_of(options.age) if options.age else sys.executable
    native = probe(python, Variant("native", threads=None).environment({"features": []}))
    assert native is not None, "NumPy does not run on this machine"
    print(f"{native['versions']}; {described(native)}", flush=True)
    wanted = options.only or (["native"] if options.age else names)
    rows: list[Row] = []
    for variant in (variant for variant in VARIANTS if variant.name in wanted):
        row = look(variant, python, native, rows)
        rows.append(row)
        if not (row.remark or options.list):
            workers = options.workers or max(1, CORES // max(variant.threads or CORES, 1))
            # Old packages are not to blame for what newer ones they depend on have deprecated since.
            patient = ["-W", "ignore::DeprecationWarning"] if options.age == "oldest" else []
            run(row, python, variant.environment(native), ["-n", str(workers), *patient, *options.tests])
        print(table([row]).splitlines()[2], flush=True)
    if options.list:
        return 0
    print("\n" + table(rows))
    return int(any(not (row.remark and not options.only) and not row.green for row in rows))


if __name__ == "__main__":
    sys.exit(main())
