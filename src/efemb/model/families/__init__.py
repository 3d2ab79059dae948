"""Conditional exponential families, one a file; a new file here is found by itself."""

from __future__ import annotations

import importlib
import pkgutil

from efemb.model.families.base import Density, Family, Interval
from efemb.model.families.bernoulli import Bernoulli
from efemb.model.families.categorical import Categorical
from efemb.model.families.gaussian import Gaussian
from efemb.model.families.mixed import Mixed
from efemb.model.families.negative_binomial import NegativeBinomial
from efemb.model.families.nominal import Nominal
from efemb.model.families.poisson import Poisson
from efemb.model.families.zero_inflated import ZeroInflated

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Bernoulli",
    "Categorical",
    "Density",
    "Family",
    "Gaussian",
    "Interval",
    "Mixed",
    "NegativeBinomial",
    "Nominal",
    "Poisson",
    "ZeroInflated",
]
