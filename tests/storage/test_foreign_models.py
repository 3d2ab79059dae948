"""Whatever other software writes, loading ends in a usable model or in a typed error."""

from __future__ import annotations

import copy
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import efemb
from efemb.storage import folder as sealed

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).poisson(1.0, (20, 6)).astype(float)
TENSORS = "parameters.safetensors"


def rows_for(model: Any) -> Any:
    return [list("abcab")] if model.spec.context.reads_text else X


QUESTIONS: list[Callable[[Any], Any]] = [
    lambda model: model.similar(model.entities[0], n=2),
    lambda model: model.complements(model.entities[0], n=2),
    lambda model: model.substitutes(model.entities[0], n=2),
    lambda model: model.complete([model.entities[0]]),
    lambda model: model.explain([model.entities[0]], model.entities[1]),
    lambda model: model.what_if([model.entities[0]], add=model.entities[1]),
    lambda model: model.topics(),
    lambda model: model.weights(),
    lambda model: model.score(rows_for(model)),
    lambda model: model.conditional(rows_for(model)),
    lambda model: model.report(),
]


@cache
def models() -> dict[str, efemb.fitted.FittedEmbedding]:
    lagged = efemb.Neighbors(2) + efemb.Lagged(offsets=(-1,), of=efemb.Neighbors(2))
    options: dict[str, Any] = {"max_iter": 1, "random_state": 0}
    labeled = efemb.Dataset(X, entities=list("abcdef"))
    located = efemb.Dataset(X, positions=np.eye(6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "counts": efemb.PoissonEmbedding(2, **options).fit(labeled).fitted(),
            "lists": efemb.GaussianEmbedding(2, context=lagged, **options).fit(located).fitted(),
            "terms": efemb.PoissonEmbedding(2, terms=[efemb.RowVectors("household", 2)], **options)
            .fit(efemb.Dataset(X, rows={"household": [0, 1] * 10}))
            .fitted(),
            "text": efemb.CBOW(2, **options).fit([list("abcab"), list("cabba")] * 4).fitted(),
        }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place within a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


def changed(value: Any, place: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    found = copy.deepcopy(value)
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    change(inner, place[-1])
    return found


def seal(folder: Path, manifest: dict[str, Any], checksums: bool = True) -> None:
    """Write a manifest whose checksums are right."""
    body = {key: one for key, one in manifest.items() if key != "checksum"}
    if checksums:
        files = [path for path in folder.iterdir() if path.name != "manifest.json"]
        body["sha256"] = {path.name: sealed.sha256(path) for path in files}
        body["bytes"] = {path.name: path.stat().st_size for path in files}
    body["checksum"] = sealed.checksum(body)
    (folder / "manifest.json").write_bytes(sealed.render(body))


def usable_or_refused(folder: Path) -> None:
    try:
        found = efemb.load(folder)
    except efemb.EfembError:
        return
    assert isinstance(repr(found), str)
    found.save(folder.parent / "again")
    for ask in QUESTIONS:
        with suppress(efemb.EfembError):  # of another model these data may be wrong
            ask(found)


ODD: list[Any] = [
    *(None, True, 0, -1, 1e308, 10**30, "", "x", "../../etc/passwd", [], {}, [1], {"a": 1}),
    *({"$array": "rho"}, {"$array": 3}, {"$float": "x"}, {"$tuple": 3}, {"$tuple": [1, 2]}),
    *({"$sparse": [10**18, 10**18], "data": 1}, {"$ingredient": "Log", "options": []}),
    *({"$ingredient": []}, {"$ingredient": "Neighbors", "options": {"k": -3}}),
    {"$ingredient": "Poisson", "options": {}},
]
some_model = st.sampled_from(["counts", "lists", "terms", "text"])
shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def put(value: Any) -> Callable[[Any, Any], None]:
    return lambda inner, key: inner.__setitem__(key, value)


@shared
@given(name=some_model, data=st.data())
def test_any_change_of_a_manifest(name: str, data: st.DataObject, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.rmtree(folder, ignore_errors=True)  # what the last example left may be no model
    models()[name].save(folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    place = data.draw(st.sampled_from(list(places(manifest))))
    gone = data.draw(st.booleans())
    change = (lambda inner, key: inner.pop(key)) if gone else put(data.draw(st.sampled_from(ODD)))
    new = changed(manifest, place, change)
    seal(folder, new, checksums=place[0] not in ("sha256", "bytes"))
    usable_or_refused(folder)


def forge(folder: Path, name: str, place: tuple[Any, ...], value: Any) -> None:
    models()[name].save(folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    seal(folder, changed(manifest, place, put(value)))


FORGED = [
    ("counts", ("format",), [1]),
    ("counts", ("fixed",), True),
    ("lists", ("fixed",), "x"),
    ("lists", ("lists",), ""),
    ("text", ("fixed",), 1),
    ("text", ("ingredients", "context", "options", "size"), 10**30),
    ("lists", ("ingredients", "context"), {"$ingredient": "Window", "options": {"size": 3}}),
    ("counts", ("history", 0, "iteration"), None),
    ("counts", ("history", 0, "validation"), []),
    ("counts", ("history", 0), {}),
    ("counts", ("history",), {"a": 1}),
    ("terms", ("ingredients", "terms", "$tuple", 0, "options", "groups", 0), []),
    ("terms", ("ingredients", "terms", "$tuple", 0, "options", "groups", 0), {"$array": "rho"}),
]


@pytest.mark.parametrize(("name", "place", "value"), FORGED)
def test_models_that_would_fail_when_used_are_refused(
    name: str, place: tuple[Any, ...], value: Any, tmp_path: Path
) -> None:
    """Each of these loaded, and a question ended in a bare error."""
    forge(tmp_path / "model", name, place, value)
    with pytest.raises(efemb.EfembError):
        efemb.load(tmp_path / "model")


def test_a_report_of_a_single_pass() -> None:
    assert "convergence" in str(models()["text"].report())


@shared
@given(name=some_model, data=st.data())
def test_any_other_arrays(name: str, data: st.DataObject, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    models()[name].save(folder)
    arrays = load_file(folder / TENSORS)
    which = data.draw(st.sampled_from(sorted(arrays)))
    shape = data.draw(st.lists(st.integers(0, 7), max_size=3))
    kind = data.draw(st.sampled_from(["float32", "float64", "int64", "bool"]))
    fill = data.draw(st.sampled_from([-1, 0, 1, 5]))
    del arrays[which]
    if data.draw(st.booleans()):
        arrays[which] = np.full(shape, fill, kind)
    save_file(arrays, folder / TENSORS)
    seal(folder, json.loads((folder / "manifest.json").read_bytes()))
    usable_or_refused(folder)


@pytest.mark.parametrize("labels", [3, None, {}, ["a"], ["a"] * 6, [[]] * 6, [None] * 6, "abcdef"])
def test_any_other_labels(labels: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    models()["counts"].save(folder)
    (folder / "vocabulary.json").write_bytes(sealed.render(labels))
    seal(folder, json.loads((folder / "manifest.json").read_bytes()))
    with pytest.raises(efemb.EfembError):
        efemb.load(folder)


DEEP = b"[" * 100_000
BROKEN = [b"", b"{", b"\xff\xfe", b"null", b"[]", DEEP, b'{"format": NaN}']


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_no_manifest_at_all(content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    models()["counts"].save(folder)
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(efemb.DataError):
        efemb.load(folder)


def test_a_manifest_of_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    models()["counts"].save(folder)
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace('"fixed": false', '"fixed": NaN'))
    with pytest.raises(efemb.DataError, match="damaged"):
        efemb.load(folder)


@pytest.mark.parametrize("key", ["version", "sha256", "bytes"])
def test_a_manifest_without_format_or_files(key: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    models()["counts"].save(folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    seal(folder, {**manifest, key: "x"}, checksums=False)
    with pytest.raises(efemb.DataError, match="not written by efemb"):
        efemb.load(folder)


def test_files_outside_the_folder_are_never_read(tmp_path: Path) -> None:
    """Names of files come from the program, never from the manifest."""
    folder = tmp_path / "model"
    models()["counts"].save(folder)
    (tmp_path / "secret").write_text("[1]")
    manifest = json.loads((folder / "manifest.json").read_bytes())
    sums = {**manifest["sha256"], "../secret": sealed.sha256(tmp_path / "secret")}
    seal(folder, {**manifest, "sha256": sums}, checksums=False)
    assert efemb.load(folder).n_entities == 6
