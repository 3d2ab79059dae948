"""simulate_iri: shopping trips of the paper's size, drawn item by item from known vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.data.dataset import Dataset
from efemb.data.vocabulary import Vocabulary
from efemb.errors import ParameterError, check_integer, check_number
from efemb.model.factors import Factors
from efemb.model.parameters import Parameters
from efemb.model.predictor import Predictor
from efemb.simulation.baskets import draw_row_sizes

CHUNK_TRIPS = 1 << 14
MOST_ITEMS = 100
REPELLING = 0.3  # share of the components in which similar items repel each other
ROUNDS, TRIPS_AT_ONCE = 2000, 256  # of rejection; later ones are drawn from all items
SPREAD = 0.3  # spread of the items of a category, relative to that of the category centers


@dataclass(frozen=True)
class SimulatedTrips:
    """Simulated trips and the parameters behind them.

    Attributes
    ----------
    data : Dataset
        Trips x items with counts; `report["categories"]` gives the category of each label.
    parameters : Parameters
        The true rho, alpha and intercept.
    """

    data: Dataset
    parameters: Parameters


def simulate_iri(
    *,
    n_rows: int = 137_632,
    n_entities: int = 7_903,
    n_components: int = 20,
    n_lines: int | None = None,
    strength: float = 1.0,
    seed: int = 0,
    progress: bool = False,
) -> SimulatedTrips:
    """Simulate shopping trips with known vectors, at the size of the IRI data of the paper.

    The items of a trip are drawn one after the other: the next one is n with probability
    proportional to exp(intercept_n + rho_n . mean of alpha_m over the items m already there), an
    item already in the trip excepted. Each item thus follows the model given those before it, and
    only approximately given all others, although rho_n . alpha_m is symmetric in n and m. Items of
    a category have similar vectors; some categories repel others. Quantities are 1 or slightly
    more.

    Parameters
    ----------
    n_rows, n_entities : int, default=137632 and 7903
        Numbers of trips and items; by default those of the paper.
    n_components : int, default=20
        Length K of the true vectors.
    n_lines : int, optional
        Distinct items summed over all trips, by default seven per trip; the paper does not report
        it.
    strength : float, default=1.0
        Approximate standard deviation of rho_n . alpha_m.
    seed : int, default=0
        Random seed.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    SimulatedTrips
        Every trip has two different items or more. With the default sizes nearly every item is in
        ten trips or more, as in the paper.

    Examples
    --------
    >>> trips = simulate_iri(n_rows=200, n_entities=60, n_components=3)
    >>> trips.data.shape, trips.data.values.nnz, trips.parameters.rho.shape
    ((200, 60), 1400, (60, 3))
    """
    n_lines = 7 * n_rows if n_lines is None else n_lines
    sizes = {"n_rows": n_rows, "n_entities": n_entities, "n_components": n_components}
    for name, value in {**sizes, "n_lines": n_lines, "seed": seed}.items():
        check_integer(name, value, 0 if name == "seed" else 1)
    largest = min(n_entities // 2, MOST_ITEMS)
    if not 2 * n_rows <= n_lines <= n_rows * largest:
        raise ParameterError(
            f"n_lines={n_lines:,} must lie between 2 ({2 * n_rows:,}) and {largest} "
            f"({n_rows * largest:,}) items per trip"
        )
    check_number("strength", strength, low=0)
    rng = np.random.default_rng(seed)
    shop = _Shop.open(n_entities, n_components, float(strength), rng)
    row_sizes = draw_row_sizes(n_rows, n_lines, largest, rng)
    items = []
    with progress_bar("drawing trips", n_rows, progress) as advance:
        for first in range(0, n_rows, CHUNK_TRIPS):
            chunk = row_sizes[first : first + CHUNK_TRIPS]
            items.append(_draw_trips(shop, chunk, rng))
            advance(len(chunk))
    return SimulatedTrips(
        _make_dataset(shop, row_sizes, np.concatenate(items), rng), shop.parameters
    )


@dataclass(frozen=True)
class _Shop:
    """Items in order of their categories, with vectors center + own part."""

    parameters: Parameters
    predictor: Predictor
    category: Ints  # of each item
    center: Floats  # (categories, K)
    own: Floats  # (items, K)
    running: Floats  # sum of exp(intercept) up to each item
    edges: Floats  # the same at the border of each category

    @classmethod
    def open(
        cls, n_entities: int, n_components: int, strength: float, rng: np.random.Generator
    ) -> _Shop:
        """Popularity by Zipf's law, vectors by category."""
        n_categories = max(1, int(n_entities**0.5))
        category = (np.arange(n_entities) * n_categories) // n_entities
        size = np.sqrt(strength) * n_components**-0.25
        center = rng.normal(0.0, size, (n_categories, n_components))
        own = rng.normal(0.0, SPREAD * size, (n_entities, n_components))
        rho = center[category] + own
        # alpha = rho with some signs flipped, so that rho_n . alpha_m = rho_m . alpha_n.
        signs = np.where(np.arange(n_components) < REPELLING * n_components, -1.0, 1.0)
        intercept = -np.log(rng.permutation(n_entities) + 10.0)
        running = np.cumsum(np.exp(intercept))
        last = np.flatnonzero(np.diff(category, append=n_categories))
        edges = np.concatenate([[0.0], running[last]])
        predictor = Predictor(Factors(rho, rho * signs, intercept))
        parameters = Parameters(rho, rho * signs, intercept)
        return cls(parameters, predictor, category, center, own, running, edges)


