"""Grouped: a planted difference is learned, small groups are pooled, bad input is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import efemb
from efemb.fitted.group_models import shared_model
from efemb.model.structures.grouped import Grouped


def swapped(n_rows: int = 3000, n_pairs: int = 5, seed: int = 0) -> efemb.Dataset:
    """Pairs of items are bought together; in the south, the partners of the first two change."""
    rng = np.random.default_rng(seed)
    shop = rng.choice(["north", "south"], n_rows, p=[0.7, 0.3])
    reason = rng.random((n_rows, n_pairs)) < 0.25
    partner = reason.copy()
    south = shop == "south"
    partner[south, 0], partner[south, 1] = reason[south, 1], reason[south, 0]
    counts = np.empty((n_rows, 2 * n_pairs))
    counts[:, ::2], counts[:, 1::2] = reason, partner
    counts += rng.random(counts.shape) < 0.05
    return efemb.Dataset(counts, rows={"shop": shop})


@pytest.mark.slow
def test_a_planted_difference_is_learned() -> None:
    train, test = swapped().split(test=0.3, seed=0)
    south = test.take_rows(test.rows["shop"] == "south")
    alone = train.take_rows(train.rows["shop"] == "south")
    groups = Grouped("shop", precision=10)
    model = efemb.CategoricalEmbedding(8, structure=groups, random_state=0).fit(train)
    plain = efemb.CategoricalEmbedding(8, random_state=0).fit(train)
    separate = efemb.CategoricalEmbedding(8, random_state=0).fit(alone)
    assert model.score(test) > plain.score(test) + 0.1
    assert model.score(south) > max(plain.score(south), separate.score(south)) + 0.01


def test_steps_do_not_depend_on_how_delta_is_scaled() -> None:
    """rho_g = rho + vectors / sqrt(precision)."""
    structure = Grouped("shop", precision=25.0, groups=["a", "b"])
    vectors = np.random.default_rng(0).normal(size=(2, 4, 3))
    shift = np.random.default_rng(1).normal(size=(2, 4))
    target, intercept = structure.spread_groups(
        {"vectors": vectors, "intercepts": shift}, np.ones((4, 3)), np.zeros(4), np.array([1])
    )
    np.testing.assert_allclose(target[0], 1.0 + vectors[1] / 5.0)
    np.testing.assert_allclose(intercept[0], shift[1])
    assert structure.offset_precision(efemb.Normal(2.0)) == 50.0


def test_small_groups_and_missing_labels_share_the_vectors_of_all() -> None:
    columns = {"shop": ["a"] * 40 + ["b"] * 39 + [None] * 20 + ["c"]}
    data = efemb.Dataset(np.random.default_rng(0).poisson(0.8, (100, 4)), rows=columns)
    frozen = Grouped("shop", min_rows=39).freeze(data)
    assert frozen.labels == ["a", "b"]
    assert frozen.describe(data) == {"groups": {"a": 40, "b": 39}, "rows_without_group": 21}
    assert frozen.codes(data)[[0, 40, 79, 99]].tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize(
    ("structure", "error", "match"),
    [
        (Grouped("region"), efemb.DataError, r"'region', which the data lack \(columns: 'shop'"),
        (Grouped("row"), efemb.DataError, "groups, the largest of 1 rows; lower min_rows"),
        (Grouped("shop", precision=0), efemb.ParameterError, "precision must be > 0"),
        (Grouped("shop", min_rows=0), efemb.ParameterError, "min_rows must be >= 1"),
        (Grouped("shop", hidden=1.5), efemb.InputTypeError, "hidden must be an integer >= 1"),
        (Grouped("shop", intercepts=2), efemb.InputTypeError, "intercepts must be True or False"),
        (Grouped("shop", contexts=1), efemb.InputTypeError, "contexts must be True or False"),
        (Grouped(7), efemb.InputTypeError, "column must be a name"),
    ],
)
def test_bad_options_and_columns_are_refused(
    structure: Grouped, error: type[Exception], match: str
) -> None:
    data = swapped()
    rows = {"shop": data.rows["shop"], "row": np.arange(data.n_rows)}
    with pytest.raises(error, match=match):
        efemb.PoissonEmbedding(2, structure=structure).fit(efemb.Dataset(data.values, rows=rows))


def test_more_groups_than_memory_names_the_amortized_way_out() -> None:
    n_rows, n_entities = 20_000, 2_000
    ids = np.arange(2 * n_rows) % n_entities
    counts = csr_array((np.ones(2 * n_rows), ids, 2 * np.arange(n_rows + 1)), (n_rows, n_entities))
    data = efemb.Dataset(counts, rows={"row": np.arange(n_rows)})
    many = Grouped("row", min_rows=1)
    with pytest.raises(efemb.MemoryEstimateError, match=r"Grouped\('row', amortized=True\)"):
        efemb.PoissonEmbedding(200, structure=many).fit(data)


def test_one_row_per_group_fits_if_it_is_asked_for() -> None:
    data = efemb.Dataset(np.eye(6) + 1.0, rows={"shop": list("abcdef")})
    model = efemb.PoissonEmbedding(2, structure=Grouped("shop", min_rows=1), max_iter=3)
    with pytest.warns(Warning, match="max_iter"):
        model.fit(data)
    assert model.report_["groups"] == dict.fromkeys("abcdef", 1)
    assert np.isfinite(model.score(data))


def test_memory_is_said_before_the_fit(capsys: pytest.CaptureFixture[str]) -> None:
    data = swapped(300)
    model = efemb.PoissonEmbedding(2, structure=Grouped("shop", min_rows=9), max_iter=1, verbose=1)
    with pytest.warns(Warning, match="max_iter"):
        model.fit(data)
    said = capsys.readouterr().err
    assert said.startswith("2 groups of rows x 10 entities x 2 components: about ")


def test_rows_of_unseen_and_missing_groups_have_the_shared_embeddings() -> None:
    data = swapped(600)
    model = efemb.PoissonEmbedding(2, structure=Grouped("shop", min_rows=9), max_iter=3)
    with pytest.warns(Warning, match="max_iter"):
        model.fit(data)
    new = np.array(["west", None] * 300, dtype=object)
    elsewhere = efemb.Dataset(data.values, rows={"shop": new})
    shared = shared_model(model.fitted())
    np.testing.assert_allclose(model.conditional(elsewhere), shared.conditional(elsewhere))
    assert not np.allclose(model.conditional(data), shared.conditional(data))
    with pytest.raises(efemb.ParameterError, match=r"'west' is not a group of 'shop'.*min_rows=9"):
        model.similar(0, group="west")
