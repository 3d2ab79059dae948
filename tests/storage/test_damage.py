"""Nothing that was damaged, cut short or foreign is ever read as a model."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import efemb
from efemb.fitted.disk import MODEL
from efemb.storage import folder as sealed


def model(seed: int = 0) -> efemb.fitted.FittedEmbedding:
    truth = efemb.simulation.simulate(
        "p-emb", n_rows=9, n_entities=4, n_components=2, seed=seed, sweeps=1
    )
    words = efemb.Vocabulary(["a", "b", "c", "d"])
    return efemb.fitted.FittedEmbedding(truth.parameters, truth.spec, vocabulary=words)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model().save(tmp_path / "model")
    return tmp_path / "model"


def resealed(folder: Path, **changes: Any) -> None:
    """Change the manifest and make its checksums right again."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest.pop("checksum")
    manifest.update(changes)
    manifest["sha256"] = {name: sealed.sha256(folder / name) for name in manifest["sha256"]}
    manifest["bytes"] = {name: (folder / name).stat().st_size for name in manifest["sha256"]}
    manifest["checksum"] = sealed.checksum(manifest)
    (folder / "manifest.json").write_bytes(sealed.render(manifest))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["manifest.json", "parameters.safetensors", "vocabulary.json"])
def test_any_flipped_bit_is_found(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    places = np.random.default_rng(0).choice(len(content) * 8, 60, replace=False)
    for place in [0, *places.tolist()]:
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        (folder / name).write_bytes(changed)
        with pytest.raises(efemb.DataError):
            efemb.load(folder)
    (folder / name).write_bytes(content)
    efemb.load(folder)


@pytest.mark.parametrize("name", ["manifest.json", "parameters.safetensors", "vocabulary.json"])
@pytest.mark.parametrize("kept", [0, 0.5, 0.99])
def test_truncated_files(folder: Path, name: str, kept: float) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(kept * len(content))])
    own = r"damaged" if name == "manifest.json" else f"{name} is truncated: .* of {len(content):,}"
    with pytest.raises(efemb.DataError, match=own):
        efemb.load(folder)


