"""Array aliases: the name says what an array holds; precision is checked at the edges."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[Any]
Ints: TypeAlias = npt.NDArray[Any]
Bools: TypeAlias = npt.NDArray[Any]
