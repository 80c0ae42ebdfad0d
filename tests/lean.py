"""Python programs that run without some packages, as after a plain `pip install coxfield`."""

import subprocess
import sys

OPTIONAL = ("polars", "typer", "rich", "matplotlib", "jinja2", "pandas", "ortools", "shapely")

BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run_without(blocked, code):
    """Run a program in which the packages named cannot be imported."""
    program = BLOCKER.format(blocked=set(blocked)) + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
