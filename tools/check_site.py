"""Look for links that lead nowhere, and for anything that a browser would load from another host, in a built site.

Run ``python tools/check_site.py site``. It prints what is wrong, one line each, and exits with 1 if there is anything.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes from which a browser loads something by itself, by tag. A link in the text is none of them.
LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "input": ("src",),
}
PASSIVE = {"canonical", "next", "prev", "search", "author", "license", "index", "alternate"}  # of <link rel>
STYLE_URL = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")


class Page(HTMLParser):
    """What one page loads, where its links lead, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and "href" in values and not PASSIVE & set(values.get("rel", "").split()):
            self.loads.append(values["href"])
        for name in LOADED.get(tag, ()):
            if name in values:
                self.loads += _addresses(name, values[name])
        self.loads += _in_style(values.get("style", ""))

    handle_startendtag = handle_starttag


def _addresses(name: str, value: str) -> list[str]:
    """The addresses in an attribute; a srcset has several, each with a width."""
    return [part.split()[0] for part in value.split(",")] if name == "srcset" else [value]


def _in_style(text: str) -> list[str]:
    return [first or second for first, second in STYLE_URL.findall(text)]


def read(path: Path) -> Page:
    """The parts of a page that matter here."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path) -> list[str]:
    """One line for each link that leads nowhere, and for each thing that would come from another host."""
    made = (path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts)  # templates of the theme
    pages = {path.resolve(): read(path) for path in made}
    if not pages:
        return [f"{site} has no pages"]
    found = []
    for path, page in pages.items():
        for address in page.loads:
            found += [f"{path.relative_to(site.resolve())}: {why}" for why in _wrong_load(address, path)]
        for address in page.links:
            found += [f"{path.relative_to(site.resolve())}: {why}" for why in _wrong_link(address, path, pages)]
    for path in sorted(site.rglob("*.css")):
        for address in _in_style(path.read_text(encoding="utf-8")):
            found += [f"{path.relative_to(site)}: {why}" for why in _wrong_load(address, path)]
    return sorted(set(found))


def _wrong_load(address: str, path: Path) -> list[str]:
    parts = urlsplit(address)
    if parts.scheme == "data" or address.startswith("#"):
        return []
    if parts.scheme or parts.netloc:
        return [f"loads {address} from another host"]
    return [] if (path.parent / unquote(parts.path)).is_file() else [f"loads {address}, which does not exist"]


def _wrong_link(address: str, path: Path, pages: dict[Path, Page]) -> list[str]:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return []
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return [f"links to {address}, which does not exist"]
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return [f"links to {address}, but there is no such anchor"]
    return []


def main() -> int:
    """Print the problems of the site that the command line names."""
    found = problems(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
