"""How `make docs` builds the documentation."""

from __future__ import annotations

import warnings
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import efemb
import efemb.cli

project = "efemb"
author = "The efemb developers"
copyright = author
release = version = efemb.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["build", "examples", "live", "templates", "gallery/*.ipynb"]
templates_path = ["templates"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "efemb"
html_theme_options = {"header_links_before_dropdown": 6, "navigation_with_keys": False}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# These have no pages below them, and need no empty column on the left.
html_sidebars: dict[str, list[str]] = {page.stem: [] for page in Path(__file__).parent.glob("*.md")}

autosummary_generate = True
# A class and a function that differ in case only would be one file on some disks.
_TWINS = ("Laplace", "Report", "Stability")
autosummary_filename_map = {f"efemb.inference.{one}": f"efemb.inference.{one}_" for one in _TWINS}
toc_object_entries_show_parents = "hide"
default_role = "autolink"  # what docstrings have in single quotes are names, where there are such
autodoc_typehints = "none"  # numpydoc says them in words
numpydoc_show_class_members = False

# Sphinx looks for a name in every module where it might be, the old ones included.
warnings.filterwarnings("ignore", message=".*the old name will be removed", category=FutureWarning)
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


LIVE = Path(__file__).parent / "live"
LIVE.mkdir(exist_ok=True)
html_extra_path = ["live"]


def live_pages(block, block_vars, gallery_conf):
    """Write the explorers among an example's variables, and show each in a frame."""
    from efemb.explore import Explorer

    shown = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Explorer) and not hasattr(value, "saved_by_gallery"):
            object.__setattr__(value, "saved_by_gallery", True)
            name = f"{Path(block_vars['src_file']).stem}-explorer.html"
            value.to_html(LIVE / name)
            shown.append(FRAME.format(address=f"../{name}"))
    return "\n".join(shown)


FRAME = """
.. raw:: html

   <iframe class="explorer" src="{address}" title="Explorer" loading="lazy"></iframe>
   <p><a href="{address}">Open the page on its own</a></p>
"""

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (pictures, live_pages),
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


class HelpOfCommands(SphinxDirective):
    """A section for each command with what its `--help` says."""

    def run(self):
        """In the order of `efemb --help`."""
        from typer.main import get_command

        program = get_command(efemb.cli.build())
        return [self._section(*one) for one in sorted(program.commands.items())]

    def _section(self, name, command):
        title = f"efemb {name}"
        context = command.context_class(command, info_name=title, terminal_width=80)
        section = nodes.section(ids=[nodes.make_id(title)])
        section += nodes.title("", title)
        section += nodes.literal_block("", command.get_help(context), language="text")
        return section


def setup(app):
    """Sphinx calls this."""
    app.add_directive("help-of-commands", HelpOfCommands)
    app.connect("autodoc-skip-member", _skip_inherited)
