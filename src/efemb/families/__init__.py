"""Conditional exponential families, one a file; a new file here is found by itself."""

from __future__ import annotations

import importlib
import pkgutil

from efemb.families.base import Family, Interval
from efemb.families.bernoulli import Bernoulli
from efemb.families.categorical import Categorical
from efemb.families.gaussian import Gaussian
from efemb.families.negative_binomial import NegativeBinomial
from efemb.families.poisson import Poisson

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Bernoulli",
    "Categorical",
    "Family",
    "Gaussian",
    "Interval",
    "NegativeBinomial",
    "Poisson",
]
