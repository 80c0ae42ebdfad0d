"""docs/architecture.md says what each room may import; the imports of the source say what it does import."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "coxfield"
PAPER = ROOT / "paper" / "src" / "coxfield_paper"
FREE = {"threads", "progress"}  # modules at the root that every room may use
# Other modules at the root are rooms of one file.
ALONE = [path for path in SOURCE.glob("*.py") if path.stem not in FREE and not path.stem.startswith("_")]
HOMES = {"LGCPClassifier": "estimators", "SLGCPClassifier": "estimators", "PermanentalClassifier": "estimators"}
START: dict[str, list[str]] = {"coxfield": [], "coxfield_paper": ["coxfield_paper"]}


def allowed():
    """Room -> rooms that it may import, as the table of the page has it."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_/]+)` \| [^|]* \|(.*)\|$", page, flags=re.MULTILINE)
    return {room: set(re.findall(r"`([a-z_/]+)`", others)) for room, others in rows}


def room_of(module):
    """The room of a dotted name below coxfield, or of coxfield_paper; None for what belongs to no room."""
    parts = module.split(".")
    if parts[0] == PAPER.name:
        return "/".join(parts[:2]) if (PAPER / parts[1]).is_dir() else None
    if parts[0] in HOMES:
        return HOMES[parts[0]]
    if parts[0] == "apps":
        return "/".join(parts[:2]) if len(parts) > 1 else None
    return parts[0] if (SOURCE / parts[0]).is_dir() or SOURCE / f"{parts[0]}.py" in ALONE else None


def imported(path):
    """Dotted names below coxfield that a file imports, wherever it does; those of coxfield_paper keep its name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in START:
            first, *inside = node.module.split(".")
            for alias in node.names:
                yield ".".join([*START[first], *inside, alias.name])
        elif isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("coxfield.") for alias in node.names if "coxfield." in alias.name)


def files():
    """Room -> its files."""
    found = {path.stem: [path] for path in ALONE}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        room = "/".join(parts[:2]) if parts[0] == "apps" and len(parts) > 2 else parts[0]
        if len(parts) > 1 and (SOURCE / room).is_dir() and room != "apps":
            found.setdefault(room, []).append(path)
    for folder in ("report", "studies"):
        found[f"coxfield_paper/{folder}"] = sorted((PAPER / folder).rglob("*.py"))
    return found


@pytest.mark.parametrize("room", files())
def test_a_room_imports_only_what_the_page_allows(room):
    used = {}
    for path in files()[room]:
        for name in imported(path):
            other = room_of(name)
            if other is not None and other != room:
                used.setdefault(other, f"{path.name} imports {name}")
    strangers = {other: why for other, why in used.items() if other not in allowed()[room]}
    assert not strangers
    assert allowed()[room] <= used.keys(), "the page allows what nobody uses"


def test_the_page_knows_every_room():
    assert allowed().keys() == files().keys()


def test_no_room_imports_a_room_that_imports_it():
    below, rooms = allowed(), list(allowed())
    assert all(set(below[room]) <= set(rooms[:k]) for k, room in enumerate(rooms)), "list rooms from the bottom up"


def test_what_every_room_may_use_imports_no_room():
    for name in FREE:
        assert not [other for other in imported(SOURCE / f"{name}.py") if room_of(other) is not None]


def test_the_package_does_not_know_the_paper():
    everything = [
        name for paths in files().values() for path in paths if SOURCE in path.parents for name in imported(path)
    ]
    assert everything
    assert not [name for name in everything if name.startswith(PAPER.name)]


def test_few_modules_stand_at_the_root():
    assert len(list(SOURCE.glob("*.py"))) <= 6
