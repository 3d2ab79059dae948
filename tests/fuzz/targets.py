"""What is fuzzed: every reader, saved models and checkpoints, the command line and the explorer.

A target takes bytes and either uses them or refuses them by an error of `efemb.errors`; on the
command line, by exit code 1 or 2 and one line. Anything else is a bare error.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import efemb
from efemb.storage import folder as sealed


@dataclass(frozen=True)
class Target:
    """run : takes a content and an empty folder;  seed : makes a valid content."""

    name: str
    run: Callable[[bytes, Path], object]
    seed: Callable[[], bytes]

    def check(self, content: bytes, folder: Path) -> None:
        """Run with this content; the only exceptions are ours."""
        with warnings.catch_warnings(), suppress(efemb.EfembError):
            warnings.simplefilter("ignore")
            self.run(content, folder)


# -- files for readers ----------------------------------------------------------------------------

ITEMS = ("milk", "bread", "beer", "tea", "eggs")
TRIPS = "basket,item,count\n" + "".join(
    f"{t},{ITEMS[(t * t + n) % 5]},{n}\n" for t in range(30) for n in (1, 2, 3)
)
LINES = "".join(f"milk {'bread ' * (n % 3)}beer{n % 2}\n" for n in range(8))
NUMBERS = "a,b,c\n" + "".join(f"{n},{n * 0.5},{-n}\n" for n in range(8))
PLACES = "".join(f"{n},{n % 3}.5,1\n" for n in range(3))
WORDS = "the cat sat on the mat\nthe dog sat on the log\n" * 3


def of_file(name: str, read: Callable[[Path], object], seed: Callable[[], bytes]) -> Target:
    """A target that reads a file of this name."""

    def run(content: bytes, folder: Path) -> None:
        (folder / name).write_bytes(content)
        assert read(folder / name) is not None

    return Target(f"{getattr(read, 'title', 'read')} {name}", run, seed)


def titled(title: str, read: Callable[..., object], **options: Any) -> Callable[[Path], object]:
    """A reader with options, and a name for reports."""

    def named(path: Path) -> object:
        return read(path, **options)

    named.title = title  # type: ignore[attr-defined]
    return named


def packed(name: str, content: str) -> bytes:
    """A zip archive of one file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def saved(save: Callable[..., object], *arrays: Any, **named: Any) -> bytes:
    """What numpy writes."""
    stream = io.BytesIO()
    save(stream, *arrays, **named)
    return stream.getvalue()


def parquet(**columns: Any) -> bytes:
    """A table as Parquet."""
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream, write_page_checksum=True)
    return stream.getvalue()


def sparse_archive() -> bytes:
    import scipy.sparse

    stream = io.BytesIO()
    scipy.sparse.save_npz(stream, scipy.sparse.csr_array(np.eye(4)))
    return stream.getvalue()


def read_cells(folder: Path) -> object:
    """A folder of suite2p whose pickle is the content."""
    path = folder.parent
    np.save(path / "F.npy", np.arange(12.0).reshape(3, 4))
    np.save(path / "iscell.npy", np.ones((3, 2)))
    return efemb.read_suite2p(path)


def cells() -> bytes:
    regions = [
        {"ypix": np.array([n, n + 1]), "xpix": np.array([n, n]), "lam": np.ones(2)}
        for n in range(3)
    ]
    return saved(np.save, np.array(regions, dtype=object))


def read_places(path: Path) -> object:
    return efemb.read_traces(np.arange(12.0).reshape(3, 4), path)


def read_groups(path: Path) -> object:
    from efemb.explore.groups import read_groups

    return read_groups(path, efemb.Vocabulary(ITEMS))


def vectors(binary: bool) -> bytes:
    head = b"3 2\n"
    if binary:
        return head + b"".join(
            word + b" " + np.arange(2.0, dtype="<f4").tobytes() for word in (b"a", b"bb", b"c")
        )
    return head + b"a 1 2\nbb -0.5 3e-2\nc 0 1\n"


