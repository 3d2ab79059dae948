"""Object arrays are read as data; other pickles are rejected without running."""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import efemb
from efemb.data.readers.array_file import load_objects


def save(path: Path, objects: list[Any]) -> Path:
    array = np.empty(len(objects), dtype=object)
    array[:] = objects
    np.save(path, array, allow_pickle=True)
    return path


def save_pickle(path: Path, content: bytes, shape: tuple[int, ...] = (1,)) -> Path:
    """A .npy file of objects around any pickle."""
    stream = io.BytesIO()
    header = {"descr": "|O", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    path.write_bytes(stream.getvalue() + content)
    return path


def same(one: Any, two: Any) -> bool:
    if isinstance(two, np.ndarray):
        alike = one.dtype == two.dtype and one.shape == two.shape
        return alike and same(one.tolist(), two.tolist())
    if isinstance(two, dict):
        return list(one) == list(two) and all(same(one[key], two[key]) for key in two)
    if isinstance(two, list | tuple):
        return type(one) is type(two) and all(map(same, one, two)) and len(one) == len(two)
    return type(one) is type(two) and one == two


OBJECTS = [
    {
        "ypix": np.array([3, 4, 5]),
        "xpix": np.array([[1, 2], [3, 4]], dtype=">i4").T,
        "lam": np.array([0.5, 0.25], dtype=np.float32),
        "overlap": np.array([True, False]),
        "med": [3, 4.5],
        "skew": np.float64(1.5),
        "radius": np.float32(2.5),
        "npix": np.int64(7),
        "good": np.bool_(True),
        "name": np.str_("Zelle 1"),
        "words": np.array(["a", "bcd"]),
        "nested": (1, None, b"x", {"y": np.zeros((0, 3), dtype=np.uint16)}),
        "objects": np.array([{"a": 1}, None], dtype=object),
        "empty": np.array([]),
    },
    {},
    [],
    3,
    "text",
]


def test_what_suite2p_writes_comes_back(tmp_path: Path) -> None:
    found = load_objects(save(tmp_path / "stat.npy", OBJECTS))
    expected = np.load(tmp_path / "stat.npy", allow_pickle=True)
    assert same(found, list(expected))


@pytest.mark.parametrize("protocol", [3, 4])
def test_protocols_of_numpy(tmp_path: Path, protocol: int) -> None:
    array = np.empty(1, dtype=object)
    array[0] = {"ypix": np.arange(4), "skew": np.float32(0.5)}
    path = save_pickle(tmp_path / "stat.npy", pickle.dumps(array, protocol=protocol))
    assert same(load_objects(path), list(array))


class Evil:
    """A pickle that touches a file when it is loaded by `pickle`."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self._call = call
        self._arguments = arguments

    def __reduce__(self) -> Any:
        return self._call, self._arguments


def hidden(objects: Any, where: str) -> Any:
    return {"alone": objects, "dict": {"med": objects}, "list": [1, [objects]]}[where]


@pytest.mark.parametrize("where", ["alone", "dict", "list"])
@pytest.mark.parametrize(
    "call",
    [
        lambda trace: Evil(os.system, f"touch '{trace}'"),
        lambda trace: Evil(exec, f"open({str(trace)!r}, 'w').close()"),
        lambda trace: Evil(open, str(trace), "w"),
        lambda trace: Evil(Path.touch, trace),
        lambda trace: Evil(getattr, trace, "touch"),
        lambda trace: Evil(np.save, str(trace), 1),
    ],
    ids=["os.system", "exec", "open", "method", "getattr", "numpy.save"],
)
def test_malicious_pickles_are_refused(tmp_path: Path, call: Any, where: str) -> None:
    trace = tmp_path / "it ran"
    path = save(tmp_path / "stat.npy", [hidden(call(trace), where)])
    with pytest.raises(efemb.DataError, match="rejected") as caught:
        load_objects(path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("it ran*"))


def test_the_attack_is_real(tmp_path: Path) -> None:
    trace = tmp_path / "it ran"
    path = save(tmp_path / "stat.npy", [Evil(exec, f"open({str(trace)!r}, 'w').close()")])
    np.load(path, allow_pickle=True)
    assert trace.exists()


def raw(*parts: bytes) -> bytes:
    """A handwritten pickle: parts, then the end."""
    return b"\x80\x04" + b"".join(parts) + b"."


def name(module: str, thing: str) -> bytes:
    return f"c{module}\n{thing}\n".encode()


DTYPE = name("numpy", "dtype")
ARRAY = name("numpy.core.multiarray", "_reconstruct")
SCALAR = name("numpy.core.multiarray", "scalar")


@pytest.mark.parametrize(
    "content",
    [
        raw(name("numpy", "ndarray"), b"(K\x04tR"),  # a call of ndarray: memory as it was
        raw(name("numpy", "ndarray")),
        raw(DTYPE, b"(\x8c\x02O8tR"),  # a type instead of data
        raw(DTYPE, b"(\x8c\x05i4,i8tR"),  # fields
        raw(DTYPE, b"(\x8c\x02V8tR"),
        raw(DTYPE, b"(\x8c\x02i8tR(K\x03\x8c\x01<N(\x8c\x01atNK\x08K\x08K\x00tb"),
        raw(DTYPE, b"(tR"),
        raw(ARRAY, b"(tR"),  # never given contents
        raw(ARRAY, b"(tRNb"),
        raw(ARRAY, b"(tR(K\x01(K\x05t", DTYPE, b"(\x8c\x02i8tR\x89C\x08", bytes(8), b"tb"),
        raw(ARRAY, b"(tR(K\x01(J\xff\xff\xff\xfft", DTYPE, b"(\x8c\x02i8tR\x89C\x00tb"),
        raw(ARRAY, b"(tR(K\x01(K\x01t", DTYPE, b"(\x8c\x02O8tR\x89C\x08", bytes(8), b"tb"),
        raw(SCALAR, b"(", DTYPE, b"(\x8c\x02O8tRC\x08abcdefghtR"),
        raw(SCALAR, b"(", DTYPE, b"(\x8c\x02i8tRC\x10", bytes(16), b"tR"),  # two numbers
        raw(SCALAR, b"(", DTYPE, b"(\x8c\x02i8tRC\x08", bytes(8), b"tR}b"),  # with a state
        raw(SCALAR, b"(K\x01C\x08", bytes(8), b"tR"),
        raw(DTYPE, b"(\x8c\x02U3tR(K\x03\x8c\x01<NNNNK\x08K\x00tb"),  # text without a length
        raw(name("numpy", "ndarray"), b"}b"),
        raw(DTYPE, b"}\x8c\x05dtypeK\x01sb"),  # a change of our own class
        raw(DTYPE, b"N}\x8c\x0c__setstate__", ARRAY, b"s\x86b"),
        raw(b"]\x94h\x00a"),  # a list that holds itself
        raw(b"\x8c\x07builtins\x8c\x04eval\x93"),
        raw(b"\x8c\x05numpy\x8c\x08core.sys\x93"),
        raw(b"P1\n"),
        b"\x80\x04",
        b"",
        b"garbage",
    ],
    ids=range(27),
)
def test_crafted_pickles_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(efemb.DataError):
        load_objects(save_pickle(tmp_path / "stat.npy", content))
    # Nothing of the reader itself was changed.
    test_what_suite2p_writes_comes_back(tmp_path)


def test_shared_parts_do_not_multiply(tmp_path: Path) -> None:
    one: list[Any] = ["x"]
    for _ in range(100):
        one = [one, one]
    (found,) = load_objects(save(tmp_path / "stat.npy", [one]))
    assert found[0] is found[1]


# "r" followed by a huge number makes the unpickler of Python ask for as much memory.
@given(st.binary(max_size=60).filter(lambda content: b"r" not in content))
def test_any_bytes_are_data_or_an_error(tmp_path_factory: Any, content: bytes) -> None:
    path = save_pickle(tmp_path_factory.mktemp("any") / "stat.npy", content)
    with pytest.raises(efemb.DataError):
        load_objects(path)


def test_other_files(tmp_path: Path) -> None:
    np.save(tmp_path / "numbers.npy", np.arange(3))
    with pytest.raises(efemb.DataError, match="not Python objects"):
        load_objects(tmp_path / "numbers.npy")
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(efemb.DataError, match=r"cannot be read as \.npy"):
        load_objects(tmp_path / "text.npy")
    two = np.empty((1, 1), dtype=object)
    np.save(tmp_path / "two.npy", two)
    with pytest.raises(efemb.DataError, match="list of objects"):
        load_objects(tmp_path / "two.npy")
