"""The page: one HTML file that needs no other file, and the figures as pictures beside it."""

from __future__ import annotations

import base64
import importlib.util
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coxfield import plotting
from coxfield.utils.whole_files import whole_file
from coxfield_paper.report.blocks import Figure, Section, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

TEMPLATE = "page.html"


@dataclass(frozen=True)
class Page:
    """What the page shows: its sections, and the machine and version that made it."""

    sections: Sequence[Section]
    machine: dict[str, Any]
    version: str

    @property
    def parts(self) -> list[tuple[str, str, list[Section]]]:
        """Name, title and sections of the two parts, the paper and what is beyond it: those that have results."""
        kinds = (("paper", "The paper", False), ("beyond", "Beyond the paper", True))
        found = [
            (name, title, [section for section in self.sections if section.computed and section.beyond == beyond])
            for name, title, beyond in kinds
        ]
        return [part for part in found if part[2]]

    @property
    def left(self) -> list[Section]:
        """Sections without results."""
        return [section for section in self.sections if not section.computed]

    @property
    def summary(self) -> str:
        """How many statements of the paper were tested, and what came out."""
        claims = [claim for section in self.sections if not section.beyond for claim in section.claims]
        verdicts: Counter[Verdict] = Counter(claim.verdict for claim in claims if claim.verdict != Verdict.NOT_TESTED)
        if not verdicts:
            return "No statement of the paper was tested yet."
        counted = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict if verdicts[verdict])
        return f"Of {len(claims)} statements of the paper, {verdicts.total()} were tested here: {counted}."


def write(page: Page, folder: Path) -> Path:
    """Write `index.html`, and each figure as a PNG in `figures`; return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    figures = [block for section in page.sections for block in section.blocks if isinstance(block, Figure)]
    for figure in figures:
        path = folder / "figures" / f"{figure.name}.png"
        _save(path, plotting.encode(figure.figure, path))
    path = folder / "index.html"
    _save(path, render(page).encode())
    return path


def check() -> None:
    """Refuse if the packages that make the page are not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("jinja2", "matplotlib")):
        raise ValueError("the report needs jinja2 and matplotlib: pip install 'coxfield[report]'")


def render(page: Page) -> str:
    """The page as text."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("coxfield_paper.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    filters = {"picture": picture, "prose": prose, "duration": duration, "kind": kind}
    environment.filters |= filters
    return environment.get_template(TEMPLATE).render(page=page)


def picture(figure: Figure) -> str:
    """A figure as an address that contains it as SVG: sharp at any size."""
    content = base64.b64encode(plotting.encode(figure.figure, Path("figure.svg"))).decode()
    return f"data:image/svg+xml;base64,{content}"


def prose(text: str):
    """Text as HTML, with the words between backticks as code.

    Examples
    --------
    >>> print(prose("run `a < b`"))
    run <code>a &lt; b</code>
    """
    from markupsafe import Markup, escape

    parts = text.split("`")
    marked = [Markup("<code>{}</code>").format(part) if k % 2 else escape(part) for k, part in enumerate(parts)]
    return Markup("").join(marked)


def kind(block) -> str:
    """The name of the class of a block, for the template."""
    return type(block).__name__


def duration(seconds: float) -> str:
    """A time in seconds, minutes or hours.

    Examples
    --------
    >>> duration(0.25), duration(42), duration(600), duration(9000)
    ('0.2 s', '42 s', '10 min', '2.5 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _save(path: Path, content: bytes) -> None:
    with whole_file(path) as stream:
        stream.write(content)
