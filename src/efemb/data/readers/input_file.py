"""Input files: existence and permissions, decompression, decoding."""

from __future__ import annotations

import codecs
import difflib
import io
import lzma
import os
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, is_zipfile

from efemb._files import expand_home
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError, ParameterError

# Exceptions from reading a damaged or inaccessible file.
UNREADABLE = (EOFError, zlib.error, lzma.LZMAError, BadZipFile, OSError)
_CHUNK = 1 << 20
PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"BZh": ".bz2"}
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
_SHEET = "save the sheet as CSV, or pass the result of pandas.read_excel"
_JSON = "pass the result of pandas.read_json, or write it as CSV"
_FRAME = "pass the data frame itself, or write it as Parquet or CSV"
_ARRAY = "pass the array itself, or save it with numpy.save"
# By file extension: the kind of file, and what to do instead.
_FOREIGN = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"), ("a spreadsheet", _SHEET)),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), ("JSON", _JSON)),
    **dict.fromkeys((".feather", ".arrow", ".orc", ".dta", ".sav"), ("a table", _FRAME)),
    **dict.fromkeys((".pkl", ".pickle"), ("a pickle, which could execute any code", _FRAME)),
    **dict.fromkeys((".h5", ".hdf5", ".tif", ".tiff"), ("not a plain array", _ARRAY)),
    ".h5ad": ("an AnnData file", "in Python, fit or read_matrix take anndata.read_h5ad(path)"),
    ".nwb": (
        "an NWB file",
        "pass the traces and positions that pynwb reads to efemb.read_traces, or save them with "
        "numpy.save",
    ),
    ".mat": (
        "a MATLAB file",
        "pass scipy.io.loadmat(path)['name'] (or h5py for version 7.3), or save it with numpy.save",
    ),
    **dict.fromkeys((".tar", ".7z", ".rar"), ("an archive", "extract it first")),
}
_NOT_UNPACKED = {".parquet", ".pq", ".npy", ".npz"}
_PACKED = {".gz", ".bz2", ".xz", ".zip"}
# Codecs of literals and host names, which turn text into other text.
_ESCAPES = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"}
# Longer lines are not read, because a small compressed file can hold gigabytes in one cell.
LONGEST_LINE = 1 << 27
# By the first bytes, for files with a misleading name.
_BYTES = {
    b"PK\x03\x04": "a spreadsheet or a zip archive",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an old Excel",
    b"PAR1": "a Parquet file, whose name must end in .parquet",
}


def pattern_of(folder: Path) -> str:
    """The pattern of the files of a folder that have its most frequent ending."""
    try:
        files = [path for path in folder.iterdir() if path.name[0] != "." and path.is_file()]
    except OSError:  # without permission
        files = []
    n_endings = {path: 2 if path.suffix in _COMPRESSED else 1 for path in sorted(files)}
    endings = Counter("".join(path.suffixes[-n:]) for path, n in n_endings.items() if path.suffix)
    return f"{folder}/*{endings.most_common(1)[0][0] if endings else '.csv'}"


def existing_file(source: str | os.PathLike[str]) -> Path:
    """`source` as the path of an existing file that is not empty."""
    path = expand_home(source)
    try:
        there = path.exists()
    except OSError as error:  # the name is too long; perhaps it is a text
        raise DataError(f"there is no file {shorten(source)} ({error.strerror})") from error
    if path.is_dir():
        raise DataError(
            f"{path} is a directory; pass a single file (read_baskets and read_text also read a "
            f"pattern, such as '{pattern_of(path)}', read_baskets a folder of Parquet files, "
            "read_suite2p a folder of suite2p)"
        )
    if not there:
        if not path.parent.is_dir():
            raise DataError(f"there is no file {path}; its folder does not exist")
        names = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
        near = difflib.get_close_matches(path.name, names, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise DataError(f"there is no file {path}{hint}")
    if not path.is_file():
        raise DataError(
            f"{path} is a pipe or a device, which cannot be read twice: save it to a file first"
        )
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty (0 bytes)")
    return path


def check_encoding(encoding: str) -> str:
    """The codec's canonical name; for UTF-8, the variant that skips a byte order mark."""
    if not isinstance(encoding, str):
        raise InputTypeError(f"encoding={encoding!r} must be a name such as 'utf-8'")
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError) as error:  # a name may even contain a NUL
        raise ParameterError(f"encoding={encoding!r} is unknown; try 'utf-8'") from error
    if not _reads_lines(name):
        raise ParameterError(f"encoding={encoding!r} cannot be used for files; try 'utf-8'")
    return "utf-8-sig" if name == "utf-8" else name


def _reads_lines(encoding: str) -> bool:
    """Whether a codec is for text files, unlike those of host names, escapes and bytes."""
    if encoding.replace("-", "_") in _ESCAPES:
        return False
    lines = "\\a,1\n\\n,2\n"
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
        pieces = [decoder.decode(bytes([byte])) for byte in lines.encode(encoding)]
        decoder.getstate()
        return "".join(pieces) + decoder.decode(b"", final=True) == lines
    except (LookupError, UnicodeError, TypeError, AttributeError, ValueError, AssertionError):
        return False


