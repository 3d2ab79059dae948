"""Records of word2vec files, text and binary: read and written a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from efemb._typing import Floats
from efemb.data.vocabulary import shorten
from efemb.errors import DataError

_TEXT_CHUNK = 1 << 22
_BINARY_CHUNK = 1 << 24
_LONGEST_WORD = 1 << 16


class TextRecords:
    """Lines of a word and `size` numbers; with `spaces`, words may contain spaces."""

    def __init__(
        self,
        file: Path,
        stream: IO[bytes],
        start: bytes,
        size: int,
        dtype: Any,
        errors: str,
        header: int,
        *,
        spaces: bool = False,
    ) -> None:
        self.file, self.size, self.dtype, self.errors = file, size, dtype, errors
        self.spaces = spaces
        self._blocks = _blocks(stream, start)
        self._line = 2 if header else 1  # number of the next line
        self._left: list[bytes] = []  # lines read but not taken

    def take(self, n: int | None, advance: Callable[[int], None]) -> tuple[list[str], Floats]:
        """The next `n` words (None: all) and their vectors; fewer if the file ends."""
        words: list[str] = []
        blocks: list[Floats] = []
        while n is None or len(words) < n:
            lines = self._left or next(self._blocks, [])
            if not lines:
                break
            # Blank lines hold no word, so a block may have to be visited again.
            n_missing = len(lines) if n is None else n - len(words)
            block_words, values = self._parse(lines[:n_missing])
            self._left = lines[n_missing:]
            self._line += len(lines) - len(self._left)
            words += block_words
            blocks.append(values)
            advance(len(block_words))
        if not blocks:
            return [], np.empty((0, self.size), self.dtype)
        return words, blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def check_end(self, n_words: int) -> None:
        """Reject lines beyond the number of words in the header."""
        for lines in (self._left, *self._blocks):
            for offset, line in enumerate(lines):
                if line.strip():
                    raise DataError(
                        f"{self.file}: the first line promises {n_words:,} words, but line "
                        f"{self._line + offset:,} holds another one, {line[:40]!r}"
                    )
            self._line += len(lines)

    def _parse(self, lines: list[bytes]) -> tuple[list[str], Floats]:
        pairs = [line.split(None, 1) for line in lines]
        try:
            words = [word.decode() for word, _ in pairs]
            rest = [numbers.decode("ascii") for _, numbers in pairs]
            values = np.loadtxt(rest, self.dtype, comments=None, ndmin=2) if rest else None
        except (ValueError, OverflowError):  # of unpacking, decoding or numbers
            values = None
        if values is None or values.shape != (len(lines), self.size):
            return self._parse_lines(lines)
        return words, values

    def _parse_lines(self, lines: list[bytes]) -> tuple[list[str], Floats]:
        """Parse slowly, to report what is wrong and where."""
        words: list[str] = []
        values = np.empty((len(lines), self.size), self.dtype)
        for offset, line in enumerate(lines):
            fields = line.split()
            if fields:
                number = self._line + offset
                with np.errstate(over="ignore"):  # rejected later, as infinite
                    values[len(words)] = self._numbers(fields, number)
                words.append(self._word(fields[: -self.size], number))
        return words, values[: len(words)]

    def _numbers(self, fields: list[bytes], line: int) -> list[float]:
        where = f"{self.file}, line {line:,}"
        if len(fields) <= self.size or (len(fields) > self.size + 1 and not self.spaces):
            raise DataError(
                f"{where}: a word and {self.size:,} numbers are needed, but there are "
                f"{len(fields):,} fields (first: {_show(fields[0])}); the file is truncated, "
                "malformed, or binary (then pass binary=True to read_word2vec)"
            )
        numbers = numbers_of(fields[-self.size :], self.size)
        if numbers is None:
            bad = next(field for field in fields[-self.size :] if numbers_of([field], 1) is None)
            raise DataError(
                f"{where}: {_show(bad)} in the vector of {_show(fields[0])} is not a number"
            )
        return numbers

    def _word(self, fields: list[bytes], line: int) -> str:
        # Two joined lines look like a word with spaces, except for the numbers in it.
        if any(numbers_of([field], 1) is not None for field in fields[1:]):
            raise DataError(
                f"{self.file}, line {line:,}: more than {self.size:,} numbers follow the word "
                f"{_show(fields[0])}"
            )
        word = b" ".join(fields)
        try:
            text = word.decode("utf-8", self.errors)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.file}, line {line:,}: the word {_show(word)} is not UTF-8 "
                f'({error.reason}); pass errors="replace" or errors="ignore"'
            ) from None
        if not text:
            raise DataError(f"{self.file}, line {line:,}: no characters of {word!r} are valid")
        return text


def join_text(words: list[bytes], numbers: Floats) -> bytes:
    """Lines of a word and its numbers."""
    # 9 and 17 digits are the fewest that always restore the same float32 and float64.
    number_form = b"%.9g" if numbers.dtype == np.float32 else b"%.17g"
    line = b" ".join([b"%b", *[number_form] * numbers.shape[1]]) + b"\n"
    rows = numbers.tolist()
    return b"".join([line % (word, *row) for word, row in zip(words, rows, strict=True)])


def numbers_of(fields: list[bytes], size: int) -> list[float] | None:
    """The fields as `size` numbers, or None if they are not."""
    try:
        numbers = [float(field) for field in fields if b"_" not in field]
    except ValueError:
        return None
    return numbers if len(numbers) == size else None


def _blocks(stream: IO[bytes], start: bytes) -> Iterator[list[bytes]]:
    """Complete lines, a few megabytes at a time."""
    pending = start
    while chunk := stream.read(_TEXT_CHUNK):
        *lines, pending = (pending + chunk).split(b"\n")
        if lines:
            yield lines
    if pending:
        yield pending.split(b"\n")


def _show(field: bytes) -> str:
    return shorten(field.decode("utf-8", "replace"))


class BinaryRecords:
    """Repeated records: a word, a space, `size` little-endian float32, and maybe a line end."""

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
                "available memory; pass limit="
            ) from error
        while len(words) < n:
            block_words, values = self._complete_records(n - len(words))
            vectors[len(words) : len(words) + len(block_words)] = values
            words += block_words
            advance(len(block_words))
            if len(words) < n and not self._read_more():
                break
        if len(words) < n and self._pending.strip(b"\n"):
            raise self._truncation_error(words)
        return words, vectors[: len(words)]

    def check_end(self, n_words: int) -> None:
        """Reject bytes beyond the number of words in the header."""
        self._read_more()
        rest = self._pending.lstrip(b"\r\n")
        if rest:
            byte = self._byte + len(self._pending) - len(rest)
            raise DataError(
                f"{self.file}: the first line promises {n_words:,} words, but the file continues "
                f"at byte {byte:,}; the numbers of words or components are wrong"
            )

    def _complete_records(self, n: int) -> tuple[list[str], Floats]:
        """Up to `n` records that are complete in the pending bytes."""
        data, length, offset = self._pending, 4 * self.size, 0
        words: list[str] = []
        rows: list[bytes] = []
        while len(words) < n:
            space = data.find(b" ", offset, offset + _LONGEST_WORD)
            if space < 0 or space + 1 + length > len(data):
                break
            words.append(self._word(data[offset:space], offset))
            offset = space + 1 + length
            rows.append(data[space + 1 : offset])
        self._pending = data[offset:]
        self._byte += offset
        values = np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(words), self.size)
        return words, values

    def _read_more(self) -> bool:
        """Read the next chunk; False at the end of the file."""
        if len(self._pending) > _LONGEST_WORD and b" " not in self._pending[:_LONGEST_WORD]:
            raise DataError(
                f"{self.file}: no word ends within {_LONGEST_WORD:,} bytes from byte "
                f"{self._byte:,}; the file is malformed, or text (then pass binary=False)"
            )
        chunk = self._stream.read(max(_BINARY_CHUNK, 8 * self.size))
        self._pending += chunk
        return bool(chunk)

    def _word(self, word: bytes, offset: int) -> str:
        # word2vec ends each vector with a newline, gensim does not.
        trimmed = word.lstrip(b"\n")
        try:
            text = trimmed.decode("utf-8", self.errors)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.file}, byte {self._byte + offset:,}: the word "
                f"{shorten(trimmed.decode('utf-8', 'replace'))} is not UTF-8 ({error.reason}); "
                'pass errors="replace" or errors="ignore" (or the file is malformed)'
            ) from None
        if not text:
            raise DataError(f"{self.file}, byte {self._byte + offset:,}: the word is empty")
        return text

    def _truncation_error(self, words: list[str]) -> DataError:
        after = f"after {shorten(words[-1])} (word {len(words):,})" if words else "in word 1"
        return DataError(
            f"{self.file} is truncated: it ends inside the record that starts at byte "
            f"{self._byte:,}, {after}"
        )


def join_binary(words: list[bytes], numbers: Floats) -> bytes:
    """A word, a space, its float32 numbers and a line end, for each word."""
    rows, size = numbers.tobytes(), 4 * numbers.shape[1]
    vectors = (rows[i * size : (i + 1) * size] for i in range(len(words)))
    return b"".join([b"%b %b\n" % pair for pair in zip(words, vectors, strict=True)])