@pytest.mark.parametrize("name", ["manifest.json", "parameters.safetensors", "vocabulary.json"])
def test_missing_files(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(efemb.DataError, match=name):
        efemb.load(folder)


@pytest.mark.parametrize("name", ["manifest.json", "parameters.safetensors", "vocabulary.json"])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("sealing", [False, True])
def test_a_pickle_in_disguise_is_never_opened(
    folder: Path, name: str, protocol: int, sealing: bool
) -> None:
    """Even if its checksum is right: a model consists of numbers and text."""

    class Harm:
        def __reduce__(self) -> tuple[Any, ...]:
            return (folder / "harm").touch, ()

    (folder / name).write_bytes(pickle.dumps(Harm(), protocol=protocol))
    if sealing and name != "manifest.json":
        resealed(folder)
    with pytest.raises(efemb.DataError, match=f"{name} is a disguised pickle"):
        efemb.load(folder)
    assert not (folder / "harm").exists()


def test_a_zipped_or_old_pickle_is_refused_too(folder: Path) -> None:
    path = folder / "parameters.safetensors"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("data.pkl", pickle.dumps({}))
    resealed(folder)
    with pytest.raises(efemb.DataError, match="is a disguised pickle"):
        efemb.load(folder)
    path.write_bytes(pickle.dumps({"rho": [1.0]}, protocol=0))
    resealed(folder)
    with pytest.raises(efemb.DataError, match="does not hold a model that can be read"):
        efemb.load(folder)


def test_every_fault_has_its_own_message(folder: Path) -> None:
    """Flipped bit, cut short, newer format, not finite, pickle: five faults, five sentences."""
    sound = {path.name: path.read_bytes() for path in folder.iterdir()}
    tensors = folder / "parameters.safetensors"
    flipped = bytearray(sound[tensors.name])
    flipped[-1] ^= 1

    def not_finite() -> None:
        save_file({**load_file(tensors), "rho": np.full((4, 2), np.nan)}, tensors)
        resealed(folder)

    faults = [
        lambda: tensors.write_bytes(flipped),
        lambda: tensors.write_bytes(sound[tensors.name][:-1]),
        lambda: resealed(folder, version=MODEL.version + 1),
        not_finite,
        lambda: tensors.write_bytes(pickle.dumps({"rho": [1.0]})),
    ]
    messages = []
    for fault in faults:
        for name, content in sound.items():
            (folder / name).write_bytes(content)
        fault()
        with pytest.raises(efemb.DataError) as found:
            efemb.load(folder)
        messages.append(str(found.value).replace(str(folder), "").partition(":")[0])
    assert len(set(messages)) == len(faults)


def test_missing_and_foreign_folders(tmp_path: Path) -> None:
    with pytest.raises(efemb.DataError, match="does not exist"):
        efemb.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(efemb.DataError, match="is a file"):
        efemb.load(tmp_path / "file")
    with pytest.raises(efemb.DataError, match=r"no manifest\.json"):
        efemb.load(tmp_path)
    for text in ("[]", '{"format": "other"}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(efemb.DataError, match="another program"):
            efemb.load(tmp_path)
    for path in (3, "", None):
        with pytest.raises(efemb.InputTypeError, match="path"):
            efemb.load(path)


def test_newer_format(folder: Path) -> None:
    resealed(folder, version=MODEL.version + 1)
    with pytest.raises(efemb.DataError, match="newer efemb"):
        efemb.load(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_must_be_finite(folder: Path, value: float, tmp_path: Path) -> None:
    arrays = load_file(folder / "parameters.safetensors")
    arrays["rho"][1, 1] = value
    save_file(arrays, folder / "parameters.safetensors")
    resealed(folder)
    with pytest.raises(efemb.DataError, match="rho holds NaN"):
        efemb.load(folder)
    bad = model()
    bad.parameters.alpha[0, 0] = value
    with pytest.raises(efemb.DataError, match="alpha holds NaN"):
        bad.save(tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize(
    ("name", "shape"),
    [("alpha", (4, 3)), ("intercept", (3,)), ("rho", (8,)), ("positions", (3, 1))],
)
def test_shapes_must_fit(folder: Path, name: str, shape: tuple[int, ...]) -> None:
    arrays = load_file(folder / "parameters.safetensors")
    arrays[name] = np.ones(shape)
    save_file(arrays, folder / "parameters.safetensors")
    resealed(folder)
    with pytest.raises(efemb.DataError):
        efemb.load(folder)


def test_sealed_nonsense(folder: Path) -> None:
    ingredients = json.loads((folder / "manifest.json").read_bytes())["ingredients"]
    unknown = {**ingredients, "link": {"$ingredient": "os.system", "options": {}}}
    strange = {**ingredients, "link": {"$ingredient": "Log", "options": {"base": 2}}}
    invalid = {**ingredients, "link": {"$ingredient": "Log", "options": {}}}
    for changed in (unknown, strange, invalid, {}):
        resealed(folder, ingredients=changed)
        with pytest.raises(efemb.EfembError):
            efemb.load(folder)


def test_replacing_leaves_only_the_new_model(folder: Path) -> None:
    new = model(seed=1)
    new.save(str(folder))
    np.testing.assert_array_equal(efemb.load(folder).parameters.rho, new.parameters.rho)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("failing", ["save_file", "fsync", "first rename", "second rename"])
def test_a_failed_replacement_keeps_the_old_model(
    folder: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = efemb.load(folder).parameters.rho
    rename, calls = Path.rename, []

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("no space left on device")

    def fail_once(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == (1 if failing == "first rename" else 2):
            fail()
        return rename(self, target)

    with monkeypatch.context() as patch:
        if failing == "save_file":
            patch.setattr("safetensors.numpy.save_file", fail)
        elif failing == "fsync":
            patch.setattr("os.fsync", fail)
        else:
            patch.setattr(Path, "rename", fail_once)
        with pytest.raises(OSError, match="no space"):
            model(seed=1).save(folder)
    np.testing.assert_array_equal(efemb.load(folder).parameters.rho, before)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_kill_between_the_renamings_loses_nothing(folder: Path) -> None:
    before = efemb.load(folder).parameters.rho
    folder.rename(folder.with_name(".model.previous"))
    np.testing.assert_array_equal(efemb.load(folder).parameters.rho, before)
    model(seed=1).save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_what_killed_saves_left_goes_in_the_end(folder: Path) -> None:
    """But not files that may still be written, nor those of another name."""
    old, young, other = (
        folder.with_name(name)
        for name in (".model.partial-aa", ".model.partial-bb", ".models.partial-cc")
    )
    for path in (old, young, other):
        path.mkdir()
        (path / "parameters.safetensors").write_bytes(b"x")
    for path in (old, other):
        os.utime(path, (0, 0))
    model(seed=1).save(folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == sorted(
        ["model", young.name, other.name]
    )


def test_what_is_not_a_model_is_never_deleted(folder: Path, tmp_path: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(efemb.DataError, match=r"notes\.txt"):
        model().save(folder)
    (tmp_path / "file").write_text("x")
    with pytest.raises(efemb.DataError, match="is a file"):
        model().save(tmp_path / "file")
    assert (folder / "notes.txt").read_text() == "mine"


def test_new_parents_empty_folders_and_links(tmp_path: Path) -> None:
    model().save(tmp_path / "a" / "b" / "model")
    (tmp_path / "empty").mkdir()
    model().save(tmp_path / "empty")
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    model(seed=1).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    shutil.rmtree(tmp_path / "a")
    np.testing.assert_array_equal(
        efemb.load(tmp_path / "empty").parameters.rho, model(seed=1).parameters.rho
    )


def test_what_a_file_cannot_hold(tmp_path: Path) -> None:
    odd = model()
    odd.spec.zeros.set_params(weight=object())
    with pytest.raises(efemb.ParameterError, match=r"zeros\.weight"):
        odd.save(tmp_path / "m")
    odd.spec.zeros.set_params(weight=np.array(["a"]))
    with pytest.raises(efemb.ParameterError, match="only numbers"):
        odd.save(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manifest.json", '{"name": "a web app", "icons": []}'),
        ("manifest.json", "not even JSON"),
        ("manifest.json", "[]"),
        ("vocabulary.json", "{}"),
    ],
)
def test_files_of_others_under_our_names_are_never_deleted(
    name: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(efemb.DataError, match=f"holds '{name}', .* choose another folder"):
        model().save(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == [text]
