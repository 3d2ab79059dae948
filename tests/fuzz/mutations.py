"""Damaged bytes: a valid content with a few edits, drawn by hypothesis so that failures shrink."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

# What parsers stumble over: numbers at the edge, separators, quotes, magic bytes, escapes.
TOKENS = (
    *(b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"nan", b"-inf", b"-1", b"1e999"),
    *(b"9007199254740993", b"99999999999999999999999", b"0", b"1.5", b'"', b"'", b"\n", b"\r\n"),
    *(b",", b"\t", b";", b"|", b" ", b"\x1b[31m", "\u202e".encode(), "ß名".encode(), b"=1+1"),
    *(b"{", b"[", b"}", b"]", b"null", b"true", b"\x1f\x8b\x08", b"PK\x03\x04", b"PAR1"),
    *(b"\x93NUMPY", b"\x80\x04", b"-", b"--", b"--json", b"a" * 300),
)
MOST_EDITS = 6


@st.composite
def damage(draw: Any, content: bytes) -> bytes:
    """`content` after up to six edits."""
    for _ in range(draw(st.integers(0, MOST_EDITS))):
        kind = draw(st.integers(0, 6))
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.integers(0, 24)))
        if kind == 0:  # another byte
            content = content[:start] + bytes([draw(st.integers(0, 255))]) + content[start + 1 :]
        elif kind == 1:
            content = content[:start] + draw(st.sampled_from(TOKENS)) + content[start:]
        elif kind == 2:
            content = content[:start] + draw(st.sampled_from(TOKENS)) + content[stop:]
        elif kind == 3:  # a part is lost
            content = content[:start] + content[stop:]
        elif kind == 4:  # or repeated
            content = (
                content[:stop] + content[start:stop] * draw(st.integers(1, 4)) + content[stop:]
            )
        elif kind == 5:  # cut short
            content = content[:start]
        else:
            content = content[:start] + draw(st.binary(max_size=12)) + content[start:]
    return content
