"""Names of the package; `__init__.py` loads each of them when it is first used."""

from .base import Density, Family, Interval
from .bernoulli import Bernoulli
from .categorical import Categorical
from .gaussian import Gaussian
from .mixed import Mixed
from .negative_binomial import NegativeBinomial
from .nominal import Nominal
from .poisson import Poisson
from .zero_inflated import ZeroInflated

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
