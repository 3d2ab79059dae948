"""Baselines: what embeddings are compared with."""

from __future__ import annotations

from efemb.baselines.ease import EASE
from efemb.baselines.ef_pca import ExponentialFamilyPCA
from efemb.baselines.factor_analysis import FactorAnalysis
from efemb.baselines.hpf import HPF
from efemb.baselines.item2vec import ItemSkipGram
from efemb.baselines.item_knn import ItemKNN
from efemb.baselines.neighbor_ridge import NeighborRidge
from efemb.baselines.personal import PersonalPopularity
from efemb.baselines.popularity import Popularity
from efemb.baselines.rp3beta import RP3beta
from efemb.baselines.rules import Rules
from efemb.baselines.sppmi import ShiftedPPMI
from efemb.baselines.weighted_mf import WeightedMF

__all__ = [
    "EASE",
    "HPF",
    "ExponentialFamilyPCA",
    "FactorAnalysis",
    "ItemKNN",
    "ItemSkipGram",
    "NeighborRidge",
    "PersonalPopularity",
    "Popularity",
    "RP3beta",
    "Rules",
    "ShiftedPPMI",
    "WeightedMF",
]
