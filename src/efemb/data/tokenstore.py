"""Codes of a text: a growing array that moves to a temporary file when it gets large."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

# Beyond this many tokens (256 MB), codes are kept in a memory-mapped temporary file.
LARGE = 64_000_000
# Tokens that are processed at a time, which bounds the memory of intermediate arrays.
CHUNK = 1 << 18

Codes = NDArray[np.int32]


class TokenStore:
    """Grows by `append`, is shortened in place by `rewrite`, and becomes an array by `finish`.

    Use it in a `with` statement, which closes the temporary file in any case. The file has no name
    (or, on Windows, is deleted on closing), so it disappears with the last array that maps it,
    even if the process is killed.
    """

    def __init__(self) -> None:
        self._codes: Codes = np.empty(0, np.int32)
        self._file: IO[bytes] | None = None
        self.n_tokens = 0

    def __enter__(self) -> TokenStore:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, codes: Codes) -> None:
        """Add `codes` at the end."""
        end = self.n_tokens + len(codes)
        if end > LARGE and self._file is None:
            self._move_to_file()
        if self._file is not None:
            # Not through the mapping, where a full disk would raise a signal instead of an error.
            self._file.write(codes.data)
        else:
            if end > len(self._codes):
                # In small steps, because growing fills with zeros, which takes real memory.
                self._resize(end + max(end // 16, CHUNK))
            self._codes[self.n_tokens : end] = codes
        self.n_tokens = end

    def counts(self, size: int) -> NDArray[np.int64]:
        """How often each of the codes 0, ..., size - 1 occurs."""
        return count_codes(self._array()[: self.n_tokens], size)

    def rewrite(self, change: Callable[[Codes], Codes]) -> None:
        """Replace each chunk, from first to last, by `change(chunk)`, which is not longer."""
        codes, end = self._array(), 0
        for chunk in chunks_of(codes[: self.n_tokens]):
            changed = change(chunk)
            codes[end : end + len(changed)] = changed
            end += len(changed)
        self.n_tokens = end

    def finish(self) -> Codes:
        """All codes as one array, memory-mapped if there is a file; ends this store."""
        if self._file is None:
            self._resize(self.n_tokens)
            return self._codes
        self._file.flush()
        self._file.truncate(4 * self.n_tokens)
        return self._map_file("r") if self.n_tokens else self._codes

    def _array(self) -> Codes:
        return self._codes if self._file is None else self._map_file("r+")

    def _map_file(self, mode: Any) -> Codes:
        assert self._file is not None
        self._file.flush()
        mapped: Any = np.memmap(self._file, np.int32, mode, shape=(self.n_tokens,))
        # A plain array on top of the mapping: faster to slice, and supported by numba.
        codes: Codes = mapped.view(np.ndarray)
        return codes

    def _resize(self, size: int) -> None:
        # In place if possible, so that the old and the new array are not both in memory.
        self._codes.resize(size, refcheck=False)

    def _move_to_file(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="efemb-")  # noqa: SIM115 - see __exit__
        self._file.write(self._codes[: self.n_tokens].data)
        self._codes = np.empty(0, np.int32)


def chunks_of(codes: Codes, length: int = 0) -> Iterator[Codes]:
    """Stretches of at most `length` (or `CHUNK`) codes, from first to last."""
    length = length or CHUNK
    for start in range(0, len(codes), length):
        yield codes[start : start + length]


def count_codes(codes: Codes, size: int) -> NDArray[np.int64]:
    """How often each of the codes 0, ..., size - 1 occurs."""
    counts = np.zeros(size, np.int64)
    # With chunks shorter than the vocabulary, adding up would cost more than counting.
    for chunk in chunks_of(codes, max(CHUNK, size)):
        counts += np.bincount(chunk, minlength=size)
    return counts


class KeptStarts:
    """Starts of documents after tokens are dropped, chunk by chunk.

    Parameters
    ----------
    starts : array of shape (n_documents + 1,)
        Starts before any token is dropped.
    """

    def __init__(self, starts: NDArray[np.int64]) -> None:
        self._old = starts
        self._documents = 0
        self._seen = 0
        self._kept = 0
        self.starts = np.zeros_like(starts)

    def add(self, is_kept: NDArray[np.bool_]) -> None:
        """Record which tokens of the next chunk are kept."""
        end = self._seen + len(is_kept)
        last = int(np.searchsorted(self._old, end, side="right"))
        gone = np.flatnonzero(~is_kept)
        offsets = self._old[self._documents : last] - self._seen
        self.starts[self._documents : last] = self._kept + offsets - np.searchsorted(gone, offsets)
        self._documents, self._seen = last, end
        self._kept += len(is_kept) - len(gone)
