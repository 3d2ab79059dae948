"""Explicit: an arbitrary context for each observation, as index lists or by labels of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Ints
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.contexts.base import Context
from efemb.model.contexts.bound.cells import CellLists

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

SIDES = ("row", "entity", "member row", "member")


class Explicit(Context):
    """Cells are numbered row by row, c = t N + n; the members of c are other cells.

    Such lists refer to the rows of the fit. `Explicit.by_labels` refers to rows by their labels
    instead, so that the model also predicts other rows that the lists name.

    Parameters
    ----------
    indptr : integer array (T N + 1,)
    indices : integer array
        Members of cell c are `indices[indptr[c]:indptr[c + 1]]`.
    scale : {"items", "total", "none"}, default="none"
        Divide the context sum by the number of observed members, by the sum of their values, or
        by 1.
    binary : bool, default=False
        Count a member as 1 where it is not zero, whatever its value.
    edges : tuple of four lists, optional
        In place of `indptr` and `indices`; see `by_labels`.

    Examples
    --------
    Each day is predicted from the same sensors a day before, whichever days are predicted.

    >>> import numpy as np, efemb
    >>> days = np.arange(40)
    >>> wave = np.sin(days[:, None] / 3.0 + np.arange(3))
    >>> row, sensor = (index.ravel() for index in np.meshgrid(days[1:], np.arange(3)))
    >>> context = Explicit.by_labels(row, sensor, row - 1, sensor)
    >>> train, test = (
    ...     efemb.Dataset(wave[a:b], row_labels=days[a:b]) for a, b in ((0, 30), (29, 40))
    ... )
    >>> model = efemb.Embedding(1, family="gaussian", context=context, random_state=0).fit(train)
    >>> model.conditional(test).shape
    (11, 3)
    """

    def __init__(
        self,
        indptr: Any,
        indices: Any,
        scale: str = "none",
        binary: bool = False,
        edges: tuple[Any, Any, Any, Any] | None = None,
    ) -> None:
        self.indptr = indptr
        self.indices = indices
        self.scale = scale
        self.binary = binary
        self.edges = edges

    @classmethod
    def by_labels(
        cls,
        row: Any,
        entity: Any,
        member_row: Any,
        member: Any,
        *,
        scale: str = "none",
        binary: bool = False,
    ) -> Explicit:
        """Lists for any rows, known or yet to come: four arrays with one element per member.

        Parameters
        ----------
        row, member_row : array of labels
            Labels of the rows of the observation and of the member (``Dataset(row_labels=...)``).
        entity, member : array of labels
            Labels of the entities; their numbers if the data have no labels.
        scale, binary : str and bool, default="none" and False
            As in `Explicit`.

        Returns
        -------
        Explicit
            Bound to data, it uses the members whose two rows are both in the data and ignores the
            others. An observation without members is predicted by its intercept.
        """
        edges = tuple(np.asarray(side).tolist() for side in (row, entity, member_row, member))
        return cls(None, None, scale, binary, edges)

    @property
    def reaches_other_rows(self) -> bool:
        """Members may be any cells of the data that the lists were made for."""
        return True

    def check(self) -> None:
        """Lists must be given in exactly one of the two ways."""
        super().check()
        if self.edges is None:
            return
        if self.indptr is not None or self.indices is not None:
            raise ParameterError("Explicit takes indptr and indices, or edges, not both")
        sizes = [np.shape(side) for side in self.edges]
        if len(sizes) != 4 or len(set(sizes)) != 1 or len(sizes[0]) != 1:
            raise InputTypeError(
                f"Explicit.by_labels takes four arrays of the same length ({', '.join(SIDES)}), "
                f"got shapes {sizes}"
            )

    def bind(self, data: Dataset) -> CellLists:
        """Check the lists against the data, or look up the rows of the data in them."""
        indptr, indices = self.indptr, self.indices
        if self.edges is not None:
            indptr, indices = self._find(data)
        return CellLists(data, indptr, indices, scale=self.scale, binary=self.binary)

    def _find(self, data: Dataset) -> tuple[Ints, Ints]:
        """The lists of the cells of the data, in CSR form."""
        assert self.edges is not None
        if data.row_labels is None:
            raise DataError(
                "Explicit.by_labels needs the labels of rows, which the data do not have: pass "
                "Dataset(values, row_labels=[...])"
            )
        row, member_row = (_places(data.row_labels, side) for side in self.edges[::2])
        labels = np.arange(data.n_entities) if data.entities is None else data.entities.labels
        entity, member = (_places(labels, side) for side in self.edges[1::2])
        for name, codes, side in zip(SIDES[1::2], (entity, member), self.edges[1::2], strict=True):
            if (codes < 0).any():
                unknown = side[np.flatnonzero(codes < 0)[0]]
                raise DataError(f"Explicit.by_labels: the {name} {unknown!r} is not in the data")
        in_data = (row >= 0) & (member_row >= 0)
        cell = (row * data.n_entities + entity)[in_data]
        members = (member_row * data.n_entities + member)[in_data]
        order = np.argsort(cell, kind="stable")
        sizes = np.bincount(cell, minlength=data.n_rows * data.n_entities)
        return np.concatenate([[0], np.cumsum(sizes)]), members[order]


def _places(labels: Any, labels_to_find: list[Any]) -> Ints:
    """Index of each label among `labels`, -1 if it is not there."""
    code_of = {str(label): code for code, label in enumerate(np.asarray(labels).tolist())}
    return np.array([code_of.get(str(label), -1) for label in labels_to_find], dtype=np.int64)
