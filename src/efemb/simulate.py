"""`efemb.simulate`: the simulators under the name that users call."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from efemb.simulation import Simulation, simulate, simulate_baskets

__all__ = ["Simulation", "simulate", "simulate_baskets"]


class _CallableModule(ModuleType):
    """Importing this file binds the module to `efemb.simulate`, which must stay a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Simulation:
        return simulate(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
