"""use_wide_vectors: compile a kernel for the widest vectors of the processor."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


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