def _draw_trips(shop: _Shop, sizes: Ints, rng: np.random.Generator) -> NDArray[np.int32]:
    """Items of some trips, one trip after the other, each trip sorted."""
    basket = np.full((len(sizes), int(sizes.max())), -1, dtype=np.int32)
    sums = np.zeros((len(sizes), shop.center.shape[1]))
    for turn in range(basket.shape[1]):
        trips = np.flatnonzero(sizes > turn)
        item = _draw_next(shop, basket[trips, :turn], sums[trips] / max(turn, 1), rng)
        basket[trips, turn] = item
        sums[trips] += shop.parameters.alpha[item]
    basket[basket < 0] = len(shop.category)  # sorted after all items
    basket.sort(axis=1)
    return basket[basket < len(shop.category)]


def _draw_next(shop: _Shop, basket: Any, context: Floats, rng: np.random.Generator) -> Ints:
    """Draw one item per trip, by rejection as long as that is fast.

    A category is drawn exactly for its center and an item of it by popularity; the item's deviation
    from the center decides whether it is accepted.
    """
    weight = np.diff(shop.edges) * np.exp(context @ shop.center.T)
    running = np.cumsum(weight, axis=1)
    highest = np.linalg.norm(context, axis=1) * np.linalg.norm(shop.own, axis=1).max()
    item = np.empty(len(context), dtype=np.int64)
    pending = np.arange(len(context))
    for _ in range(ROUNDS):
        level = rng.random(len(pending)) * running[pending, -1]
        drawn = (running[pending, :-1] <= level[:, None]).sum(axis=1)
        low, high = shop.edges[drawn], shop.edges[drawn + 1]
        mass = low + (high - low) * rng.random(len(pending))
        # Rounding errors may move the sum to the upper border.
        proposal = np.minimum(np.searchsorted(shop.running, mass, "right"), len(shop.own) - 1)
        fit = np.einsum("tk,tk->t", shop.own[proposal], context[pending])
        accepted = rng.random(len(pending)) < np.exp(fit - highest[pending])
        accepted &= ~(basket[pending] == proposal[:, None]).any(axis=1)
        item[pending[accepted]] = proposal[accepted]
        pending = pending[~accepted]
        if not len(pending):
            break
    for start in range(0, len(pending), TRIPS_AT_ONCE):
        trips = pending[start : start + TRIPS_AT_ONCE]
        item[trips] = _draw_of_all(shop, basket[trips], context[trips], rng)
    return item


def _draw_of_all(shop: _Shop, basket: Any, context: Floats, rng: np.random.Generator) -> Ints:
    """Draw from all items at once, if nearly every proposal would be rejected."""
    fit = shop.predictor.apply(context)
    fit += rng.gumbel(size=fit.shape)
    np.put_along_axis(fit, basket.astype(np.int64), -np.inf, axis=1)
    return np.asarray(fit.argmax(axis=1))


def _make_dataset(
    shop: _Shop, sizes: Ints, indices: NDArray[np.int32], rng: np.random.Generator
) -> Dataset:
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    counts = rng.geometric(0.75, len(indices)).astype(np.float32)
    n_entities = len(shop.category)
    first = np.searchsorted(shop.category, shop.category)
    names = [f"category {c}" for c in shop.category]
    labels = [
        f"{name} item {n}" for name, n in zip(names, np.arange(n_entities) - first, strict=True)
    ]
    times = np.bincount(indices, minlength=n_entities)
    return Dataset(
        csr_array((counts, indices, ptr), shape=(len(sizes), n_entities)),
        entities=Vocabulary(labels, counts=times),
        report={"categories": dict(zip(labels, names, strict=True))},
    )
