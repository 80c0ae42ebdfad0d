"""How Sphinx makes the site from the pages in docs/, the docstrings and the programs in examples/: `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

import matplotlib as mpl
from docutils import nodes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))  # the two small extensions beside this file
mpl.use("agg")

project = "coxfield"
author = "the coxfield developers"
project_copyright = author
version = release = installed_version("coxfield")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "literal_links",
]
exclude_patterns = ["gallery/GALLERY_HEADER.rst", "**/*.ipynb"]
templates_path = [str(HERE / "_templates")]  # autosummary looks in the folder of the pages otherwise
nitpicky = True
# Nothing is fetched, so types of other packages are names and not links. Words in backticks need not be links either.
nitpick_ignore_regex = [
    ("py:obj", ".*"),
    ("py:class", r"(?!coxfield).*"),
    ("py:class", r"coxfield\.(engine|estimators|geometry|graphs|io|kernels|selection|utils)\..*"),
]
default_role = "py:obj"  # single backticks in docstrings
highlight_language = "none"  # indented blocks are formulas

# Pages
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "substitution"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3

# Docstrings
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc's sections say more
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template of classes lists them

# Examples
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery.GalleryOrder",
    "image_scrapers": ("gallery.figures",),
    "image_srcset": ["2x"],
    "thumbnail_size": (400, 280),
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "doc_module": ("coxfield",),
    "backreferences_dir": "gallery/backreferences",
    "reset_modules": ("matplotlib",),
    "nested_sections": False,
    "parallel": True,  # as many as sphinx -j says
    "write_computation_times": False,
}

# Look. Every file is local: fonts, icons and scripts come with the theme.
html_theme = "pydata_sphinx_theme"
html_title = "coxfield"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("quiet.js", {"priority": 100})]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_sidebars = {"start": []}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "coxfield"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "back_to_top_button": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


INHERITED = ("get_params", "set_params", "score", "get_metadata_routing")  # scikit-learn documents them


def skip_member(app, what, name, member, skip, options):
    """Leave out of the reference what every estimator of scikit-learn has."""
    return True if name in INHERITED or name.endswith("_request") else None


def strip_blank_ends(app, doctree):
    """Take the blank line off the end of examples, which doctest needs and readers do not."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.rawsource.rstrip("\n")
        block[:] = [nodes.Text(block.rawsource)] if len(block) == 1 and block.rawsource else block.children


def setup(app):
    """Register the functions above, and the small pictures of the gallery."""
    from gallery import use_panels  # beside this file

    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", strip_blank_ends)
    app.connect("builder-inited", use_panels, priority=900)  # after the gallery was run
