"""Array aliases: the name says what an array holds; precision is checked at the edges."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Ints: TypeAlias = npt.NDArray[np.integer[Any]]
Bools: TypeAlias = npt.NDArray[np.bool_]