def readers() -> Iterator[Target]:
    """Every reader on every kind of file that it takes."""
    baskets = titled("baskets", efemb.read_baskets, basket="basket", item="item", count="count")
    columns = {"basket": [1, 1, 2], "item": ["a", "b", "a"], "count": [1, 2, 3]}
    for name, seed in {
        "trips.csv": TRIPS.encode,
        "trips.tsv": TRIPS.replace(",", "\t").encode,
        "trips.csv.gz": lambda: gzip.compress(TRIPS.encode(), mtime=0),
        "trips.zip": lambda: packed("trips.csv", TRIPS),
        "trips.parquet": lambda: parquet(**columns),
    }.items():
        yield of_file(name, baskets, seed)
    yield of_file("trips.dat", titled("lines", efemb.read_baskets, layout="lines"), LINES.encode)
    for name, seed in {
        "numbers.csv": NUMBERS.encode,
        "numbers.npy": lambda: saved(np.save, np.arange(12.0).reshape(3, 4)),
        "numbers.npz": lambda: saved(np.savez, np.arange(12).reshape(3, 4)),
        "sparse.npz": sparse_archive,
        "numbers.parquet": lambda: parquet(a=[1, 2], b=[0.5, None]),
    }.items():
        yield of_file(name, titled("matrix", efemb.read_matrix), seed)
    text = titled("text", efemb.read_text)
    yield of_file("text.txt", text, WORDS.encode)
    yield of_file("text.txt.gz", text, lambda: gzip.compress(WORDS.encode(), mtime=0))
    yield of_file("places.csv", titled("positions", read_places), PLACES.encode)
    yield of_file("stat.npy", titled("suite2p", read_cells), cells)
    yield of_file(
        "groups.csv",
        titled("groups", read_groups),
        b"item,kind\nmilk,dairy\nbeer,drink\n".__bytes__,
    )
    word2vec = titled("word2vec", efemb.export.read_word2vec)
    yield of_file("vectors.txt", word2vec, lambda: vectors(False))
    yield of_file("vectors.bin", word2vec, lambda: vectors(True))
    yield of_file("glove.txt", titled("glove", efemb.export.read_glove), lambda: vectors(False)[4:])


# -- saved models ---------------------------------------------------------------------------------


