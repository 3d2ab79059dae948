"""How `make docs` builds the documentation."""

from __future__ import annotations

import warnings

import efemb

project = "efemb"
author = "The efemb developers"
copyright = author
release = version = efemb.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["build", "examples", "templates", "gallery/*.ipynb"]
templates_path = ["templates"]
suppress_warnings = ["config.cache", "myst.xref_missing"]
myst_enable_extensions = ["dollarmath"]

html_theme = "pydata_sphinx_theme"
html_title = "efemb"
html_theme_options = {"header_links_before_dropdown": 8, "navigation_with_keys": False}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# Pages without pages below them need no empty column on the left.
_ALONE = ("index", "start", "text", "neurons", "glossary", "reproduction", "figures")
html_sidebars: dict[str, list[str]] = {page: [] for page in _ALONE}

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says them in words
numpydoc_show_class_members = False

# The examples stop early on purpose.
warnings.filterwarnings("ignore", message=".*was still improving")


def pictures(block, block_vars, gallery_conf):
    """Save the figures of new Axes among an example's variables: pyplot does not know of them."""
    from matplotlib.axes import Axes
    from sphinx_gallery.scrapers import figure_rst

    paths = []
    for value in list(block_vars["example_globals"].values()):
        figure = value.figure.figure if isinstance(value, Axes) else None
        if figure is not None and not hasattr(figure, "saved_by_gallery"):
            figure.saved_by_gallery = True
            paths.append(next(block_vars["image_path_iterator"]))
            figure.savefig(paths[-1], dpi=120)
    return figure_rst(paths, gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (pictures,),
    "abort_on_example_error": True,
    "show_memory": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
}


def _skip_inherited(app, what, name, member, skip, options):
    """Leave out what scikit-learn puts into every estimator: its pages say it better."""
    foreign = (getattr(member, "__module__", None) or "").startswith("sklearn")
    return True if foreign or name.endswith("_request") else None


def setup(app):
    """Sphinx calls this."""
    app.connect("autodoc-skip-member", _skip_inherited)
