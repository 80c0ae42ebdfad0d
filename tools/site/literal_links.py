"""A Sphinx extension: `docs/mixtures.md` and `LGCPClassifier` in a page become links to the page and to the reference.

Pages name files and classes in backticks, so that they read well as plain text. On the site these names are links.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class LiteralLinks(SphinxPostTransform):
    """Wrap literals that name a page or a documented object into links."""

    default_priority = 20

    def run(self, **options: object) -> None:
        """Look at each literal that is not a link already."""
        for literal in list(self.document.findall(nodes.literal)):
            if not _inside_link(literal) and (target := self._target(literal.astext())):
                link = make_refnode(self.app.builder, self.env.docname, *target, literal.deepcopy())
                literal.replace_self(link)

    def _target(self, text: str) -> tuple[str, str] | None:
        """Page and anchor that a text names, if they are not on this page."""
        page = str(PurePosixPath(text.removeprefix("docs/")).with_suffix("")) if text.endswith(".md") else ""
        if page in self.env.all_docs and page != self.env.docname:
            return page, ""
        found = self._objects().get(text.removesuffix("()"))
        return found if found and found[0] != self.env.docname else None

    def _objects(self) -> dict[str, tuple[str, str]]:
        """Page and anchor of documented names: in full, and without the module if that is clear."""
        documented = self.env.get_domain("py").objects  # type: ignore[attr-defined]
        full = {name: (entry.docname, entry.node_id) for name, entry in documented.items()}
        short: dict[str, set[str]] = {}
        for name, entry in documented.items():
            if entry.aliased:  # the module that a class is written in; users import it from elsewhere
                continue
            parts = name.split(".")
            keep = 2 if entry.objtype in ("method", "attribute", "property") else 1
            short.setdefault(".".join(parts[-keep:]), set()).add(name)
        clear = {tail: full[next(iter(names))] for tail, names in short.items() if len(names) == 1}
        return clear | full


def _inside_link(node: nodes.Node) -> bool:
    """Whether a node is part of a link or of a heading, where links would not be seen."""
    parent = node.parent
    while parent is not None:
        if isinstance(parent, nodes.reference | nodes.title):
            return True
        parent = parent.parent
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(LiteralLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