@cache
def model(moving: bool = False) -> Any:
    """A small model of trips with labels, which may move from week to week."""
    rng = np.random.default_rng(0)
    rows = {"week": np.arange(30) // 10}
    trips = efemb.Dataset(rng.poisson(0.8, (30, 5)), entities=ITEMS, rows=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        structure = efemb.Dynamic("week") if moving else "per-entity"
        plain = efemb.PoissonEmbedding(2, structure=structure, max_iter=2, random_state=0)
        return plain.fit(trips)


def file_of_model(name: str) -> bytes:
    """One of the files of a saved model."""
    return files_of_model()[name]


@cache
def files_of_model() -> dict[str, bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        model().save(folder)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def of_model(name: str, *, resealed: bool) -> Target:
    """A model with one file replaced; resealed, its checksums are right again."""

    def run(content: bytes, folder: Path) -> None:
        place = folder / "model"
        place.mkdir()
        for one, intact in files_of_model().items():
            (place / one).write_bytes(content if one == name else intact)
        if resealed:
            reseal(place)
        loaded = efemb.load(place)
        loaded.similar("milk", 2)
        loaded.complete({"milk": 1})

    kind = "resealed" if resealed else "damaged"
    return Target(f"{kind} {name}", run, lambda: file_of_model(name))


def reseal(folder: Path) -> None:
    """Right checksums for whatever the files hold."""
    try:
        body = json.loads((folder / "manifest.json").read_bytes())
    except ValueError:
        return
    if not isinstance(body, dict):
        return
    body.pop("checksum", None)
    files = [path for path in folder.iterdir() if path.name != "manifest.json"]
    body["sha256"] = {path.name: sealed.sha256(path) for path in files}
    body["bytes"] = {path.name: path.stat().st_size for path in files}
    with suppress(ValueError, RecursionError):
        body["checksum"] = sealed.checksum(body)
        (folder / "manifest.json").write_bytes(sealed.render(body))


def models() -> Iterator[Target]:
    """Every file of a saved model, as it is and resealed."""
    for name in sorted(files_of_model()):
        yield of_model(name, resealed=False)
        yield of_model(name, resealed=True)


# -- the command line -----------------------------------------------------------------------------

COMMANDS = (
    "fit trips.csv --out new -k 2 --max-iter 1",
    "fit anything --out new -k 2 --max-iter 1",
    "fit numbers.csv --positions places.csv --out new -k 1 --max-iter 1 --neighbors 1",
    "info model",
    "similar model milk -n 3",
    "fit --transpose numbers.csv --out new --max-iter 1 -k 1",
    "fit --lower words.txt anything --out new --min-count 1 --max-iter 1 -k 1",
    "complements model milk --data trips.csv",
    "substitutes model milk --json",
    "predict model milk=2 bread --new",
    "explain model beer milk=2",
    "topics model -n 2",
    "recommend model --data trips.csv --out list.csv",
    "evaluate model trips.csv",
    "compare trips.csv -k 1 -k 2",
    "export model vectors.txt",
    "explore model --out map.html --method pca --groups groups.csv",
    "plot model map --out map.svg",
)


def run_command(content: bytes, folder: Path) -> int:
    """The exit code; the first line has the arguments, the rest is a file called `anything`."""
    from efemb.cli import main
    from efemb.explore import Explorer

    line, _, rest = content.partition(b"\n")
    text = line.decode("utf-8", "surrogateescape")
    if "/" in text or "~" in text or "\0" in text or text.split()[:1] in (["demo"], ["reproduce"]):
        return 0  # files elsewhere, and commands that fetch data
    contents = {"trips.csv": TRIPS, "numbers.csv": NUMBERS, "places.csv": PLACES}
    for name, filled in {**contents, "words.txt": WORDS}.items():
        (folder / name).write_text(filled)
    (folder / "groups.csv").write_text("item,kind\nmilk,dairy\n")
    (folder / "anything").write_bytes(rest)
    (folder / "model").mkdir()
    for name, intact in files_of_model().items():
        (folder / "model" / name).write_bytes(intact)
    before, serve, errors, code = Path.cwd(), Explorer.serve, io.StringIO(), 0
    os.chdir(folder)
    Explorer.serve = lambda self, *_, **__: None  # type: ignore[method-assign]
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(errors):
            main(text.split(" "))
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    finally:
        os.chdir(before)
        Explorer.serve = serve  # type: ignore[method-assign]
    if code not in (0, 2) or "Traceback" in errors.getvalue():
        raise AssertionError(f"exit code {code}: {errors.getvalue()}")
    return code


def commands() -> Iterator[Target]:
    """Every command, with arguments and a file that are damaged."""
    for line in COMMANDS:
        seed = f"{line}\n{TRIPS}".encode()
        yield Target(f"efemb {line.split()[0]} {line.split()[1]}", run_command, seed.__bytes__)


# -- the explorer ---------------------------------------------------------------------------------

QUESTIONS = {
    "similar": {"item": 1, "space": "alpha", "n": 3},
    "analogy": {"positive": [0, 1], "negative": [2]},
    "complements": {"item": 1},
    "substitutes": {"item": 2, "n": 2, "model": 1, "group": 1},
    "complete": {"basket": [[0, 1], [2, 2.5]], "row": {}},
    "explain": {"basket": [[0, 1]], "item": 3},
    "what_if": {"basket": [[0, 1]], "row": {}, "table": "price", "item": 1, "factor": 0.5},
    "share": {"items": [0, 3], "model": 1, "group": 2},
    "weights": {"item": 0},
    "trajectory": {"item": 1, "model": 1},
    "map": {"space": "rho", "method": "pca"},
}


@cache
def client() -> Any:
    """A client of a served explorer without a limit of requests."""
    from starlette.testclient import TestClient

    from efemb.explore import prepare
    from efemb.explore.server import make_app
    from efemb.explore.serving import RateLimit

    unlimited = RateLimit(requests=float("inf"))
    explorer = prepare(model(), against=model(moving=True), methods="pca")
    app = make_app(explorer, rate=unlimited)
    return TestClient(app, base_url="http://127.0.0.1:8765")


def ask(content: bytes, folder: Path) -> None:
    """The first line is the question, the second a header, the rest the body."""
    from urllib.parse import quote

    question, _, rest = content.partition(b"\n")
    kind, _, body = rest.partition(b"\n")
    header = kind.decode("latin-1").replace("\r", "").replace("\0", "")
    response = client().post(
        "/api/" + quote(question), content=body, headers={"Content-Type": header.encode("latin-1")}
    )
    assert response.status_code < 500, response.text
    if response.status_code == 200:
        json.loads(response.content, parse_constant=refuse)


def refuse(name: str) -> None:
    """NaN and infinity are not JSON."""
    raise AssertionError(f"the answer holds {name}")


def questions() -> Iterator[Target]:
    """Every question of the explorer's API."""
    for name, body in QUESTIONS.items():
        seed = f"{name}\napplication/json\n{json.dumps(body)}".encode()
        yield Target(f"api {name}", ask, seed.__bytes__)


@cache
def targets() -> dict[str, Target]:
    """All targets by name."""
    every = [*readers(), *models(), *commands(), *questions()]
    return {target.name: target for target in every}


def clear(folder: Path) -> Path:
    """The folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
