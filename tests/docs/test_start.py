"""The commands of the page 'Start here' work as they are written, one after the other, in an empty folder."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "start.md").read_text(encoding="utf-8")
PART = PAGE.split("## On the command line")[1]


def test_the_tables_and_commands_of_the_page(tmp_path):
    program = re.search(r"```python\n(.*?)```", PART, re.DOTALL)[1]
    commands = [line[2:] for line in PART.splitlines() if line.startswith("$ ")]
    assert commands[0] == "python make_tables.py"
    (tmp_path / "make_tables.py").write_text(program, encoding="utf-8")
    for command in commands:
        name, *rest = command.split()
        start = [sys.executable] if name == "python" else [sys.executable, "-m", "coxfield"]
        subprocess.run([*start, *rest], cwd=tmp_path, check=True, capture_output=True)
    made = re.findall(r"(?:-o|--plot) (\S+)", PART)
    assert len(made) == 4
    assert [name for name in made if not (tmp_path / name).stat().st_size] == []
