"""Checks of the contracts of ingredients and estimators, for those who write their own.

Each function raises an `AssertionError` that names the broken rule, and returns nothing:

>>> import efemb
>>> efemb.checks.check_family(efemb.Poisson())
>>> efemb.checks.check_prior(efemb.Normal(2.0))
"""

from __future__ import annotations

from efemb.checks.combine import check_combine
from efemb.checks.context import check_context
from efemb.checks.estimator import check_estimator
from efemb.checks.family import check_family
from efemb.checks.prior import check_prior
from efemb.checks.structure import check_structure
from efemb.checks.term import check_term

__all__ = [
    "check_combine",
    "check_context",
    "check_estimator",
    "check_family",
    "check_prior",
    "check_structure",
    "check_term",
]
