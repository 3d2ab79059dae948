"""Window: the words around a position of a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.array_checks import make_csr
from efemb.errors import DataError, ParameterError, check_integer
from efemb.model.contexts.base import Context, or_one
from efemb.model.contexts.bound.rows import RowBags, RowBlock, Stored
from efemb.model.contexts.bound.terms import Bags, Terms
from efemb.model.ingredient import flag, positive_number

if TYPE_CHECKING:
    from efemb.data.corpus import Corpus
    from efemb.data.vocabulary import Vocabulary


ROWS_AT_ONCE = 1 << 18
LARGEST = 1 << 30  # size of a window; no text is longer


class Window(Context):
    """Up to `size` words on either side of a word, in the same document.

    Parameters
    ----------
    size : int, default=5
        Words on each side.
    scale : {"items", "none", "total"}, default="items"
        "items" and "total" take the mean of the context vectors, which usually predicts held-out
        words better; "none" sums them, as in the paper.
    positional : bool, default=False
        Weight the elements of a context vector by its position in the window (the vLBL of Mnih
        and Kavukcuoglu; with the reverse conditional, their ivLBL): s = sum of c_j * alpha_(w_j),
        with a learned c_j for each position j.
    subsample : float, "auto" or None, default=None
        Drop tokens of frequent words at random, anew in each pass, before windows are formed:
        word2vec's rule with this threshold (1e-3 is usual). Only negative sampling and similar
        methods draw anew; for exact models use `Corpus.subsampled`. "auto" is 1e-3 for texts of at
        least a million words, and no subsampling for shorter ones.
    shrink : bool, default=False
        For skip-gram with negative sampling or similar methods: draw the size of each window anew
        in each pass, between 1 and `size`, as word2vec does, so that near words count for more.
    length_offset : bool, default=False
        For Poisson models: add the logarithm of the document's length to the natural parameter, so
        that the mean is proportional to the length.

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> context = Window(2, scale="none")
    >>> model = efemb.CBOW(4, context=context, min_count=1, random_state=0).fit(text)
    >>> model.rho_.shape
    (7, 4)
    """

    reads_text = True
    binary = False

    def __init__(
        self,
        size: int = 5,
        scale: str = "items",
        positional: bool = False,
        subsample: float | str | None = None,
        length_offset: bool = False,
        shrink: bool = False,
    ) -> None:
        self.size = size
        self.scale = scale
        self.positional = positional
        self.subsample = subsample
        self.length_offset = length_offset
        self.shrink = shrink

    def check(self) -> None:
        """`size` must be >= 1, and `subsample` > 0 if it is set."""
        super().check()
        if check_integer(f"{type(self).__name__}.size", self.size) > LARGEST:
            raise ParameterError(f"Window.size must be at most {LARGEST:,}, got {self.size:,}")
        if isinstance(self.subsample, str) and self.subsample != "auto":
            raise ParameterError(
                f"Window.subsample must be > 0, 'auto' or None, got {self.subsample!r}"
            )
        if self.subsample is not None and not isinstance(self.subsample, str):
            positive_number(self, "subsample")
        for name in ("positional", "length_offset", "shrink"):
            flag(f"Window.{name}", getattr(self, name))

    def bind(self, data: Any) -> WindowBags:
        """Each token is a row whose bag is the words around it."""
        from efemb.data.corpus import Corpus

        if not isinstance(data, Corpus):
            raise DataError(
                "a Window context needs text: a path, token lists or a Corpus (efemb.read_text); "
                f"got {data!r}"
            )
        return WindowBags(data, self)

    def bind_gap(
        self, words: Ints, vocabulary: Vocabulary, rows: Mapping[str, Any] | None = None
    ) -> tuple[WindowBags, int]:
        """A text with one missing word, and the row of the gap.

        `rows` has the columns of the document. Half of the words come before the gap; the code -1
        is a word that the vocabulary lacks, which keeps its position. Only a positional window
        has a limited number of positions.
        """
        from efemb.data.corpus import Corpus

        if self.positional and len(words) > 2 * self.size:
            raise ParameterError(f"the window holds {2 * self.size} words, got {len(words)}")
        window = Window(max(self.size, len(words)), self.scale)
        gap = len(words) // 2
        tokens = np.insert(words, gap, 0)
        text = Corpus(np.maximum(tokens, 0), [0, len(tokens)], vocabulary, rows=rows)
        return WindowBags(text, self if self.positional else window, tokens < 0), gap


class WindowBags(RowBags):
    """A row for each token; its only entry is the token, its bag the words around it."""

    is_text = True

    data: Corpus  # type: ignore[assignment]

    def __init__(self, data: Corpus, window: Window, blank: Bools | None = None) -> None:
        """Tokens that are `blank` have a position in windows but are not members of them."""
        self.blank = blank
        self.data, self.window, self.scale, self.binary = data, window, window.scale, False
        self.n_rows, self.n_entities, self.n_dims = data.n_rows, data.n_entities, 1
        self.n_slots = 2 * window.size if window.positional else 1
        self.members = self.masked = None
        self.whole = data  # type: ignore[assignment]
        # No window reaches further than the longest document.
        self.reach = int(min(window.size, max(int(np.diff(data.starts).max()) - 1, 1)))
        near = np.arange(1, self.reach + 1)
        self.offsets = np.concatenate([-near[::-1], near])
        self.slots = np.concatenate([window.size - near[::-1], window.size - 1 + near])

    def spread_to_rows(self, values: Ints) -> Ints:
        """Repeat the value of each document for all of its tokens."""
        return np.repeat(values, np.diff(self.data.starts))

    @cached_property
    def exposure(self) -> Floats | None:  # type: ignore[override]
        """Length of each token's document if it is an offset, else None.

        With exposure L, the log-density of x given mean L m is L times that of x / L given m, up to
        a constant; so a row has the weight L and the value 1 / L.
        """
        if not self.window.length_offset:
            return None
        lengths = np.diff(self.data.starts)
        return np.repeat(lengths, lengths).astype(np.float64)

    def row_weights(self, weight: Floats) -> Floats:
        """Weights of the rows, times their exposure."""
        return weight if self.exposure is None else weight * self.exposure

    def _values(self, rows: Ints) -> Floats:
        if self.exposure is None:
            return np.ones(len(rows), np.float32)
        return np.asarray(1.0 / self.exposure[rows])

    @cached_property
    def own_counts(self) -> Floats:
        """Counts of the words in this text."""
        return self.data.counts()

    @cached_property
    def word_counts(self) -> Floats:
        """Counts of the words in the text of the vocabulary if it has them, else in this text."""
        counts = self.data.vocabulary.counts
        return self.own_counts if counts is None else counts

    @cached_property
    def stored(self) -> Stored:
        """All tokens as one-entry rows."""
        n = self.n_rows
        rest = self._divisor(self.predictions_of_entry()).astype(np.float32)
        values, none = self._values(np.arange(n)), np.zeros(n, np.float32)
        return Stored(np.arange(n + 1), self.data.tokens, values, none, rest, rest, None)

    def block(self, rows: Ints, *, reverse: bool = False) -> RowBlock:
        """Some tokens with the words around them; in a reverse model, a row for each such pair."""
        around_rows = self._around(rows)
        sizes = around_rows.inside.sum(axis=1)
        owner, offset = np.nonzero(around_rows.inside)
        slot = self.slots[offset]
        around = self.data.tokens[around_rows.place[around_rows.inside]].astype(np.int64)
        own_word = self.data.tokens[rows].astype(np.int64)
        if reverse:
            word = own_word[owner]
            return self._pairs(word + self._first(slot), around, owner, rows)
        total = self._divisor(sizes).astype(np.float32)
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        every, values = np.arange(len(rows) + 1), self._values(rows)
        return RowBlock(
            bag_ptr=ptr,
            bag_ids=around + self._first(slot),
            bag_values=np.ones(len(around), np.float32),
            ptr=every,
            ids=own_word,
            x=values,
            own=np.zeros_like(values),
            total=total,
            rest=total,
            row=every[:-1],
        )

    def scored_block(self, rows: Ints, *, reverse: bool) -> RowBlock:
        """`block`, but with the pairs of a token in one row if they share their context.

        A word is one unit of the score, regardless of the length of its document.
        """
        block = self.block(rows, reverse=reverse)
        block = replace(block, x=np.ones(len(block.x), np.float32))
        if not reverse or self.window.positional:
            return block
        sizes = np.bincount(block.row, minlength=len(rows))
        nonempty = np.flatnonzero(sizes)
        every, ones = np.arange(len(nonempty) + 1), np.ones(len(nonempty), np.float32)
        words = self.data.tokens[rows[nonempty]].astype(np.int64)
        ptr = np.concatenate([[0], np.cumsum(sizes[nonempty])])
        return RowBlock(
            every, words, ones, ptr, block.ids, block.x, block.own, ones, block.rest, nonempty
        )

    def _pairs(self, words: Ints, predicted: Ints, owner: Ints, rows: Ints) -> RowBlock:
        every, ones = np.arange(len(words) + 1), np.ones(len(words), np.float32)
        x = self._values(rows)[owner]
        own = np.zeros_like(x)
        return RowBlock(every, words, ones, every, predicted, x, own, ones, ones, owner)

    def _first(self, slot: Ints) -> Ints | int:
        return slot * self.n_entities if self.window.positional else 0

    def reverse_products(self, rows: Ints, target: Floats, bag: Floats) -> Floats:
        """A word is predicted by each of those around it: the mean of their predictions."""
        inner_products = self.products(rows, target, bag)
        if self.scale != "none":  # already a mean
            return inner_products
        return inner_products / or_one(self._around(rows).inside.sum(axis=1))[:, None]

    def context_of(self, row: int, entity: int, *, reverse: bool = False) -> tuple[Ints, Floats]:
        """The words around a token, the same for every predicted word."""
        vectors, coefficients = super().context_of(row, entity)
        if reverse and self.scale == "none":  # a mean, as in `reverse_products`
            coefficients = coefficients / max(len(vectors), 1)
        return vectors, coefficients

    def _divisor(self, sizes: Ints) -> Floats:
        return np.ones(len(sizes)) if self.scale == "none" else or_one(sizes.astype(np.float64))

    def _around(self, rows: Ints) -> _Around:
        starts = self.data.starts
        document = np.searchsorted(starts, rows, side="right") - 1
        at = rows[:, None] + self.offsets
        inside = (at >= starts[document][:, None]) & (at < starts[document + 1][:, None])
        if self.blank is not None:
            inside[inside] = ~self.blank[at[inside]]
        return _Around(at, inside)

    def observed(self, rows: Ints) -> Floats:
        """Indicators of the words at some tokens, (rows, N)."""
        x = np.zeros((len(rows), self.n_entities))
        x[np.arange(len(rows)), self.data.tokens[rows]] = 1.0
        return x

    def terms(self, rows: Ints, *, reverse: bool = False, missing: bool = False) -> Terms:
        """A term for every word of the vocabulary at each token (or for each pair)."""
        block = self.block(rows, reverse=reverse)
        n_rows, n_entities = len(block.total), self.n_entities
        x = np.zeros((n_rows, n_entities))
        x[np.arange(n_rows), block.ids] = block.x
        each = np.repeat(np.arange(n_rows), n_entities)
        entity = np.tile(np.arange(n_entities), n_rows)
        shape = (n_rows, self.n_context_vectors)
        matrix = make_csr((block.bag_values, block.bag_ids, block.bag_ptr), shape=shape)
        bags = Bags(matrix=matrix, bag=each, scale=block.total.astype(np.float64)[each])
        return Terms(x.ravel(), block.row[each], entity, entity, (bags,))

    def predictions_of_entry(self) -> Ints:
        """Number of words around each token, which is also the number that predict it."""
        n_around = np.empty(self.n_rows, np.int64)
        for start in range(0, self.n_rows, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, self.n_rows))
            n_around[rows] = self._around(rows).inside.sum(axis=1)
        return n_around

    def cost_of_row(self) -> int:
        """Every word of the vocabulary."""
        return self.n_entities


@dataclass(frozen=True)
class _Around:
    """Positions around some tokens, and which of them are in the same document."""

    place: Ints
    inside: Any
