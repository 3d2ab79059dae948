"""simulate_baskets: large sparse baskets with topics and a Zipf popularity, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from efemb._typing import Floats, Ints
from efemb.data.dataset import Dataset
from efemb.errors import ParameterError, check_integer, check_number

CHUNK_LINES = 1 << 20
TOPIC_SHARE = 0.7  # share of the lines of a basket that come from its topic
MOST_ROUNDS = 16


def simulate_baskets(
    *,
    n_rows: int,
    n_entities: int,
    n_lines: int,
    n_topics: int | None = None,
    exponent: float = 1.0,
    seed: int = 0,
) -> Dataset:
    """Simulate baskets at the scale of a large shop, to measure speed and memory.

    Every basket has a topic; its items are drawn from the topic or from the whole shop, popular
    items more often (Zipf). There are no true vectors; `simulate` draws from a model.

    Parameters
    ----------
    n_rows, n_entities, n_lines : int
        Numbers of baskets, of items, and of distinct items summed over all baskets: at least two
        per basket.
    n_topics : int, optional
        Number of topics; by default the square root of `n_entities`.
    exponent : float, default=1.0
        Exponent of the Zipf law: the share of the r-th item is proportional to
        (r + 10)^-exponent.
    seed : int, default=0
        Random seed.

    Returns
    -------
    Dataset
        Sparse, float32 counts with 32-bit indices.

    Examples
    --------
    >>> simulate_baskets(n_rows=100, n_entities=50, n_lines=600, seed=0)
    Dataset(100 rows x 50 entities, sparse 600 non-zeros float32)
    """
    sizes = {"n_rows": n_rows, "n_entities": n_entities, "n_lines": n_lines, "seed": seed}
    for name, value in sizes.items():
        check_integer(name, value, 0 if name == "seed" else 1)
    largest = n_entities // 2
    if not 2 * n_rows <= n_lines <= n_rows * largest:
        raise ParameterError(
            f"n_lines={n_lines:,} must lie between two items per basket ({2 * n_rows:,}) and "
            f"half of the items per basket ({n_rows * largest:,})"
        )
    if max(n_lines, n_entities) >= 2**31:
        raise ParameterError("n_lines and n_entities must stay below 2**31")
    if n_topics is None:
        n_topics = max(1, int(n_entities**0.5))
    check_integer("n_topics", n_topics)
    if n_topics > n_entities:
        raise ParameterError(f"n_topics={n_topics} exceeds n_entities={n_entities}")
    check_number("exponent", exponent, low=0)
    rng = np.random.default_rng(seed)
    shop = _Shop.open(n_entities, n_topics, float(exponent), rng)
    return _fill(shop, draw_row_sizes(n_rows, n_lines, largest, rng), rng)


def draw_row_sizes(n_rows: int, n_lines: int, largest: int, rng: np.random.Generator) -> Ints:
    """Distinct items per basket: skewed, from 2 to `largest`, exactly `n_lines` in total."""
    weight = rng.gamma(1.0, 1.0, n_rows)
    extra = rng.multinomial(n_lines - 2 * n_rows, weight / weight.sum())
    while (over := int(np.maximum(extra - (largest - 2), 0).sum())) > 0:
        extra = np.minimum(extra, largest - 2)
        open_rows = np.flatnonzero(extra < largest - 2)
        extra += np.bincount(rng.choice(open_rows, over), minlength=n_rows)
    return extra + 2


@dataclass(frozen=True)
class _Shop:
    """Items grouped by topic, and the running sum of their popularity."""

    running: Floats
    edges: Floats  # running sum at the border of each topic
    item: NDArray[np.int32]  # on each shelf, in the order of `running`

    @classmethod
    def open(
        cls, n_entities: int, n_topics: int, exponent: float, rng: np.random.Generator
    ) -> _Shop:
        rank = rng.permutation(n_entities)
        running = np.cumsum((rank + 10.0) ** -exponent)
        borders = (np.arange(1, n_topics) * n_entities) // n_topics
        edges = np.concatenate([[0.0], running[borders - 1], running[-1:]])
        return cls(running, edges, rng.permutation(n_entities).astype(np.int32))

    def draw(self, topic: Ints, rng: np.random.Generator) -> NDArray[np.int32]:
        """One item for each line, given the topic of its basket."""
        low, high = self.edges[topic], self.edges[topic + 1]
        anywhere = rng.random(len(topic)) >= TOPIC_SHARE
        low[anywhere], high[anywhere] = 0.0, self.running[-1]
        mass = low + (high - low) * rng.random(len(topic))
        shelf = np.searchsorted(self.running, mass, "right")
        return np.asarray(self.item[np.minimum(shelf, len(self.item) - 1)])


def _fill(shop: _Shop, sizes: Ints, rng: np.random.Generator) -> Dataset:
    """All baskets, a chunk of rows at a time."""
    n_entities = len(shop.item)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.empty(ptr[-1], dtype=np.int32)
    data = np.empty(ptr[-1], dtype=np.float32)
    topic = rng.choice(len(shop.edges) - 1, len(sizes), p=np.diff(shop.edges) / shop.edges[-1])
    first = 0
    while first < len(sizes):
        last = int(np.searchsorted(ptr, ptr[first] + CHUNK_LINES, "right")) - 1
        last = min(max(last, first + 1), len(sizes))
        lines = slice(ptr[first], ptr[last])
        indices[lines] = _draw_chunk(shop, sizes[first:last], topic[first:last], rng)
        data[lines] = rng.geometric(0.75, ptr[last] - ptr[first])
        first = last
    shape = (len(sizes), n_entities)
    return Dataset(csr_array((data, indices, ptr.astype(np.int32)), shape=shape))


def _draw_chunk(shop: _Shop, sizes: Ints, topic: Ints, rng: np.random.Generator) -> Ints:
    """Different items of some baskets, sorted; a repeated item is drawn again."""
    n_entities = len(shop.item)
    missing = sizes
    full: list[Ints] = []
    partial = np.empty(0, dtype=np.int64)
    for turn in range(MOST_ROUNDS):
        row = np.repeat(np.arange(len(sizes)), missing)
        if len(row) == 0:
            break
        # Baskets with nearly all items of a topic would wait very long for the rarest one.
        usual = turn < MOST_ROUNDS // 2
        item = shop.draw(topic[row], rng) if usual else rng.integers(n_entities, size=len(row))
        # Sorting is several times faster than the hash table of np.unique.
        keys = np.sort(np.concatenate([partial, row * n_entities + item]))
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        owner = keys // n_entities
        short = sizes - np.bincount(owner, minlength=len(sizes))
        missing = np.where(missing > 0, short, 0)
        # Only baskets that still lack items are sorted again.
        partial = keys[missing[owner] > 0]
        full.append(keys[missing[owner] == 0])
    full.append(partial)
    full += [
        _fill_up(partial, row, missing[row], n_entities, rng) for row in np.flatnonzero(missing)
    ]
    return np.sort(np.concatenate(full)) % n_entities


def _fill_up(keys: Ints, row: Any, n: Any, n_entities: int, rng: np.random.Generator) -> Ints:
    """`n` items that a basket lacks."""
    first, last = np.searchsorted(keys, [row * n_entities, (row + 1) * n_entities])
    free = np.setdiff1d(np.arange(n_entities), keys[first:last] % n_entities)
    return np.asarray(row * n_entities + rng.choice(free, n, replace=False))
