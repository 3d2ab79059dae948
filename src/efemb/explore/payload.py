"""Payload: named arrays and a header of JSON as the bytes that the page reads.

    4 bytes    EFX1
    4 bytes    length of the header, little-endian
    header     JSON in UTF-8, padded with spaces to a multiple of 8 bytes
    arrays     each padded to a multiple of 8 bytes; the header has type, shape and offset

Vectors are quantized: every row is divided by its own scale and rounded to whole numbers of 8, 16
or 24 bits, the bytes of which are stored plane by plane, because similar bytes compress better.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._typing import Floats
from efemb.errors import ParameterError

MAGIC = b"EFX1"
BITS = (8, 16, 24)
_ALIGNED = 8
_TYPES = {"f4": "<f4", "f8": "<f8", "i1": "i1", "u1": "u1", "i2": "<i2", "u2": "<u2", "i4": "<i4"}


@dataclass(frozen=True)
class Quantized:
    """Rows of whole numbers times a scale per row."""

    numbers: NDArray[np.int32]
    scale: NDArray[np.float32]
    bits: int

    @classmethod
    def of(cls, vectors: Floats, bits: int) -> Quantized:
        """Round to `bits` bits; rows of zeros stay zero."""
        if bits not in BITS:
            raise ParameterError(f"bits={bits!r}; vectors of the page have 8, 16 or 24 bits")
        exact = vectors.astype(np.float64)
        limit = 2 ** (bits - 1) - 1
        scale = (np.abs(exact).max(axis=1, initial=0.0) / limit).astype(np.float32)
        # Rounded up, so that the largest number stays within the limit.
        scale = np.nextafter(scale, np.float32(np.inf), dtype=np.float32)
        return cls(np.rint(exact / scale[:, None].astype(np.float64)).astype(np.int32), scale, bits)

    def restore(self) -> Floats:
        """The vectors as the page has them."""
        product = self.numbers.astype(np.float32) * self.scale[:, None]
        return np.asarray(product, dtype=np.float64)

    def planes(self) -> NDArray[np.uint8]:
        """Bytes of the numbers in two's complement, the lowest plane first."""
        raw = np.ascontiguousarray(self.numbers, dtype="<i4").view(np.uint8).reshape(-1, 4)
        return np.ascontiguousarray(raw[:, : self.bits // 8].T)


@dataclass
class Payload:
    """What a page knows of a model: a header, arrays and quantized vectors, by name."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    vectors: dict[str, Quantized] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The bytes, compressed by gzip; the same contents give the same bytes."""
        stored: dict[str, tuple[NDArray[Any], dict[str, Any]]] = {
            name: (array, {}) for name, array in self.arrays.items()
        }
        for name, vectors in self.vectors.items():
            extra = {"bits": vectors.bits, "rows": list(vectors.numbers.shape)}
            stored[f"{name}.scale"] = (vectors.scale, {})  # first: the page reads in this order
            stored[name] = (vectors.planes(), extra)
        offset, table, parts = 0, {}, []
        for name, (array, extra) in stored.items():
            kind, content = _array_bytes(array)
            table[name] = {"type": kind, "shape": list(array.shape), "offset": offset, **extra}
            parts.append(content)
            offset += len(content)
        text = json.dumps({**self.header, "arrays": table}, allow_nan=False).encode()
        text += b" " * (-(len(text) + len(MAGIC) + 4) % _ALIGNED)
        raw = b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *parts])
        return gzip.compress(raw, compresslevel=6, mtime=0)


def _array_bytes(array: NDArray[Any]) -> tuple[str, bytes]:
    kind = array.dtype.kind + str(array.dtype.itemsize)
    content = np.ascontiguousarray(array, dtype=_TYPES[kind]).tobytes()
    return kind, content + b"\0" * (-len(content) % _ALIGNED)


def small_integers(values: Any) -> NDArray[Any]:
    """Whole numbers >= -1 in the smallest type that the page reads."""
    array = np.asarray(values)
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    for name in ("i2", "u2", "i4"):
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return array.astype(name)
    raise ParameterError(f"a page has numbers below 2^31, not {high}")
