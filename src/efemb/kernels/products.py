"""Matrix products of tiles that stay in the cache.

BLAS copies its operands and is made for large matrices: with one side of K = 20 it reaches half of
its speed. Here sums stay in registers, and operands are read in place. Kernels compute `width`
columns, a multiple of ROW_BYTES. The padding of B must be zero if it is summed over
(`inner_products`), else it may hold any finite numbers. The last axis of B and C, and of A in
`inner_products`, must be contiguous. Kernels are fastest if rows begin at multiples of ROW_BYTES,
but not of 4,096, which share a set of the cache. `Matrix` and `Vectors` generate the instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.core.errors import TypingError
from numba.extending import intrinsic

from efemb.kernels.jit import kernel, use_wide_vectors

WIDE = "+avx512f" in get_host_cpu_features()
BITS = 512 if WIDE else 256  # per vector
_long, _short = ir.IntType(64), ir.IntType(32)
Array = Any
ROW_BYTES = 128
SIDE = 2  # vectors per row of a panel
HIGH, LOW = (12, 4) if WIDE else (6, 2)  # rows of a panel; high panels use all registers
BLOCK = 4  # rows of A in a block of inner products, times rows of B: the lanes of a vector
CHUNK = 128  # rows of B that stay in the cache while all of A is read
_int, _bool = types.int64, types.boolean


class Matrix:
    """The addresses of the numbers of an array with two axes."""

    def __init__(self, context: Any, builder: Any, kind: types.Array, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.builder = builder
        self.shape = cgutils.unpack_tuple(builder, array.shape)
        self._bytes = cgutils.unpack_tuple(builder, array.strides)
        self._data = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        self._number = context.get_data_type(kind.dtype)

    def at(self, *places: Any, kind: Any = None) -> Any:
        """Pointer to element (i, j); each index is an integer, or a tuple of summands."""
        b, pointer = self.builder, self._data
        for place, step in zip(places, self._bytes, strict=True):
            for part in place if isinstance(place, tuple) else (place,):
                count = _long(part) if isinstance(part, int) else part
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
        """A vector variable, which LLVM keeps in a register."""
        return cgutils.alloca_once(self.builder, self._type)

    def load(self, matrix: Matrix, i: Any, j: Any) -> Any:
        """Load consecutive numbers, from (i, j) on."""
        vector = self.builder.load(matrix.at(i, j, kind=self._type))
        vector.align = self._bytes
        return vector

    def prefetch(self, matrix: Matrix, i: Any, j: Any) -> None:
        """Prefetch the cache line of (i, j) for writing."""
        place = matrix.at(i, j, kind=ir.IntType(8))
        kind = ir.FunctionType(ir.VoidType(), [place.type, _short, _short, _short])
        ask = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0i8")
        self.builder.call(ask, [place, _short(1), _short(3), _short(1)])

    def store(self, vector: Any, matrix: Matrix, i: Any, j: Any, size: int = 0) -> None:
        """Store consecutive numbers, from (i, j) on."""
        kind = ir.VectorType(self._number, size or self.lanes)
        self.builder.store(vector, matrix.at(i, j, kind=kind)).align = self._bytes

    def repeat(self, matrix: Matrix, i: Any, j: Any) -> Any:
        """A vector of the number at (i, j)."""
        number = self.builder.load(matrix.at(i, j))
        first = self.builder.insert_element(self.zero, number, _short(0))
        return self.pick(first, first, [0] * self.lanes)

    def pick(self, a: Any, b: Any, lanes: list[int]) -> Any:
        """Select lanes of two vectors; the lanes of b are numbered after those of a."""
        mask = ir.Constant(ir.VectorType(_short, len(lanes)), lanes)
        return self.builder.shuffle_vector(a, b, mask)

    def add_product(self, total: Any, a: Any, b: Any) -> None:
        """total += a * b, in a single instruction if the processor has one."""
        raised = self.builder.call(self._multiply_add, [a, b, self.builder.load(total)])
        self.builder.store(raised, total)

    def sums(self, vectors: list[Any]) -> Any:
        """The sum of each of `lanes` vectors, in one vector.

        Each step adds pairs of vectors: half as many remain, each with the lanes of two in groups
        of half the length. Vectors are paired with those half the list away, so that the sums are
        in order.
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


def _same_numbers(*matrices: Any) -> None:
    if len({matrix.dtype for matrix in matrices}) > 1:
        raise TypingError(f"matrices of different types of numbers: {matrices}")


