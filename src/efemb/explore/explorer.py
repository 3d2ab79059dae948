"""Explorer: a page in the browser that shows a model, in one file or served."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from efemb._files import complete_or_absent, file_target
from efemb.errors import DataError, ParameterError
from efemb.explore.colors import color_by_number, kept_neighbors
from efemb.explore.contents import Contents, check_model, make_payload
from efemb.explore.groups import read_groups
from efemb.explore.maps import MapMaker, checked_methods
from efemb.explore.page import self_contained_page
from efemb.explore.payload import Payload

PAGE_ITEMS = 20_000  # more are for a server
FRAME_HEIGHT = 680  # pixels in a notebook
N_KEPT = 10  # neighbors that two models may share


@dataclass(frozen=True)
class Explorer:
    """One model, or two side by side, as a page: make one with `efemb.explore.prepare`.

    In a notebook it shows itself. `to_html` writes one self-contained file, `serve` answers in the
    browser until it is interrupted.
    """

    contents: tuple[Contents, ...]

    def __repr__(self) -> str:
        """The models and their sizes."""
        names = (f"{one.name} ({one.model.n_entities:,} items)" for one in self.contents)
        return f"<Explorer of {' and '.join(names)}>"

    @property
    def n_items(self) -> int:
        """Items of the largest model."""
        return max(one.model.n_entities for one in self.contents)

    def html(self, bits: int = 24) -> str:
        """The self-contained page, which answers every question itself.

        Parameters
        ----------
        bits : {24, 16, 8}, default=24
            Precision of the vectors. 24 bits give the answers of Python; 16 bits exchange two
            neighbors in one of about 500 lists of ten, 8 bits in one of three.

        Returns
        -------
        str
            About 4 bytes for each number of rho and alpha, and 2 MB for plotly.js.

        Raises
        ------
        ParameterError
            If the model has more than 20,000 items: serve it instead.
        """
        if self.n_items > PAGE_ITEMS:
            raise ParameterError(
                f"a self-contained page holds up to {PAGE_ITEMS:,} items, this model has "
                f"{self.n_items:,}: serve it with efemb explore MODEL, or explore() in Python"
            )
        contents = tuple(replace(one, bits=bits) for one in self.contents)
        return self_contained_page(replace(self, contents=contents).payloads)

    @cached_property
    def payloads(self) -> list[Payload]:
        """What a page knows of each model."""
        payloads = [make_payload(one) for one in self.contents]
        if len(payloads) == 2:
            for payload, mine, other in zip(
                payloads, self.contents, self.contents[::-1], strict=True
            ):
                kept = (N_KEPT * kept_neighbors(mine.model, other.model, N_KEPT)).round(6)
                title = f"neighbors kept, of {N_KEPT}"
                color_by_number(payload, "kept", "neighbors kept", title, kept, first=True)
                choices = payload.header["choices"]
                choices["tab"].insert(0, ("compare", "Compare"))
                choices["color"].insert(0, ("kept", "neighbors kept"))
        return payloads

    def without_vectors(self) -> Explorer:
        """The same for pages that ask a server."""
        return replace(self, contents=tuple(one.without_vectors() for one in self.contents))

    def to_html(self, path: Any, bits: int = 24) -> Path:
        """Write the self-contained page.

        Parameters
        ----------
        path : str or path
            The file; an older one is replaced when the new one is complete.
        bits : {24, 16, 8}, default=24
            Precision of the vectors, as in `html`.

        Returns
        -------
        Path
            The file.
        """
        target = file_target(path)
        page = self.html(bits)
        with complete_or_absent(target) as stream:
            stream.write(page.encode())
        return target

    def serve(
        self,
        host: str = "127.0.0.1",
        port: int = 8765,
        *,
        token: str | None = None,
        open_browser: bool = True,
        say: Callable[[str], None] = print,
    ) -> None:
        """Answer a browser until interrupted (Ctrl-C).

        Parameters
        ----------
        host : str, default="127.0.0.1"
            Address to listen at. Any other than this machine's own requires a token.
        port : int, default=8765
            If it is in use, the next free one is taken.
        token : str, optional
            What the address must contain (`?token=...`) at the first visit.
        open_browser : bool, default=True
            Open the page in a browser.
        say : function of a text
            Hears the address of the page.
        """
        from efemb.explore.serving import serve

        serve(self, host, port, token=token, open_browser=open_browser, say=say)

    def _repr_html_(self) -> str:
        if self.n_items > PAGE_ITEMS:
            return f"<p>{escape(repr(self))}: too large for a cell; call serve()</p>"
        look = f'style="width:100%;height:{FRAME_HEIGHT}px;border:1px solid #8886"'
        return f'<iframe srcdoc="{escape(self.html())}" {look}></iframe>'


def prepare(
    model: Any,
    *,
    against: Any = None,
    data: Any = None,
    test: Any = None,
    groups: Any = None,
    group_column: str | None = None,
    errors: Any = None,
    methods: Any = None,
    names: Any = None,
    progress: bool = False,
) -> Explorer:
    """Prepare an explorer.

    Parameters
    ----------
    model : fitted estimator or FittedEmbedding
    against : fitted estimator or FittedEmbedding, optional
        A second model, shown beside the first; neighbors that differ are marked.
    data : like the X of `fit`, optional
        Rows of the fit or others. Adds counts of pairs and lift, and R^2 for recordings.
    test : like the X of `fit`, optional
        Held-out rows; the card shows their score and, with `data`, that of popularity.
    groups : mapping of labels to groups, one group per item, or path of a table, optional
        Colors of the map. In a table, the items are in the column that has most of their labels.
    group_column : str, optional
        Column of the groups in the table, by default the first beside the items; of other groups,
        what they are called.
    errors : Laplace or array of shape (N,), optional
        How uncertain each embedding is: what `laplace` returns, or a number per item.
    methods : str or list of {"pca", "tsne", "umap"}, optional
        Projections of the maps, the first shown first. By default t-SNE and principal components
        (t-SNE takes about ten seconds for 8,000 items; only the latter from 20,000 items on).
    names : str or pair of str, optional
        Titles; by default the class of the model.
    progress : bool, default=False
        Show progress bars.

    Returns
    -------
    Explorer
    """
    models = [one for one in (model, against) if one is not None]
    fitted = [check_model(one) for one in models]
    wholes = [None if getattr(one, "_completes_by_vectors", True) else one for one in models]
    kinds = [
        vectors.model if whole is None else type(whole).__name__
        for vectors, whole in zip(fitted, wholes, strict=True)
    ]
    titles = _titles(names, kinds)
    if methods is None:
        methods = ("tsne", "pca") if max(f.n_entities for f in fitted) <= PAGE_ITEMS else ("pca",)
    chosen = checked_methods(methods)
    contents = []
    for number, (one, title) in enumerate(zip(fitted, titles, strict=True)):
        of_first = number == 0
        contents.append(
            Contents(
                model=one,
                name=title,
                maps=MapMaker(one, chosen),
                whole=wholes[number],
                data=data if of_first else None,
                test=test if of_first else None,
                groups=read_groups(groups, one.entities, group_column),
                errors=errors if of_first else None,
                progress=progress,
            )
        )
    return Explorer(tuple(contents))


def _titles(names: Any, kinds: list[str]) -> list[str]:
    if names is None:
        if len(set(kinds)) < len(kinds):
            return [f"{kind} {number}" for number, kind in enumerate(kinds, 1)]
        return kinds
    titles = [names] if isinstance(names, str) else list(names)
    if len(titles) != len(kinds) or not all(isinstance(title, str) for title in titles):
        raise DataError(f"names needs one text for each of {len(kinds)} models, got {names!r}")
    return titles


def show(explorer: Explorer, **serving: Any) -> Explorer:
    """Show an explorer where Python runs: in the cell of a notebook, else in the browser."""
    if _in_notebook() and explorer.n_items <= PAGE_ITEMS:
        return explorer  # the cell shows what it returns
    explorer.serve(**serving)
    return explorer


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None or find_spec("IPython") is None:
        return False
    current = shell.get_ipython()
    return current is not None and hasattr(current, "kernel")