def is_compressed(path: Path) -> bool:
    """Whether `path` is decompressed while it is read."""
    return path.suffix.lower() in _PACKED


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of `path`, decompressed if it ends in .gz, .bz2, .xz or .zip (of one file)."""
    if path.suffix.lower() == ".zip":
        return _open_member(path)
    module = _COMPRESSED.get(path.suffix.lower())
    if module is None:
        return path.open("rb")
    from importlib import import_module

    stream: IO[bytes] = import_module(module).open(path, "rb")
    return stream


def _open_member(path: Path) -> IO[bytes]:
    name = _only_member(path)
    with _explain_archive(path):
        # The member keeps the archive open as long as it is read.
        return ZipFile(path).open(name)


@contextmanager
def _explain_archive(path: Path) -> Iterator[None]:
    """Convert what zipfile raises for a damaged or unusual archive into a `DataError`."""
    try:
        yield
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or a rare compression
        raise DataError(f"{path} cannot be extracted: {error}; extract it first") from error
    except (*UNREADABLE, ValueError, OverflowError, struct.error) as error:
        raise DataError(f"{path} cannot be read: {str(error) or type(error).__name__}") from error


def _only_member(path: Path) -> str:
    """The name of the one file in a .zip archive."""
    with _explain_archive(path), ZipFile(path) as archive:
        # Archives made on a Mac contain a second file for every file.
        names = [
            name
            for name in archive.namelist()
            if not name.endswith("/") and not name.startswith("__MACOSX")
        ]
    if len(names) != 1:
        shown = ", ".join(names[:5])
        raise DataError(
            f"{path} holds {len(names):,} files, not one: extract it, and pass a file or a list "
            f"of files ({shown}{', ...' if len(names) > 5 else ''})"
        )
    return names[0]


def text_lines(raw: IO[bytes], encoding: str, path: Path) -> Iterator[str]:
    """The lines of a text, each with its end; a line that does not end is an error."""
    text = io.TextIOWrapper(raw, encoding=encoding, newline="")
    for number, line in enumerate(iter(lambda: text.readline(LONGEST_LINE), ""), start=1):
        if len(line) >= LONGEST_LINE:
            raise DataError(
                f"{path}: line {number} has more than {LONGEST_LINE:,} characters; is it a table "
                "with one record per line?"
            )
        yield line
    text.detach()


@contextmanager
def explain_errors(path: Path, encoding: str) -> Iterator[None]:
    """Convert errors of decoding and decompression into a `DataError`."""
    try:
        yield
    except UnicodeDecodeError:
        try:
            problem = _encoding_error(path, encoding)
        except UNREADABLE as error:  # it is damaged as well
            problem = DataError(f"{path} cannot be read: {str(error) or type(error).__name__}")
        raise problem from None
    except UnicodeError as error:  # for instance, a missing byte order mark
        raise DataError(f"{path} is not {encoding}: {error}") from error
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read: {str(error) or type(error).__name__}") from error


def _encoding_error(path: Path, encoding: str) -> DataError:
    """Locate the first undecodable byte by counting lines and bytes."""
    decoder: Any = codecs.getincrementaldecoder(encoding)()
    line, n_bytes, was_return = 1, 0, False
    with open_bytes(path) as stream:
        while True:
            chunk = stream.read(_CHUNK)
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                # The part of the chunk before the bad bytes still counts lines.
                good = error.object[: error.start].decode(encoding, errors="ignore")
                line += line_ends(good) - (was_return and good.startswith("\n"))
                return _describe_byte(path, encoding, line, n_bytes - pending + error.start, error)
            line += line_ends(text) - (was_return and text.startswith("\n"))
            was_return = text.endswith("\r") if text else was_return
            n_bytes += len(chunk)
            if not chunk:  # pragma: no cover - only if the file changed meanwhile
                return DataError(f"{path} is not {encoding}")


def line_ends(text: str) -> int:
    r"""Number of line ends: \n, \r or \r\n."""
    if "\r" not in text:
        return text.count("\n")
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _describe_byte(
    path: Path, encoding: str, line: int, byte: int, error: UnicodeDecodeError
) -> DataError:
    with open_bytes(path) as stream:
        start = stream.read(8)
    for magic, suffix in PACKED.items():
        if start.startswith(magic):
            return DataError(
                f"{path} is compressed; its name must end in {suffix} to be decompressed"
            )
    other = recognize_bytes(start)
    if other is not None:
        return DataError(f"{path} is not text: it begins like {other}")
    likely = "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "cp1252"
    bad = error.object[error.start : error.start + 1].hex()
    expected = "utf-8" if encoding == "utf-8-sig" else encoding
    return DataError(
        f"{path} is not {expected}: line {line} has the byte 0x{bad} at byte {byte} of the file; "
        f'pass the right encoding, for instance encoding="{likely}" (--encoding {likely})'
    )


def inner_suffix(path: Path) -> str:
    """The extension in lower case, without that of a compression.

    >>> inner_suffix(Path("Trips.CSV.gz"))
    '.csv'
    """
    if path.suffix.lower() == ".zip" and path.is_file() and is_zipfile(path):
        path = Path(_only_member(path))
    endings = [suffix.lower() for suffix in path.suffixes]
    while endings and endings[-1] in _PACKED:
        endings.pop()
    return endings[-1] if endings else ""


def refuse_foreign(path: Path) -> None:
    """Reject a file that only other programs can read, and say what to do."""
    foreign = _FOREIGN.get(inner_suffix(path))
    if foreign is None and is_compressed(path) and inner_suffix(path) in _NOT_UNPACKED:
        foreign = ("compressed", "extract it first")
    if foreign is not None:
        raise DataError(f"{path} is {foreign[0]}: {foreign[1]}")


def recognize_bytes(start: bytes) -> str | None:
    """The kind of a file with these first bytes, if it is not text."""
    return next((kind for magic, kind in _BYTES.items() if start.startswith(magic)), None)
