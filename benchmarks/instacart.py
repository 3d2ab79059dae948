"""Instacart: two threads against one on 0/1 orders of 14,127 products."""

from __future__ import annotations

from benchmarks.data import instacart
from benchmarks.harness import Report, Settings, fit_watched
from benchmarks.threads import two_threads


def run(settings: Settings) -> Report:
    """Two threads against one."""
    from efemb import PoissonEmbedding

    report = Report("instacart", settings)
    orders, k = instacart(settings), 10 if settings.quick else 50
    options = {"max_iter": 2, "early_stopping": False, "random_state": 0}
    two_threads(
        report,
        f"p-emb K={k}",
        lambda n_jobs: fit_watched(PoissonEmbedding(k, n_jobs=n_jobs, **options), orders.train),
    )
    return report
