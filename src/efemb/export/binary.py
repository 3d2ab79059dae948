"""Words and vectors of word2vec's binary files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from efemb.data.vocabulary import shorten
from efemb.errors import DataError
from efemb.types import Floats

_CHUNK = 1 << 24
_LONGEST_WORD = 1 << 16


class BinaryRecords:
    """A word, a space, `size` little-endian float32, perhaps a line end; again and again."""

    def __init__(
        self,
        file: Path,
        stream: IO[bytes],
        start: bytes,
        size: int,
        dtype: Any,
        errors: str,
        header: int,
    ) -> None:
        self.file, self.size, self.dtype, self.errors = file, size, dtype, errors
        self._stream = stream
        self._pending = start
        self._byte = header  # where `_pending` starts in the unpacked file

    def take(self, n: int, advance: Callable[[int], None]) -> tuple[list[str], Floats]:
        """The next `n` words and their vectors; fewer if the file ends."""
        words: list[str] = []
        try:
            vectors = np.empty((n, self.size), self.dtype)
        except (MemoryError, ValueError) as error:
            raise DataError(
                f"{self.file} promises {n:,} words of {self.size:,} components, too many for the "
                "memory; pass limit="
            ) from error
        while len(words) < n:
            more, values = self._complete(n - len(words))
            vectors[len(words) : len(words) + len(more)] = values
            words += more
            advance(len(more))
            if len(words) < n and not self._more():
                break
        if len(words) < n and self._pending.strip(b"\n"):
            raise self._truncated(words)
        return words, vectors[: len(words)]

    def check_end(self, n_words: int) -> None:
        """Refuse bytes beyond the promised number of words."""
        self._more()
        rest = self._pending.lstrip(b"\r\n")
        if rest:
            byte = self._byte + len(self._pending) - len(rest)
            raise DataError(
                f"{self.file}: the first line promises {n_words:,} words, but the file goes on at "
                f"byte {byte:,}; the numbers of words or components are wrong"
            )

    def _complete(self, n: int) -> tuple[list[str], Floats]:
        """Up to `n` records that are whole in the bytes at hand."""
        data, length, place = self._pending, 4 * self.size, 0
        words: list[str] = []
        rows: list[bytes] = []
        while len(words) < n:
            space = data.find(b" ", place, place + _LONGEST_WORD)
            if space < 0 or space + 1 + length > len(data):
                break
            words.append(self._word(data[place:space], place))
            place = space + 1 + length
            rows.append(data[space + 1 : place])
        self._pending = data[place:]
        self._byte += place
        values = np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(words), self.size)
        return words, values

    def _more(self) -> bool:
        """Read on; whether there was anything."""
        if len(self._pending) > _LONGEST_WORD and b" " not in self._pending[:_LONGEST_WORD]:
            raise DataError(
                f"{self.file}: no word ends within {_LONGEST_WORD:,} bytes from byte "
                f"{self._byte:,}; the file is malformed, or text (then pass binary=False)"
            )
        chunk = self._stream.read(max(_CHUNK, 8 * self.size))
        self._pending += chunk
        return bool(chunk)

    def _word(self, word: bytes, place: int) -> str:
        # word2vec ends each vector with a line end, gensim does not.
        trimmed = word.lstrip(b"\n")
        try:
            found = trimmed.decode("utf-8", self.errors)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.file}, byte {self._byte + place:,}: the word "
                f"{shorten(trimmed.decode('utf-8', 'replace'))} is not UTF-8 ({error.reason}); "
                'pass errors="replace" or errors="ignore" (or the file is malformed)'
            ) from None
        if not found:
            raise DataError(f"{self.file}, byte {self._byte + place:,}: there is no word")
        return found

    def _truncated(self, words: list[str]) -> DataError:
        after = f"after {shorten(words[-1])} (word {len(words):,})" if words else "in word 1"
        return DataError(
            f"{self.file} is truncated: it ends inside the record that starts at byte "
            f"{self._byte:,}, {after}"
        )
