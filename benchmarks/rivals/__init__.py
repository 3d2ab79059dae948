"""Rivals: one adapter a file, one interface for all, and no package imported before it is used."""

from __future__ import annotations

from benchmarks.rivals.base import Rival
from benchmarks.rivals.gensim import Gensim
from benchmarks.rivals.hpfrec import Hpfrec
from benchmarks.rivals.implicit import Implicit
from benchmarks.rivals.itembed import Itembed
from benchmarks.rivals.numpy_baskets import NumpyBaskets
from benchmarks.rivals.ours import AdditivePoisson, ExactPoisson, SampledPoisson
from benchmarks.rivals.popularity import Popularity
from benchmarks.rivals.sklearn_nmf import KullbackLeiblerNMF

OURS: tuple[type[Rival], ...] = (ExactPoisson, SampledPoisson, AdditivePoisson)
RIVALS: tuple[type[Rival], ...] = (
    Popularity,
    NumpyBaskets,
    Hpfrec,
    KullbackLeiblerNMF,
    Implicit,
    Itembed,
    Gensim,
)

__all__ = ["OURS", "RIVALS", "Rival"]
