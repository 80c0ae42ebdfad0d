"""tools/portable.py: variants that take effect or say why not, and the parts that read and write text."""

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "tools" / "portable.py"
spec = importlib.util.spec_from_file_location("portable", PATH)
portable = importlib.util.module_from_spec(spec)
sys.modules["portable"] = portable  # dataclasses look their module up
spec.loader.exec_module(portable)

NATIVE = {"kernels": ["Haswell"], "threads": [2], "features": ["AVX2", "FMA3"]}


def test_counts_are_those_of_the_last_line():
    summary = "2 failed, 3368 passed, 24 skipped, 8 xfailed, 1 error in 400.12s (0:06:40)"
    output = f"1 failed in 3.0s is no summary\n==== {summary} ===="
    assert portable.counts_of(output) == {"failed": 2, "passed": 3368, "skipped": 24, "xfailed": 8, "error": 1}
    assert portable.counts_of("no tests ran in 0.01s") == {}
    assert portable.counts_of("") == {}


def test_a_variant_sets_only_its_own_variables(monkeypatch):
    for name in ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "NPY_DISABLE_CPU_FEATURES"):
        monkeypatch.setenv(name, "left over")
    variables = portable.Variant("nehalem", "Nehalem").environment(NATIVE)
    assert variables["OPENBLAS_CORETYPE"] == "Nehalem"
    assert variables["OMP_NUM_THREADS"] == variables["OPENBLAS_NUM_THREADS"] == "1"
    assert "NPY_DISABLE_CPU_FEATURES" not in variables
    plain = portable.Variant("no-vectors", vectors=False).environment(NATIVE)
    assert plain["NPY_DISABLE_CPU_FEATURES"] == "AVX2 FMA3"
    assert "OPENBLAS_CORETYPE" not in plain
    assert "OMP_NUM_THREADS" not in portable.Variant("native", threads=None).environment(NATIVE)


@pytest.mark.parametrize(
    ("variant", "seen", "words"),
    [
        (portable.Variant("zen", "Zen"), {"threads": [1]}, "OpenBLAS has no Zen kernels and takes those of Haswell"),
        (portable.Variant("two-threads", threads=2), {"threads": [1]}, "the BLAS uses [1] threads"),
        (portable.Variant("no-vectors", vectors=False), {"threads": [1]}, "NumPy still uses AVX2, FMA3"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_variant_without_effect_is_noticed(variant, seen, words):
    assert variant.missed(NATIVE | seen, NATIVE) == words


def test_a_variant_with_effect_is_fine():
    seen = {"kernels": ["Katmai"], "threads": [1], "features": []}
    for variant in portable.VARIANTS:
        if variant.name in ("prescott", "oldest-cpu"):
            assert variant.missed(seen, NATIVE) == ""


def test_this_machine_is_described():
    seen = portable.probe(sys.executable, portable.Variant("one-thread").environment(NATIVE))
    assert seen["threads"] == [1]
    assert portable.described(seen).endswith(("none", *seen["dispatched"]))


def test_the_oldest_versions_are_the_lower_bounds():
    project = {
        "project": {
            "dependencies": ["numpy>=2.0", "scikit-learn >= 1.7"],
            "optional-dependencies": {"cli": ["typer>=0.15"], "test": ["pkg[cli]", "pytest>=8.3", "other[x]>=1.2.3"]},
        }
    }
    assert portable.lower_bounds(project) == [
        "numpy==2.0",
        "other==1.2.3",
        "pytest==8.3",
        "scikit-learn==1.7",
        "typer==0.15",
    ]


def test_the_table_tells_failures_from_what_was_not_run():
    rows = [
        portable.Row("good", "machine", counts={"passed": 3, "skipped": 1, "xfailed": 1}, seconds=1.4),
        portable.Row("bad", "machine", counts={"passed": 2, "failed": 1}, failures=["FAILED test_x"]),
        portable.Row("absent", remark="not run: reason"),
    ]
    assert [row.green for row in rows] == [True, False, False]
    lines = portable.table(rows).splitlines()
    assert lines[2] == "| good | 3 | 0 | 2 | 1 | machine |"
    assert lines[4] == "| absent | - | - | - | - | not run: reason |"
    assert lines[-1] == "bad: FAILED test_x"
