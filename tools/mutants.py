"""Change core lines one at a time, in a copy of the package, and see that tests fail: a test that cannot fail is none.

Run ``python tools/mutants.py``, before and after tests are rewritten. It prints one line per change and ends with
status 1 if the tests of a folder pass although the line is wrong. It takes some minutes.

    python tools/mutants.py               all changes
    python tools/mutants.py conformal     those of files whose name holds a text
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FAILED = 1  # status of pytest where a test has failed; other statuses are errors of this program


class Mutant(NamedTuple):
    """A line of a module, what takes its place, and the tests that must notice."""

    module: str
    line: str
    wrong: str
    tests: str


MUTANTS = (
    Mutant("engine/class_sums", "if leave_out is None else part.column_of(leave_out)", "", "engine/test_class_sums.py"),
    Mutant("engine/conformal", "least = self.against - (2", "least = self.against + (2", "engine/test_conformal.py"),
    Mutant("estimators/scored", "scores[:, 1] - scores[:, 0]", "scores[:, 0] - scores[:, 1]", "estimators"),
    Mutant("field/mincut", " + float(omitted[x].sum())", "", "field"),
    Mutant("graphs/spectrum", "-self.time / 2 * np.maximum", "-self.time * np.maximum", "graphs/test_spectrum.py"),
    Mutant("kernels/distances", "own + np.minimum(b.farthest, reach)", "own", "kernels"),
    Mutant("kernels/mixture", "return np.logaddexp(others, own)", "return others", "kernels"),
    Mutant("kernels/radial", ".log_of(scaled) + np.log(covariance.variance)", ".log_of(scaled)", "kernels"),
    Mutant(
        "selection/mixture/concave",
        "self.evidence @ residual.ravel() + 1",
        "self.evidence @ residual.ravel()",
        "selection/mixture",
    ),
    Mutant(
        "selection/mixture/loo_members",
        "np.exp(logs[:, a] - log_divisor[..., None])",
        "np.exp(logs[:, a])",
        "selection/mixture",
    ),
)


def noticed(mutant: Mutant, folder: Path) -> bool:
    """Whether a test fails in a copy of the package with the wrong line."""
    package = folder / "coxfield"
    shutil.copytree(ROOT / "src" / "coxfield", package)
    path = package / f"{mutant.module}.py"
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.line) != 1:
        raise SystemExit(f"{mutant.module} has {mutant.line!r} {text.count(mutant.line)} times: write the mutant anew")
    path.write_text(text.replace(mutant.line, mutant.wrong), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{mutant.tests}"]
    paths = os.pathsep.join([str(folder), str(ROOT / "paper" / "src")])
    ran = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, check=False)
    if ran.returncode not in {0, FAILED}:
        raise SystemExit(ran.stdout.decode()[-2000:])
    return ran.returncode == FAILED


def main(arguments: list[str]) -> int:
    """Print what was noticed; the status is 1 if something was not."""
    missed = 0
    for mutant in MUTANTS:
        if not any(text in mutant.module for text in arguments or [""]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = noticed(mutant, Path(folder))
        print(f"{mutant.module:32} {'noticed' if found else 'NOT NOTICED'} by tests/{mutant.tests}", flush=True)
        missed += not found
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
