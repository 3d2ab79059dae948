"""Operations on rows of numbers, written with vector instructions.

LLVM does not know that a row of a table and a buffer do not overlap, so it checks this at run time
or does not vectorize. These loops are explicit: sixteen numbers at a time, then four. An argument
pair `table, i` means the row table[i]; `n` must be a multiple of 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from efemb.kernels.jit import inlined

WIDE, NARROW = 16, 4
CACHE_LINE = 16  # float32 numbers
Body = Callable[..., Any]


def _scalar(kind: Any) -> ir.Type:
    return ir.FloatType() if kind == types.float32 else ir.DoubleType()


def _row_pointer(context: Any, builder: Any, kind: Any, value: Any, row_kind: Any, row: Any) -> Any:
    """Address of the first number of a row."""
    wide = ir.IntType(64)
    array = context.make_array(kind)(context, builder, value)
    index = context.cast(builder, row, row_kind, types.int64)
    offset = builder.mul(index, builder.extract_value(array.strides, 0))
    place = builder.add(builder.ptrtoint(array.data, wide), offset)
    return builder.inttoptr(place, _scalar(kind.dtype).as_pointer())


class _Rows:
    """Rows inside a loop: loads and stores of vectors at the current place."""

    def __init__(self, builder: Any, pointers: Sequence[Any], place: Any, lanes: int) -> None:
        self.builder, self.pointers, self.place, self.lanes = builder, pointers, place, lanes
        self.kind = ir.VectorType(pointers[0].type.pointee, lanes)

    def _at(self, i: int) -> Any:
        first = self.builder.gep(self.pointers[i], [self.place])
        return self.builder.bitcast(first, self.kind.as_pointer())

    def load(self, i: int) -> Any:
        return self.builder.load(self._at(i), align=4)

    def store(self, i: int, value: Any) -> None:
        self.builder.store(value, self._at(i), align=4)

    def all(self, scalar: Any) -> Any:
        """The same number in every lane."""
        single = ir.Constant(self.kind, ir.Undefined)
        none = ir.Constant(ir.IntType(32), 0)
        first = self.builder.insert_element(single, scalar, none)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, single, mask)

    def add(self, left: Any, right: Any) -> Any:
        return self.builder.fadd(left, right, flags=("fast",))

    def subtract(self, left: Any, right: Any) -> Any:
        return self.builder.fsub(left, right, flags=("fast",))

    def multiply(self, left: Any, right: Any) -> Any:
        return self.builder.fmul(left, right, flags=("fast",))

    def fused(self, left: Any, right: Any, more: Any) -> Any:
        """left * right + more."""
        return self.add(self.multiply(left, right), more)


def _sum_of_lanes(builder: Any, vector: Any) -> Any:
    number, letter = vector.type.element, "f32" if vector.type.element == ir.FloatType() else "f64"
    kind = ir.FunctionType(number, [number, vector.type])
    name = f"llvm.vector.reduce.fadd.v{vector.type.count}{letter}"
    add = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(add, [ir.Constant(number, -0.0), vector], fastmath=("fast",))


def _loop(builder: Any, pointers: Sequence[Any], n: Any, body: Body, adds: bool) -> Any:
    """Run `body(rows)` at all places; return the sum of its results."""
    number = pointers[0].type.pointee
    long = n.type
    total = cgutils.alloca_once_value(builder, ir.Constant(number, 0.0))
    done = ir.Constant(long, 0)
    for lanes in (WIDE, NARROW):
        kind = ir.VectorType(number, lanes)
        part = cgutils.alloca_once(builder, kind)
        builder.store(ir.Constant(kind, [0.0] * lanes), part)
        steps = builder.sdiv(builder.sub(n, done), ir.Constant(long, lanes))
        with cgutils.for_range(builder, steps, intp=long) as loop:
            place = builder.add(done, builder.mul(loop.index, ir.Constant(long, lanes)))
            result = body(_Rows(builder, pointers, place, lanes))
            if adds:
                builder.store(builder.fadd(builder.load(part), result, flags=("fast",)), part)
        if adds:
            more = _sum_of_lanes(builder, builder.load(part))
            builder.store(builder.fadd(builder.load(total), more, flags=("fast",)), total)
        done = builder.add(done, builder.mul(steps, ir.Constant(long, lanes)))
    return builder.load(total)


def _operation(body: Body, n_rows: int, n_scalars: int, adds: bool, kinds: Sequence[Any]) -> Any:
    """Type and code of an intrinsic with pairs of table and row, scalars and n as arguments."""
    number = kinds[0].dtype
    pairs, scalars = kinds[: 2 * n_rows], [number] * n_scalars

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = [
            _row_pointer(
                context, builder, signature.args[i], args[i], signature.args[i + 1], args[i + 1]
            )
            for i in range(0, 2 * n_rows, 2)
        ]
        given = args[2 * n_rows : 2 * n_rows + n_scalars]
        total = _loop(builder, pointers, args[-1], lambda rows: body(rows, *given), adds)
        return total if adds else context.get_dummy_value()

    return (number if adds else types.void)(*pairs, *scalars, types.intp), build


@intrinsic
def dot(tc: Any, a: Any, i: Any, b: Any, j: Any, n: Any) -> Any:
    """a[i] . b[j]."""
    return _operation(lambda v: v.multiply(v.load(0), v.load(1)), 2, 0, True, (a, i, b, j))


@intrinsic
def dot_of_two(tc: Any, a: Any, i: Any, other: Any, p: Any, b: Any, j: Any, n: Any) -> Any:
    """(a[i] + other[p]) . b[j]."""

    def body(v: _Rows) -> Any:
        return v.multiply(v.add(v.load(0), v.load(1)), v.load(2))

    return _operation(body, 3, 0, True, (a, i, other, p, b, j))


@intrinsic
def enter(tc: Any, total: Any, i: Any, ring: Any, slot: Any, table: Any, row: Any, n: Any) -> Any:
    """total += table[row] - ring; ring = table[row]."""

    def body(v: _Rows) -> None:
        x = v.load(2)
        v.store(0, v.add(v.load(0), v.subtract(x, v.load(1))))
        v.store(1, x)

    return _operation(body, 3, 0, False, (total, i, ring, slot, table, row))


@intrinsic
def enter_two(
    tc: Any, total: Any, i: Any, ring: Any, slot: Any, table: Any, row: Any, other: Any, p: Any,
    n: Any,
) -> Any:  # fmt: skip
    """total += table[row] + other[p] - ring; ring = table[row] + other[p]."""

    def body(v: _Rows) -> None:
        x = v.add(v.load(2), v.load(3))
        v.store(0, v.add(v.load(0), v.subtract(x, v.load(1))))
        v.store(1, x)

    return _operation(body, 4, 0, False, (total, i, ring, slot, table, row, other, p))


@intrinsic
def scaled_difference(
    tc: Any, a: Any, i: Any, b: Any, j: Any, out: Any, o: Any, factor: Any, n: Any
) -> Any:
    """out = (a - b) factor; returns the sum of its squares."""

    def body(v: _Rows, factor: Any) -> Any:
        z = v.multiply(v.subtract(v.load(0), v.load(1)), v.all(factor))
        v.store(2, z)
        return v.multiply(z, z)

    return _operation(body, 3, 1, True, (a, i, b, j, out, o))


@intrinsic
def update(
    tc: Any, table: Any, row: Any, context: Any, i: Any, slope: Any, j: Any,
    g: Any, keep: Any, move: Any, n: Any,
) -> Any:  # fmt: skip
    """slope += g table; table = keep table + move context."""

    def body(v: _Rows, g: Any, keep: Any, move: Any) -> None:
        r = v.load(0)
        v.store(2, v.fused(v.all(g), r, v.load(2)))
        v.store(0, v.fused(v.all(move), v.load(1), v.multiply(v.all(keep), r)))

    return _operation(body, 3, 3, False, (table, row, context, i, slope, j))


@intrinsic
def update_two(
    tc: Any, table: Any, row: Any, other: Any, p: Any, context: Any, i: Any, slope: Any, j: Any,
    g: Any, keep: Any, move: Any, further: Any, n: Any,
) -> Any:  # fmt: skip
    """slope += g (table + other); table = keep table + move context; other += further context."""

    def body(v: _Rows, g: Any, keep: Any, move: Any, further: Any) -> None:
        r, o, z = v.load(0), v.load(1), v.load(2)
        v.store(3, v.fused(v.all(g), v.add(r, o), v.load(3)))
        v.store(0, v.fused(v.all(move), z, v.multiply(v.all(keep), r)))
        v.store(1, v.fused(v.all(further), z, o))

    return _operation(body, 4, 4, False, (table, row, other, p, context, i, slope, j))


@intrinsic
def mix(tc: Any, table: Any, row: Any, other: Any, i: Any, keep: Any, move: Any, n: Any) -> Any:
    """table = keep table + move other."""

    def body(v: _Rows, keep: Any, move: Any) -> None:
        v.store(0, v.fused(v.all(move), v.load(1), v.multiply(v.all(keep), v.load(0))))

    return _operation(body, 2, 2, False, (table, row, other, i))


@intrinsic
def add_products(
    tc: Any, left: Any, i: Any, right: Any, j: Any, a: Any, p: Any, b: Any, q: Any, g: Any, n: Any
) -> Any:
    """left += g a;  right += g b."""

    def body(v: _Rows, g: Any) -> None:
        v.store(0, v.fused(v.all(g), v.load(2), v.load(0)))
        v.store(1, v.fused(v.all(g), v.load(3), v.load(1)))

    return _operation(body, 4, 1, False, (left, i, right, j, a, p, b, q))


@intrinsic
def replace_scaled(
    tc: Any, total: Any, i: Any, ring: Any, slot: Any, source: Any, j: Any, factor: Any, n: Any
) -> Any:
    """total += factor source - ring; ring = factor source; source = 0."""

    def body(v: _Rows, factor: Any) -> None:
        e = v.multiply(v.load(2), v.all(factor))
        v.store(0, v.add(v.load(0), v.subtract(e, v.load(1))))
        v.store(1, e)
        v.store(2, ir.Constant(v.kind, [0.0] * v.lanes))

    return _operation(body, 3, 1, False, (total, i, ring, slot, source, j))


@intrinsic
def _prefetch(tc: Any, table: Any, row: Any, column: Any) -> Any:
    """Prefetch the cache line of table[row, column]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = _row_pointer(context, builder, table, args[0], signature.args[1], args[1])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(first, [args[2]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        to_write, keep, is_data = word(1), word(3), word(1)
        builder.call(ask, [place, to_write, keep, is_data])
        return context.get_dummy_value()

    return types.void(table, row, types.intp), build


@inlined
def prefetch(table: Any, row: int) -> None:
    """Prefetch every cache line of a row, long before it is used."""
    prefetch_columns(table, row, 0)


@inlined
def prefetch_columns(table: Any, row: int, start: int) -> None:
    """Prefetch the columns of a row from `start` on."""
    for column in range(start, table.shape[1], CACHE_LINE):
        _prefetch(table, row, column)


@inlined
def prefetch_place(array: Any, place: int) -> None:
    """Prefetch the cache line of a place of a flat array."""
    _prefetch(array, place, 0)
