"""How kernels are compiled: the same numbers give the same bits, wherever the arrays lie.

Where arrays that a loop reads and writes might overlap, LLVM compiles it twice, in vectors and
number by number, and addresses decide at run time which of them runs. Both must round alike, so no
kernel may divide or take roots by estimates of reciprocals (`arcp`, `afn`: vectors would, single
numbers would not), and only loops that write nothing may add up in another order (`reassoc`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from numba import njit, types
from numba.extending import intrinsic

from efemb.kernels.disk_cache import keeping

Function = TypeVar("Function", bound=Callable[..., Any])


class _Compiler(Protocol):
    def __call__(self, function: Function, /) -> Function: ...


# Products are fused with sums, and nobody looks for NaN, infinity or the sign of a zero.
FUSED = {"contract", "nnan", "ninf", "nsz"}

_inline: Any = njit  # which only newer versions annotate
_options: Any = {"nogil": True, "error_model": "numpy"}

# Arithmetic as it is written.
kernel: _Compiler = keeping(**_options)
# Numbers are worked on one by one: a[i] += b * c[i].
elementwise: _Compiler = keeping(**_options, fastmath=FUSED)
# Loops that write nothing may add up in any order: total += a[i] * b[i]. Those that write must not
# add up as well.
summing: _Compiler = keeping(**_options, fastmath=FUSED | {"reassoc"})
# Part of the kernels that call it.
inlined: _Compiler = _inline(inline="always")


@intrinsic
def use_wide_vectors(typing_context: Any) -> Any:
    """Ask LLVM for vectors of 512 bits where there are any; by default it stops at 256.

    Pays where arithmetic, not memory, is the limit: exponentials gain a fifth. Called anywhere in
    a kernel it costs nothing at run time.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # llvmlite checks names of attributes against a list that lacks those of a target.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), build
