"""The lines of a text file, each a document; whatever is wrong with the file is told."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from pathlib import Path

from efemb.data.readers.encoding import PACKED, checked_encoding, compressed, open_bytes, told
from efemb.data.readers.source import Advance, existing_file
from efemb.data.readers.wordstreams import BLOCK, whole_words
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.files import expanded

_AS_TEXT = "a str is a path: of a text itself pass [text], or text.splitlines()"


class TextFile:
    """The lines of a plain or packed file."""

    def __init__(self, source: str | os.PathLike[str], encoding: str, errors: str) -> None:
        self.path = _existing(source)
        self.name = str(self.path)
        self.size = 0 if compressed(self.path) else self.path.stat().st_size
        self._encoding = _text_encoding(encoding)
        self._errors = errors

    def batches(self, advance: Advance) -> Iterator[str]:
        """Yield the text in blocks of whole words, each line ended by a line feed."""
        with told(self.path, self._encoding):
            try:
                yield from whole_words(self._blocks(advance), self.name)
            except UnicodeDecodeError as error:
                raise self._undecodable(error) from None

    def _blocks(self, advance: Advance) -> Iterator[str]:
        """Yield the text, checked to be text, with a line end at its end."""
        decoder = codecs.getincrementaldecoder(self._encoding)(self._errors)
        # Knows a line end even if a block ends between \r and \n.
        lines = io.IncrementalNewlineDecoder(decoder, translate=True)
        n_lines, last, done = 0, "\n", False
        with open_bytes(self.path) as raw:
            block = raw.read(BLOCK)
            self._check_kind(block)
            while not done:
                done = not block
                text = lines.decode(block, final=done)
                if "\0" in text:
                    raise self._binary(n_lines + text[: text.index("\0")].count("\n"))
                n_lines += text.count("\n")
                last = text[-1:] or last
                yield text
                advance(len(block))
                block = raw.read(BLOCK)
        if last != "\n":
            yield "\n"

    def _check_kind(self, start: bytes) -> None:
        """Refuse what is no text from the first bytes on, whatever the encoding makes of it."""
        for magic, suffix in PACKED.items():
            if start.startswith(magic):
                raise DataError(
                    f"{self.path} is packed; to be unpacked its name must end in {suffix}"
                )
        is_wide = b"\0" in "a".encode(self._encoding)
        if b"\0" in start and not is_wide:
            raise self._binary(start[: start.index(b"\0")].count(b"\n"))

    def _binary(self, n_lines: int) -> DataError:
        return DataError(
            f"{self.path} is not text: line {n_lines + 1} has a NUL byte; is it a binary file? "
            'If it is text of another encoding, give that, for instance encoding="utf-16"'
        )

    def _undecodable(self, error: UnicodeDecodeError) -> DataError:
        """The error of the other readers, with the way out that only this one has."""
        # A codec that swallows a byte order mark does not count its bytes.
        counting = "utf-8" if self._encoding == "utf-8-sig" else self._encoding
        try:
            with told(self.path, counting):
                raise error
        except DataError as placed:
            counted = " (counted after unpacking)" if compressed(self.path) else ""
            return DataError(f'{placed}{counted}, or pass errors="replace" or errors="ignore"')


def _existing(source: str | os.PathLike[str]) -> Path:
    """`source` as the path of a file; a text that is no path is told from one."""
    if isinstance(source, str) and "\n" in source:
        raise DataError(f"there is no file {shorten(source)}; {_AS_TEXT}")
    try:
        return existing_file(source)
    except DataError as error:
        if isinstance(source, str) and not os.path.exists(expanded(source)):
            raise DataError(f"{error}; {_AS_TEXT}") from None
        raise


def _text_encoding(encoding: str) -> str:
    """The name of a codec from bytes to text."""
    if not isinstance(encoding, str):
        raise InputTypeError(f"encoding={encoding!r} must be a name such as 'utf-8'")
    name = checked_encoding(encoding)
    try:
        "a".encode(name)
        codecs.getincrementaldecoder(name)
    except (LookupError, UnicodeError) as error:
        raise ParameterError(f"encoding={encoding!r} cannot be used: {error}") from error
    return name
