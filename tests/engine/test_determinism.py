"""The same seed gives the same bits, for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.engine.threads import cut
from engine import models

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def baskets(n_rows: int = 1300, n_entities: int = 12) -> Any:
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(1.0, 0.7, n_entities), (n_rows, n_entities)).astype(float)


def neurons(n_rows: int, n_entities: int) -> Any:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, n_entities)) + rng.normal(size=(n_rows, 1))


CASES: dict[str, tuple[Any, Any, str]] = {
    "rows, products": (efemb.PoissonEmbedding(3), baskets(), "rows"),
    "rows, closed form": (efemb.AdditivePoissonEmbedding(3), baskets(), "rows"),
    "rows, sampled by row": (
        efemb.PoissonEmbedding(3, zeros=efemb.Sampled(4, per="row")),
        baskets(),
        "rows",
    ),
    "rows, sampled": (efemb.PoissonEmbedding(3, zeros=efemb.Sampled(4)), baskets(), "rows"),
    "rows, softmax": (efemb.CategoricalEmbedding(3), baskets(), "rows"),
    "rows, many entities": (efemb.PoissonEmbedding(3), baskets(200, 700), "rows"),
    "rows, minibatches": (efemb.PoissonEmbedding(3, batch_size=650), baskets(), "rows"),
    "moments": (
        efemb.GaussianEmbedding(3, context=efemb.Neighbors(3)),
        neurons(30, 700),
        "moments",
    ),
    "generic": (
        efemb.GaussianEmbedding(3, context=efemb.Neighbors(3), solver="generic"),
        neurons(60, 20),
        "generic",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(CASES))
def test_parameters_have_the_same_bits_for_one_and_two_threads(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X, solver = CASES[case]
    # Several blocks of the small data.
    models.tune(monkeypatch, block_numbers=2000, block_rows=128, part_rows=50, tile_bytes=1)
    fits = []
    for n_jobs in (1, 2, 2, 1):
        model.set_params(n_jobs=n_jobs, random_state=3, max_iter=6)
        fits.append([array.copy() for array in model.fit(X).parameters_.arrays()])
    assert model.solver_ == solver
    for other in fits[1:]:
        for one, two in zip(fits[0], other, strict=True):
            assert one.tobytes() == two.tobytes()


def test_another_seed_gives_other_bits() -> None:
    model = efemb.PoissonEmbedding(3, max_iter=3)
    first, second = (model.set_params(random_state=s).fit(baskets(100)).embedding_ for s in (0, 1))
    assert (first != second).any()


@pytest.mark.parametrize("n", [1, 2, 255, 256, 300, 511, 512, 767, 768, 1024, 5000])
@pytest.mark.parametrize("size", [1, 3, 512])
def test_cuts_cover_every_row_once_in_pieces_of_a_fixed_size(n: int, size: int) -> None:
    pieces = cut(n, size)
    assert np.concatenate([np.arange(n)[piece] for piece in pieces]).tolist() == list(range(n))
    assert all(piece.stop - piece.start == size for piece in pieces[:-1])
    assert pieces[-1].stop - pieces[-1].start <= size + size // 2 or len(pieces) == 1


@pytest.mark.parametrize(
    ("n_jobs", "kind"), [(0, efemb.ParameterError), (1.5, efemb.InputTypeError)]
)
def test_a_number_of_jobs_that_cannot_be_is_refused(n_jobs: Any, kind: Any) -> None:
    with pytest.raises(kind, match="n_jobs"):
        efemb.PoissonEmbedding(2, n_jobs=n_jobs).fit(baskets(50))
