"""Vector instructions, for kernels whose speed needs sums that stay in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features

WIDE = "+avx512f" in get_host_cpu_features()
BITS = 512 if WIDE else 256  # of a vector
_int, _short = ir.IntType(64), ir.IntType(32)


class Matrix:
    """An array of two axes: where its numbers lie."""

    def __init__(self, context: Any, builder: Any, kind: types.Array, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.builder = builder
        self.shape = cgutils.unpack_tuple(builder, array.shape)
        self._bytes = cgutils.unpack_tuple(builder, array.strides)
        self._data = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        self._number = context.get_data_type(kind.dtype)

    def at(self, *places: Any, kind: Any = None) -> Any:
        """Pointer to what lies at (i, j), each an integer or the sum of a tuple of them."""
        b, pointer = self.builder, self._data
        for place, step in zip(places, self._bytes, strict=True):
            for part in place if isinstance(place, tuple) else (place,):
                count = _int(part) if isinstance(part, int) else part
                pointer = b.gep(pointer, [b.mul(count, step)])
        return b.bitcast(pointer, (kind or self._number).as_pointer())


class Vectors:
    """Instructions on vectors of one type of numbers."""

    def __init__(self, builder: Any, number: types.Float) -> None:
        self.builder, self._bytes = builder, number.bitwidth // 8
        self.lanes = BITS // number.bitwidth
        self._number = ir.FloatType() if self._bytes == 4 else ir.DoubleType()
        self._type = ir.VectorType(self._number, self.lanes)
        self.zero = ir.Constant(self._type, [0.0] * self.lanes)
        signature = ir.FunctionType(self._type, [self._type] * 3)
        name = f"llvm.fmuladd.v{self.lanes}f{number.bitwidth}"
        self._multiply_add = cgutils.get_or_insert_function(builder.module, signature, name)

    def variable(self) -> Any:
        """A vector that changes; LLVM keeps it in a register."""
        return cgutils.alloca_once(self.builder, self._type)

    def load(self, matrix: Matrix, i: Any, j: Any) -> Any:
        """Numbers that lie side by side, from (i, j) on."""
        vector = self.builder.load(matrix.at(i, j, kind=self._type))
        vector.align = self._bytes
        return vector

    def prefetch(self, matrix: Matrix, i: Any, j: Any) -> None:
        """Ask for the cache line of (i, j), to be written."""
        place = matrix.at(i, j, kind=ir.IntType(8))
        kind = ir.FunctionType(ir.VoidType(), [place.type, _short, _short, _short])
        ask = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0i8")
        self.builder.call(ask, [place, _short(1), _short(3), _short(1)])

    def store(self, vector: Any, matrix: Matrix, i: Any, j: Any, size: int = 0) -> None:
        """Write them."""
        kind = ir.VectorType(self._number, size or self.lanes)
        self.builder.store(vector, matrix.at(i, j, kind=kind)).align = self._bytes

    def repeat(self, matrix: Matrix, i: Any, j: Any) -> Any:
        """A vector of the number at (i, j)."""
        number = self.builder.load(matrix.at(i, j))
        first = self.builder.insert_element(self.zero, number, _short(0))
        return self.pick(first, first, [0] * self.lanes)

    def pick(self, a: Any, b: Any, lanes: list[int]) -> Any:
        """Some lanes of two vectors, those of the second counted after the first."""
        mask = ir.Constant(ir.VectorType(_short, len(lanes)), lanes)
        return self.builder.shuffle_vector(a, b, mask)

    def add_product(self, total: Any, a: Any, b: Any) -> None:
        """total += a * b, in one instruction where there is one."""
        raised = self.builder.call(self._multiply_add, [a, b, self.builder.load(total)])
        self.builder.store(raised, total)

    def sums(self, vectors: list[Any]) -> Any:
        """The sum of each of `lanes` vectors, in one vector.

        Vectors are added in pairs: each step leaves half as many, with the lanes of two in groups
        of half the length. A vector is paired with the one half the list away, which leaves the
        sums in order.
        """
        group = self.lanes
        while group > 1:
            half = group // 2
            lower = [
                start + lane
                for first in range(0, self.lanes, group)
                for start in (first, self.lanes + first)
                for lane in range(half)
            ]
            upper = [lane + half for lane in lower]
            pairs = list(zip(vectors[:half], vectors[half:], strict=True))
            vectors = [
                self.builder.fadd(self.pick(a, b, lower), self.pick(a, b, upper)) for a, b in pairs
            ]
            group = half
        return vectors[0]
