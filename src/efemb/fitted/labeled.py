"""LabeledVectors: one vector per label, and queries about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, Unpack

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.data.array_checks import float_array, list_first
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, check_integer, check_known
from efemb.fitted.nearest import largest, largest_products, unit_rows
from efemb.fitted.selection import Choice, Options, Unknown, accepts
from efemb.table import Table, import_package, whole_numbers

_MEANING = {
    "similarity": "cosine of the vectors, 1 for items in the same contexts",
    "score": "3CosMul, larger is better",
}
EPSILON = 1e-3  # keeps 3CosMul finite; the value of Levy and Goldberg (2014)


class LabeledVectors:
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
    >>> words = LabeledVectors(["king", "queen", "apple"], [[1, 0.9], [1, 1], [-1, 0.2]])
    >>> words.similar("king", n=1)
    label  similarity
    queen      0.9986
    similarity: cosine of the vectors, 1 for items in the same contexts
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
        vocabulary = labels if isinstance(labels, Vocabulary) else Vocabulary(labels)
        object.__setattr__(self, "_vocabulary", vocabulary)
        object.__setattr__(self, "_vectors", _checked_vectors(vectors, vocabulary))
        object.__setattr__(self, "_unit", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("LabeledVectors are immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return LabeledVectors, (self._vocabulary, self._vectors)

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
            return np.asarray(self._vectors[Choice(self._vocabulary).codes(label)])
        return np.asarray(self._vectors[self._vocabulary.index_of(label)])

    def __repr__(self) -> str:
        labels = repr(self._vocabulary).partition(": ")[2][:-1]
        shape = f"{len(self):,} labels x {self.n_components}"
        return f"LabeledVectors({shape}, {self._vectors.dtype}: {labels})"

    def to_pandas(self) -> Any:
        """The vectors as a pandas DataFrame: a row per label, columns 0 to K - 1."""
        pandas = import_package("pandas")
        index = pandas.Index(self._vocabulary.labels, name="label")
        return pandas.DataFrame(self._vectors.copy(), index=index)

    def most_frequent(self, n: int) -> LabeledVectors:
        """The labels that occur most often; the first ones if counts are not known.

        Parameters
        ----------
        n : int
            Number of labels.

        Returns
        -------
        LabeledVectors
        """
        size = check_integer("n", n)
        counts = self._vocabulary.counts
        if counts is None:
            index = np.arange(min(size, len(self)))
        else:
            index = np.argsort(-counts, kind="stable")[:size]
        return LabeledVectors(self._vocabulary.take(index), _frozen(self._vectors[index]))

    def similarity(self, a: object, b: object) -> float:
        """Cosine of the vectors of two labels.

        Parameters
        ----------
        a, b : label

        Returns
        -------
        float
        """
        pair = self._vectors[[self._vocabulary.index_of(a), self._vocabulary.index_of(b)]]
        first, second = unit_rows(pair.astype(np.float64))
        return float(np.clip(first @ second, -1.0, 1.0))

    @accepts(Options)
    def similar(
        self, query: Any, n: int = 10, *, progress: bool = False, **options: Unpack[Options]
    ) -> Table:
        """The `n` labels whose vectors have the largest cosine with the query, exactly.

        Parameters
        ----------
        query : label, list of labels, or array of floats of shape (K,) or (B, K)
            A label is left out of its own answer. With a list of labels or a matrix, the table
            gets a column `query` (the label, or the number of the row).
        n : int, default=10
            Fewer rows come back where fewer labels are left.
        progress : bool, default=False
            Show a progress bar.
        **options
            where, exclude, min_count, match, unknown: which labels may be answers, applied before
            the search; see `Choice`.

        Returns
        -------
        Table
            label, similarity and, where the vocabulary has counts, count; best first, ties in
            the order of the labels.
        """
        size, choice = check_integer("n", n), Choice(self._vocabulary, **options)
        names, queries, own = self._queries(query, choice)
        # One more than requested, because a label is removed from its own answer.
        n_nearest = size if own is None else size + 1
        table = self.unit_vectors
        with progress_bar("similar", len(queries), progress) as advance:
            codes, scores = largest_products(table, queries, n_nearest, choice.rows, advance)
        listed = np.ones(codes.shape, dtype=bool) if own is None else codes != own[:, None]
        listed &= np.cumsum(listed, axis=1) <= size
        first = {} if names is None else {"query": np.repeat(names, listed.sum(axis=1))}
        return self._table(codes[listed], scores[listed], "similarity", first)

    @accepts(Options)
    def analogy(
        self,
        positive: Any,
        negative: Any = (),
        n: int = 10,
        method: Literal["add", "mul"] = "add",
        **options: Unpack[Options],
    ) -> Table:
        """Labels near all `positive` and far from all `negative` ones, which are left out.

        "add" (3CosAdd) ranks x by the cosine with the sum of unit vectors, negative ones
        subtracted; "mul" (3CosMul, Levy and Goldberg 2014) by the product of (1 + cos(x, p)) / 2
        divided by the product of (1 + cos(x, q)) / 2, plus 0.001. king - man + woman is
        `analogy(["king", "woman"], ["man"])`.

        Parameters
        ----------
        positive, negative : label or list of labels
            What answers should be near to, and far from.
        n : int, default=10
            Maximum number of answers.
        method : {"add", "mul"}, default="add"
            How cosines are combined.
        **options
            where, exclude, min_count, match, unknown: which labels may be answers, applied before
            the search; see `Choice`.

        Returns
        -------
        Table
            label, similarity ("add") or score ("mul") and, where known, count.
        """
        check_known("method", method, ("add", "mul"))
        size, choice = check_integer("n", n), Choice(self._vocabulary, **options)
        plus, minus = choice.codes(positive), choice.codes(negative, needed=False)
        rows = choice.without(np.concatenate([plus, minus]))
        unit = self.unit_vectors
        if method == "add":
            direction = unit[plus].sum(axis=0) - unit[minus].sum(axis=0)
            codes, scores = largest_products(unit, unit_rows(direction[None]), size, rows)
            return self._table(codes[0], scores[0], "similarity", {})
        above, below = (((1 + unit @ unit[side].T) / 2).prod(axis=1) for side in (plus, minus))
        score = (above / (below + EPSILON))[rows]
        best = largest(score, size)
        codes = np.arange(len(unit))[rows][best]
        return self._table(codes, score[best], "score", {})

    def doesnt_match(self, labels: Any, unknown: Unknown = "error") -> Any:
        """The label whose unit vector has the smallest cosine with the mean of all of them.

        Parameters
        ----------
        labels : list of labels
            At least three different ones.
        unknown : {"error", "skip"}, default="error"
            What to do with labels that are not known.

        Returns
        -------
        label
        """
        all_codes = Choice(self._vocabulary, unknown=unknown).codes(labels)
        codes = np.array(list(dict.fromkeys(all_codes.tolist())))
        if len(codes) < 3:
            raise DataError(
                f"doesnt_match needs at least 3 different known labels, got {len(codes)}: "
                "two are equally far from their mean"
            )
        unit = unit_rows(self._vectors[codes].astype(np.float64))
        return self._vocabulary[int(codes[np.argmin(unit @ unit.mean(axis=0))])]

    # -- inside ---------------------------------------------------------------------------------

    def _queries(self, query: Any, choice: Choice) -> tuple[Any, Floats, Ints | None]:
        """Names (None: a single query), unit vectors (B, K), and the codes of the labels."""
        if self._is_vector(query):
            rows = _checked_query(query, self.n_components)
            names = np.arange(len(rows)) if np.ndim(query) == 2 else None
            return names, unit_rows(rows).astype(self._vectors.dtype), None
        codes = choice.codes(query)
        several = isinstance(query, Iterable) and not isinstance(query, str)
        names = self._vocabulary.labels[codes] if several else None
        return names, self.unit_vectors[codes], codes

    def _is_vector(self, query: Any) -> bool:
        if isinstance(query, np.ndarray):
            return query.dtype.kind == "f" or query.ndim == 2
        if not isinstance(query, list | tuple) or not query:
            return False
        return all(isinstance(number, float) and number not in self._vocabulary for number in query)

    def _table(self, codes: Ints, scores: Floats, name: str, first: dict[str, Any]) -> Table:
        values = scores.astype(np.float64)
        if name == "similarity":
            values = np.clip(values, -1.0, 1.0)  # rounding
        columns = {**first, "label": self._vocabulary.labels[codes], name: values}
        if self._vocabulary.counts is not None:
            columns["count"] = whole_numbers(self._vocabulary.counts[codes])
        return Table(columns, f"{name}: {_MEANING[name]}")


def _checked_vectors(vectors: Any, labels: Vocabulary) -> Floats:
    array = float_array(vectors, "vectors")
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"vectors must have the shape (N, K), K >= 1, not {array.shape}")
    if len(array) != len(labels):
        raise DataError(f"there are {len(labels):,} labels, but {len(array):,} vectors")
    if len(array) == 0:
        raise DataError("there is no vector; at least one label is needed")
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()  # NaN and infinity stay in a sum: most arrays need no closer look
    if not np.isfinite(total):
        _check_finite(array, labels)
    return array if not array.flags.writeable else _frozen(array.copy())


def _check_finite(array: Floats, labels: Vocabulary) -> None:
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise DataError(
            f"the vector of {shorten(labels[int(bad[0])])} holds NaN or infinite numbers "
            f"(rows {list_first(bad)})"
        )


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


def check_labeled(vectors: object) -> None:
    """Raise an error if something else is passed, such as a model."""
    if not isinstance(vectors, LabeledVectors):
        raise InputTypeError(
            f"expected LabeledVectors, such as model.vectors(), not {type(vectors).__name__}"
        )
