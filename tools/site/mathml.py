"""A Sphinx extension: formulas become MathML, which every browser draws without a script and without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator


def inline(self: HTML5Translator, node: nodes.math) -> NoReturn:
    """Write a formula within a line."""
    self.body.append(convert(node.astext()))
    raise SkipNode  # its text is not written once more


def block(self: HTML5Translator, node: nodes.math_block) -> NoReturn:
    """Write a formula on lines of its own, in a box that scrolls on narrow screens."""
    formula = convert(node.astext(), display="block")
    self.body += [self.starttag(node, "div", CLASS="math"), formula, "</div>\n"]
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
