"""efemb through the interface of the rivals: presets with their defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.harness import fit_watched
from benchmarks.rivals.base import Rival

Array = NDArray[Any]


class _Ours(Rival):
    """Fits a preset and keeps the watch, which knows when each validation score came."""

    def made(self, k: int, seed: int) -> Any:
        """The estimator."""
        raise NotImplementedError

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        found = fit_watched(self.made(k, seed), train, validation=validation)
        self.model, self.watch = found.model, found.watch

    def log_means(self, X: Any, rows: Array, entities: Array) -> Iterator[tuple[slice, Array]]:
        yield from self.model.log_means(X, rows, entities)


class ExactPoisson(_Ours):
    """p-emb, every zero exact."""

    name = "efemb PoissonEmbedding"

    def made(self, k: int, seed: int) -> Any:
        from efemb import PoissonEmbedding

        return PoissonEmbedding(k, random_state=seed)


class SampledPoisson(_Ours):
    """p-emb with 1,024 sampled zeros a minibatch (64 where there are few items)."""

    name = "efemb PoissonEmbedding, sampled zeros"

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        self.n_zeros = min(1024, max(1, train.shape[1] // 8))
        super().fit(train, k, seed, validation)

    def made(self, k: int, seed: int) -> Any:
        from efemb import PoissonEmbedding, Sampled

        return PoissonEmbedding(k, zeros=Sampled(self.n_zeros), random_state=seed)


class AdditivePoisson(_Ours):
    """ap-emb: zeros in closed form."""

    name = "efemb AdditivePoissonEmbedding"

    def made(self, k: int, seed: int) -> Any:
        from efemb import AdditivePoissonEmbedding

        return AdditivePoissonEmbedding(k, random_state=seed)
