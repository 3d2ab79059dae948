"""LabelledVectors: one vector a label, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np

from efemb.data.validation import float_array, listed
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, ParameterError, suggest
from efemb.nearest import BLOCK, checked_method, checked_number, largest, unit_rows
from efemb.table import Table
from efemb.types import Floats, Ints

Unknown = Literal["error", "skip"]

EPSILON = 1e-3  # keeps 3CosMul finite; the value of Levy and Goldberg (2014)


class LabelledVectors:
    """Immutable vectors with labels; similarity is the cosine, 0 where a vector is zero.

    Parameters
    ----------
    labels : Vocabulary or iterable of labels
        One for each vector; counts of a Vocabulary appear in results.
    vectors : array of shape (N, K)
        Finite; float32 and float64 are kept, other numbers become float64. Copied unless it is
        read-only already.

    Examples
    --------
    >>> words = LabelledVectors(["king", "queen", "apple"], [[1, 0.9], [1, 1], [-1, 0.2]])
    >>> words.similar("king", n=1)
    label  similarity
    queen      0.9986
    >>> "pear" in words, words["apple"].tolist()
    (False, [-1.0, 0.2])
    """

    __slots__ = ("_unit", "_vectors", "_vocabulary")

    _vocabulary: Vocabulary
    _vectors: Floats
    _unit: Floats | None

    def __init__(self, labels: Vocabulary | Iterable[object], vectors: Any) -> None:
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise InputTypeError("labels must be a Vocabulary or a sequence of labels")
        known = labels if isinstance(labels, Vocabulary) else Vocabulary(labels)
        object.__setattr__(self, "_vocabulary", known)
        object.__setattr__(self, "_vectors", _checked_vectors(vectors, known))
        object.__setattr__(self, "_unit", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("LabelledVectors are immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return LabelledVectors, (self._vocabulary, self._vectors)

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels."""
        return self._vocabulary

    @property
    def vectors(self) -> Floats:
        """Array (N, K), read-only."""
        return self._vectors

    @property
    def unit_vectors(self) -> Floats:
        """Vectors of length 1 (zero stays zero), read-only; made when first needed and kept."""
        unit = self._unit
        if unit is None:
            unit = unit_rows(self._vectors)
            object.__setattr__(self, "_unit", unit)
        return unit

    @property
    def n_components(self) -> int:
        """K."""
        return int(self._vectors.shape[1])

    def __len__(self) -> int:
        return len(self._vocabulary)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._vocabulary)

    def __contains__(self, label: object) -> bool:
        return label in self._vocabulary

    def __getitem__(self, label: Any) -> Floats:
        """Vector of a label; matrix of a list of labels."""
        if isinstance(label, list | tuple | np.ndarray):
            return np.asarray(self._vectors[self._codes(label, "error")])
        return np.asarray(self._vectors[self._vocabulary.index_of(label)])

    def __repr__(self) -> str:
        labels = repr(self._vocabulary).partition(": ")[2][:-1]
        shape = f"{len(self):,} labels x {self.n_components}"
        return f"LabelledVectors({shape}, {self._vectors.dtype}: {labels})"

    def most_frequent(self, n: int) -> LabelledVectors:
        """The `n` labels that occur most often; the first `n` where counts are not known."""
        size = checked_number(n)
        counts = self._vocabulary.counts
        if counts is None:
            index = np.arange(min(size, len(self)))
        else:
            index = np.argsort(-counts, kind="stable")[:size]
        return LabelledVectors(self._vocabulary.take(index), _frozen(self._vectors[index]))

    def similarity(self, a: object, b: object) -> float:
        """Cosine of the vectors of two labels."""
        pair = self._vectors[[self._vocabulary.index_of(a), self._vocabulary.index_of(b)]]
        first, second = unit_rows(pair.astype(np.float64))
        return float(np.clip(first @ second, -1.0, 1.0))

    def similar(
        self, query: Any, n: int = 10, exclude: Any = (), unknown: Unknown = "error"
    ) -> Table:
        """The `n` labels whose vectors have the largest cosine with the query, exactly.

        Parameters
        ----------
        query : label, list of labels, or array of floats of shape (K,) or (B, K)
            A label is left out of its own answer. With a list of labels or a matrix, the table
            gets a column `query` (the label, or the number of the row).
        n : int
            Fewer rows come back where fewer labels are left.
        exclude : label or labels
            Never part of an answer.
        unknown : "error" or "skip"
            Skip labels that are not known; at least one must be.

        Returns
        -------
        Table
            label, similarity and, where the vocabulary has counts, count; best first, ties in
            the order of the labels.
        """
        size, left_out = checked_number(n), self._codes(exclude, unknown, needed=False)
        names, queries, own = self._queries(query, unknown)
        many = names is not None
        unit = self.unit_vectors
        step = max(1, BLOCK // max(1, len(self)))
        codes: list[Ints] = []
        scores: list[Floats] = []
        for start in range(0, len(queries), step):
            block = queries[start : start + step] @ unit.T
            block[:, left_out] = -np.inf
            for place, row in enumerate(block, start):
                if own is not None:
                    row[own[place]] = -np.inf
                codes.append(largest(row, size))
                scores.append(row[codes[-1]])
        sizes = [len(found) for found in codes]
        first = {"query": np.repeat(names, sizes)} if many else {}
        return self._table(np.concatenate(codes), np.concatenate(scores), "similarity", first)

    def analogy(
        self,
        positive: Any,
        negative: Any = (),
        n: int = 10,
        method: Literal["add", "mul"] = "add",
        unknown: Unknown = "error",
    ) -> Table:
        """Labels near all `positive` and far from all `negative` ones, which are left out.

        "add" (3CosAdd) ranks x by the cosine with the sum of unit vectors, negative ones
        subtracted; "mul" (3CosMul, Levy and Goldberg 2014) by the product of (1 + cos(x, p)) / 2
        divided by the product of (1 + cos(x, q)) / 2, plus 0.001. king - man + woman is
        `analogy(["king", "woman"], ["man"])`.

        Returns
        -------
        Table
            label, similarity ("add") or score ("mul") and, where known, count.
        """
        checked_method(method)
        size = checked_number(n)
        plus = self._codes(positive, unknown)
        minus = self._codes(negative, unknown, needed=False)
        unit = self.unit_vectors
        if method == "add":
            direction = unit[plus].sum(axis=0) - unit[minus].sum(axis=0)
            scores = unit @ unit_rows(direction[None])[0]
        else:
            above, below = (((1 + unit @ unit[side].T) / 2).prod(axis=1) for side in (plus, minus))
            scores = above / (below + EPSILON)
        scores[plus] = scores[minus] = -np.inf
        found = largest(scores, size)
        return self._table(found, scores[found], "similarity" if method == "add" else "score", {})

    def doesnt_match(self, labels: Any, unknown: Unknown = "error") -> Any:
        """The label whose unit vector has the smallest cosine with the mean of all of them."""
        codes = np.array(list(dict.fromkeys(self._codes(labels, unknown).tolist())))
        if len(codes) < 3:
            raise DataError(
                f"doesnt_match needs at least 3 different known labels, got {len(codes)}: "
                "two are equally far from their mean"
            )
        unit = unit_rows(self._vectors[codes].astype(np.float64))
        return self._vocabulary[int(codes[np.argmin(unit @ unit.mean(axis=0))])]

    # -- inside ---------------------------------------------------------------------------------

    def _codes(self, labels: Any, unknown: Unknown, *, needed: bool = True) -> Ints:
        """Codes of one label or several; `needed`: at least one must be left."""
        if unknown not in ("error", "skip"):
            raise ParameterError(f"unknown={unknown!r}; {suggest(unknown, ['error', 'skip'])}")
        words = [labels] if isinstance(labels, str) or not isinstance(labels, Iterable) else labels
        asked = list(words)
        known = asked if unknown == "error" else [one for one in asked if one in self._vocabulary]
        if needed and not known:
            shown = ", ".join(shorten(one) for one in asked[:5])
            what = f"none of the labels is known: {shown}" if asked else "no label was given"
            raise DataError(f"{what}; at least one is needed")
        return np.array([self._vocabulary.index_of(one) for one in known], dtype=np.int64)

    def _queries(self, query: Any, unknown: Unknown) -> tuple[Any, Floats, Ints | None]:
        """Names (None: a single query), unit vectors (B, K), and the codes of the labels."""
        if self._is_vector(query):
            rows = _checked_query(query, self.n_components)
            names = np.arange(len(rows)) if np.ndim(query) == 2 else None
            return names, unit_rows(rows).astype(self._vectors.dtype), None
        codes = self._codes(query, unknown)
        several = isinstance(query, Iterable) and not isinstance(query, str)
        names = self._vocabulary.labels[codes] if several else None
        return names, self.unit_vectors[codes], codes

    def _is_vector(self, query: Any) -> bool:
        if isinstance(query, np.ndarray):
            return query.dtype.kind == "f" or query.ndim == 2
        if not isinstance(query, list | tuple) or not query:
            return False
        return all(isinstance(one, float) and one not in self._vocabulary for one in query)

    def _table(self, codes: Ints, scores: Floats, name: str, first: dict[str, Any]) -> Table:
        values = scores.astype(np.float64)
        if name == "similarity":
            values = np.clip(values, -1.0, 1.0)  # rounding
        columns = {**first, "label": self._vocabulary.labels[codes], name: values}
        if self._vocabulary.counts is not None:
            columns["count"] = self._vocabulary.counts[codes]
        return Table(columns)


def _checked_vectors(vectors: Any, labels: Vocabulary) -> Floats:
    array = float_array(vectors, "vectors")
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"vectors must have the shape (N, K), K >= 1, not {array.shape}")
    if len(array) != len(labels):
        raise DataError(f"there are {len(labels):,} labels, but {len(array):,} vectors")
    if len(array) == 0:
        raise DataError("there is no vector; at least one label is needed")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise DataError(
            f"the vector of {shorten(labels[int(bad[0])])} holds NaN or infinite numbers "
            f"(rows {listed(bad)})"
        )
    return array if not array.flags.writeable else _frozen(array.copy())


def _frozen(array: Floats) -> Floats:
    array.setflags(write=False)
    return array


def _checked_query(query: Any, size: int) -> Floats:
    rows = np.atleast_2d(float_array(query, "a query vector")).astype(np.float64)
    if rows.ndim != 2 or rows.shape[1] != size or len(rows) == 0:
        raise DataError(
            f"a query vector needs {size} numbers (several: rows of a matrix), "
            f"but has the shape {np.shape(query)}"
        )
    if not np.isfinite(rows).all():
        raise DataError("the query vector holds NaN or infinite numbers")
    return rows
