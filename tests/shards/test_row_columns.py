"""Row columns of a store: what terms and groups of rows learn from them, on shards as in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.engine.plan import Plan
from efemb.engine.round import merge
from efemb.engine.state import TrainState, Update
from efemb.model.space import ParameterSpace
from efemb.model.terms.covariate import Covariate
from efemb.shards import ShardStore, fit, prepare, score
from engine import models
from shards.lines import checksum

NAMES: dict[str, Any] = {"basket": "trip", "item": "what", "count": "n"}
ROWS = {"household": "who", "week": "week"}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def lines(n_rows: int = 2400, n_households: int = 60, n_items: int = 30) -> pd.DataFrame:
    """Baskets of households that like a few items each; sales of some items rise by the week."""
    rng = np.random.default_rng(0)
    likes = rng.gamma(0.3, 1.0, (n_households, n_items))
    household, week = rng.integers(n_households, size=n_rows), rng.integers(9, size=n_rows)
    rising = np.where(np.arange(n_items) < 6, 0.25, 0.0)
    X = rng.poisson(0.4 * likes[household] * np.exp(np.outer(week - 4, rising)) + 0.02)
    row, item = np.nonzero(X)
    table = {"trip": row, "who": household[row], "week": week[row], "what": item, "n": X[row, item]}
    return pd.DataFrame(table)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ShardStore:
    options: dict[str, Any] = {"n_shards": 8, "held_out": 0.2, "min_items_per_basket": 2}
    folder = tmp_path_factory.mktemp("store")
    return prepare(lines(), folder, **NAMES, rows=ROWS, together="household", **options)


def described(data: Any) -> list[tuple[Any, ...]]:
    """Every row: its columns, its number of entries and its sum; sorted."""
    sizes, sums = np.diff(data.values.indptr), data.values.sum(axis=1)
    columns = [data.rows[name].tolist() for name in ROWS]
    return sorted(zip(*columns, sizes.tolist(), np.ravel(sums).tolist(), strict=True))


def test_rows_keep_their_columns(tmp_path: Path) -> None:
    """As `read_baskets` reads them, from any files."""
    table = lines(300)
    whole = efemb.read_baskets(table, **NAMES, rows=ROWS)
    for number in range(3):
        table.iloc[number::3].to_parquet(tmp_path / f"{number}.parquet")
    options: dict[str, Any] = {"rows": ROWS, "n_shards": 3}
    stores = [
        prepare(str(tmp_path / "*.parquet"), tmp_path / "a", **NAMES, **options),
        prepare(table, tmp_path / "b", **NAMES, **options),
    ]
    assert stores[0].checksum == stores[1].checksum
    assert stores[0].columns == tuple(ROWS)
    rows = [row for number in range(3) for row in described(stores[0].shard(number))]
    assert sorted(rows) == described(whole)


def test_rows_of_a_household_share_a_shard(store: ShardStore) -> None:
    households = [
        set(store.shard(number).rows["household"].tolist())  # type: ignore[union-attr]
        for number in range(store.n_shards)
    ]
    assert sum(map(len, households)) == len(set.union(*households)) == 60
    assert store.together == "household"
    # Test rows are those of single baskets, whose households are known.
    tests = [store.test.shard(number) for number in range(store.test.n_shards)]
    held = {label for data in tests for label in data.rows["household"]}  # type: ignore[union-attr]
    assert held <= set.union(*households)


def test_values_that_differ_within_a_basket_are_an_error(tmp_path: Path) -> None:
    """In one file as in several; a value that some lines lack is that of the others."""
    table = pd.DataFrame({"trip": [1, 1, 2, 2], "what": list("abab"), "week": [3, None, 4, 5]})
    for number in range(4):
        table.iloc[number : number + 1].to_csv(tmp_path / f"{number}.csv", index=False)
    names: dict[str, Any] = {"basket": "trip", "item": "what", "rows": {"week": "week"}}
    with pytest.raises(efemb.DataError, match=r"'week'.*such as '4.*' and '5"):
        prepare(str(tmp_path / "*.csv"), tmp_path / "a", **names, n_shards=1)
    with pytest.raises(efemb.DataError, match="'week' differs within a basket"):
        prepare(table, tmp_path / "b", **names, n_shards=1)
    good = prepare(
        [tmp_path / f"{number}.csv" for number in range(3)], tmp_path / "c", **names, n_shards=1
    )
    data: Any = good.shard(0)
    assert sorted(map(float, data.rows["week"])) == [3.0, 4.0]
    with pytest.raises(efemb.ParameterError, match="one of the row columns"):
        prepare(table, tmp_path / "d", **names, together="household")


def test_terms_learn_the_same_of_columns_as_in_memory(store: ShardStore) -> None:
    data = store.columns_of_rows()
    rows: dict[str, Any] = {name: np.asarray(data.rows[name]) for name in ROWS}
    assert data.n_rows == store.n_rows
    terms = [Covariate("week"), efemb.RowVectors("household", 2)]
    model = efemb.PoissonEmbedding(2, terms=terms, random_state=0, max_iter=1)
    fitted = fit(model, store).fitted().spec.terms
    week = rows["week"].astype(float)
    assert_allclose([fitted[0].center, fitted[0].scale], [week.mean(), week.std()])  # type: ignore[attr-defined]
    assert sorted(fitted[1].groups) == sorted(set(rows["household"].tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("n_replicas", [1, 4])
def test_households_are_learned_on_shards(store: ShardStore, n_replicas: int) -> None:
    """Vectors of households help on shards, averaged or not, about as much as in memory."""
    from scipy import sparse

    shards: list[Any] = [store.shard(number) for number in range(store.n_shards)]
    values = sparse.csr_array(sparse.vstack([data.values for data in shards]))
    columns = {name: np.concatenate([data.rows[name] for data in shards]) for name in ROWS}
    whole = efemb.Dataset(values, entities=store.vocabulary, rows=columns)

    def model(*terms: Any) -> Any:
        return efemb.PoissonEmbedding(3, terms=list(terms), random_state=0, max_iter=40)

    terms = (efemb.RowVectors("household", 4), Covariate("week"))
    scores = [
        score(fit(model(), store, n_replicas=n_replicas), store.test),
        score(fit(model(*terms), store, n_replicas=n_replicas), store.test),
        score(model(*terms).fit(whole), store.test),
    ]
    gain = scores[2] - scores[0]
    assert gain > 0.05
    assert scores[1] - scores[0] > 0.8 * gain


def test_groups_of_rows_are_learned_on_shards(store: ShardStore) -> None:
    structure = efemb.Grouped("week", min_rows=10)
    model = efemb.PoissonEmbedding(2, structure=structure, random_state=0, max_iter=2)
    fit(model, store, n_replicas=2)
    assert sum(model.report_["groups"].values()) == store.n_rows
    assert model.parameters_.named()["grouped.vectors"].shape == (9, store.n_entities, 2)
    assert np.isfinite(score(model, store.test))


def test_what_a_shard_alone_has_learned_is_not_averaged_away() -> None:
    """Rows that one of four shards has changed move as far as one machine would move them."""
    spec = models.spec("p-emb", terms=(efemb.RowVectors("household", 2, groups=list("abcd")),))
    space, name = ParameterSpace(spec, 5, 1, 1, 2), "household.rows"
    rng = np.random.default_rng(0)
    shapes = {array.name: array.shape for array in space.layout}
    start = TrainState.start(
        space,
        efemb.model.parameters.Parameters.from_named(
            {array: rng.normal(size=shape) for array, shape in shapes.items()}
        ),
        None,
    )
    place = f"squares{list(shapes).index(name)}"
    updates, moves = [], rng.normal(size=(4, 2))
    for shard in range(4):
        state = start.copy()
        state.theta.named()[name][shard] += moves[shard]
        squares = {place: np.zeros(shapes[name]), "squares0": np.full(shapes["rho"], float(shard))}
        squares[place][shard] = 1.0 + shard
        optimizer = type(state.optimizer)("Adagrad", squares)
        updates.append(Update(state.theta, state.theta, optimizer, 3, 0.0))
    plan = Plan(space, efemb.engine.optimizers.Adagrad(), 8, 5, 0, 100, n_shards=4)
    averaged = merge(start, updates, plan)
    before = start.theta.named()[name]
    assert_allclose(averaged.theta.named()[name], before + moves / 4)
    own = Plan(**{**vars_of(plan), "of_one_shard": frozenset({name})})
    merged = merge(start, updates, own)
    # The step of each shard was sqrt(4) times as long.
    assert_allclose(merged.theta.named()[name], before + moves / 2)
    assert_allclose(merged.optimizer.arrays[place], np.repeat([[1.0], [2.0], [3.0], [4.0]], 2, 1))
    assert_allclose(merged.optimizer.arrays["squares0"], 1.5)
    assert_allclose(merged.theta.rho, start.theta.rho)


def vars_of(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}


def test_what_needs_all_values_is_refused(store: ShardStore, tmp_path: Path) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"terms": [efemb.History("household")]}, "values of all training rows.*fit it in memory"),
        ({"terms": [efemb.ItemPairs()]}, "values of all training rows.*fit it in memory"),
        ({"terms": [Covariate("price")]}, r"'price'.*lacks.*'household', 'week'.*rows="),
        ({"structure": efemb.Grouped("store")}, r"'store'.*lacks.*rows="),
        ({"structure": efemb.Tree(["department"])}, "entity feature 'department'"),
    ]
    for options, match in refused:
        with pytest.raises(efemb.EfembError, match=match):
            fit(efemb.PoissonEmbedding(2, **options), store)


@pytest.mark.slow
def test_terms_have_the_same_bits_on_a_cluster(store: ShardStore) -> None:
    import efemb.dask
    from efemb.dask.cluster import start_local

    def model() -> Any:
        terms = [efemb.RowVectors("household", 2), Covariate("week")]
        return efemb.PoissonEmbedding(2, terms=terms, random_state=0, max_iter=2)

    expected = checksum(fit(model(), store, n_replicas=4))
    with start_local(n_workers=2, processes=False) as client:
        fitted = efemb.dask.fit(model(), store, client=client, n_replicas=4)
    assert checksum(fitted) == expected