def _matrices(context: Any, builder: Any, kinds: Any, values: Any) -> list[Matrix]:
    return [Matrix(context, builder, *one) for one in zip(kinds[:3], values[:3], strict=True)]


def _panel(height: int) -> Callable[..., None]:
    """C[i : i + height, j : j + SIDE vectors] (+)= A B."""

    @intrinsic
    def panel(typing: Any, A: Any, B: Any, C: Any, i: Any, j: Any, fresh: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            A, B, C = _matrices(context, builder, signature.args, args)
            i, j, fresh = args[3:]
            v = Vectors(builder, signature.args[2].dtype)
            cells = [(m, n) for m in range(height) for n in range(SIDE)]
            total = {cell: v.variable() for cell in cells}
            for variable in total.values():
                builder.store(v.zero, variable)
            with builder.if_then(builder.not_(fresh)):
                for m, n in cells:  # needed only after the loop
                    v.prefetch(C, (i, m), (j, n * v.lanes))
            with cgutils.for_range(builder, A.shape[1]) as loop:
                row = [v.load(B, loop.index, (j, n * v.lanes)) for n in range(SIDE)]
                for m in range(height):
                    factor = v.repeat(A, (i, m), loop.index)
                    for n in range(SIDE):
                        v.add_product(total[m, n], factor, row[n])
            with builder.if_then(builder.not_(fresh)):
                for m, n in cells:
                    before = v.load(C, (i, m), (j, n * v.lanes))
                    builder.store(builder.fadd(before, builder.load(total[m, n])), total[m, n])
            for m, n in cells:
                v.store(builder.load(total[m, n]), C, (i, m), (j, n * v.lanes))
            return context.get_dummy_value()

        _same_numbers(A, B, C)
        return types.none(A, B, C, _int, _int, _bool), build

    return panel


@intrinsic
def _block(typing: Any, A: Any, B: Any, C: Any, i: Any, j: Any, width: Any) -> Any:
    """C[i : i + BLOCK, j : j + lanes / BLOCK] = A B'."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        A, B, C = _matrices(context, builder, signature.args, args)
        i, j, width = args[3:]
        v = Vectors(builder, signature.args[2].dtype)
        wide = v.lanes // BLOCK
        total = {(m, n): v.variable() for m in range(BLOCK) for n in range(wide)}
        for variable in total.values():
            builder.store(v.zero, variable)
        steps = (width.type(0), width, width.type(v.lanes))
        with cgutils.for_range_slice(builder, *steps) as (place, _):
            left = [v.load(A, (i, m), place) for m in range(BLOCK)]
            for n in range(wide):
                right = v.load(B, (j, n), place)
                for m in range(BLOCK):
                    v.add_product(total[m, n], left[m], right)
        sums = v.sums([builder.load(variable) for variable in total.values()])
        for m in range(BLOCK):
            v.store(v.pick(sums, sums, [m * wide + n for n in range(wide)]), C, (i, m), j, wide)
        return context.get_dummy_value()

    _same_numbers(A, B, C)
    return types.none(A, B, C, _int, _int, _int), build


_high_panel, _low_panel, _flat_panel = _panel(HIGH), _panel(LOW), _panel(1)


@kernel
def multiply(A: Array, B: Array, C: Array, width: int, fresh: bool) -> None:
    """C = A B if `fresh`, else C += A B."""
    use_wide_vectors()
    n = A.shape[0]
    for j in range(0, width, SIDE * BITS // (8 * B.itemsize)):
        i = 0
        while n - i >= HIGH:
            _high_panel(A, B, C, i, j, fresh)
            i += HIGH
        while n - i >= LOW:
            _low_panel(A, B, C, i, j, fresh)
            i += LOW
        while n - i > 0:
            _flat_panel(A, B, C, i, j, fresh)
            i += 1


@kernel
def inner_products(A: Array, B: Array, C: Array, width: int) -> None:
    """C = A B', for arrays whose numbers of rows are multiples of BLOCK."""
    use_wide_vectors()
    step = BITS // (8 * B.itemsize * BLOCK)
    for first in range(0, B.shape[0], CHUNK):
        for i in range(0, A.shape[0], BLOCK):
            for j in range(first, min(first + CHUNK, B.shape[0]), step):
                _block(A, B, C, i, j, width)
