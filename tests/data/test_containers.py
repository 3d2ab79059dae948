"""Containers of other packages: read by what they have, refused where they only look like arrays.

The stand-ins have the attributes of the real classes, so that no test needs the packages.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import efemb
from efemb.data.coordinates import coordinate_columns, kilometers
from efemb.errors import DataError, InputTypeError, ParameterError

COUNTS = np.random.default_rng(0).poisson(1.0, size=(40, 5)).astype(float)


class AnnData:
    """The attributes of anndata.AnnData; indexing returns another one, without end, as there."""

    X = obs = obsm = varm = layers = var_names = obs_names = None  # attributes of the class

    def __init__(self) -> None:
        self.X: Any = COUNTS
        self.var_names = pd.Index([f"gene{n}" for n in range(5)])
        self.obs_names = pd.Index([f"cell{t}" for t in range(40)])
        self.obs = pd.DataFrame({"batch": list("ab") * 20, "row": range(40)}, index=self.obs_names)
        self.obsm = {"spatial": np.arange(80.0).reshape(40, 2)}
        self.layers = {"counts": csr_matrix(COUNTS + 1)}
        self.varm: dict[str, Any] = {}

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: Any) -> AnnData:
        return self


class DataArray:
    """The attributes of xarray.DataArray."""

    dims = coords = None  # attributes of the class

    def __init__(self, values: Any, dims: tuple[str, ...], coords: dict[str, Any]) -> None:
        self.data, self.dims = values, dims
        self.coords = {
            name: SimpleNamespace(dims=(dim,), values=np.asarray(cells))
            for name, (dim, cells) in coords.items()
        }

    def sel(self) -> None: ...

    def to_numpy(self) -> Any:
        return self.data


class Endless:
    """Looks like a sequence of sequences, without end."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, place: Any) -> Endless:
        return self


def remote(package: str) -> Any:
    return type("Array", (Endless,), {"__module__": f"{package}.array.core"})()


def test_anndata_brings_names_and_places() -> None:
    data = efemb.Dataset(AnnData())
    assert list(data.entities or ()) == [f"gene{n}" for n in range(5)]
    assert data.row_labels is not None
    assert data.row_labels[:2].tolist() == ["cell0", "cell1"]
    assert sorted(data.rows) == ["batch", "row", "spatial_0", "spatial_1"]
    assert data.rows["spatial_1"][:2].tolist() == [1.0, 3.0]
    np.testing.assert_array_equal(data.values, COUNTS)
    assert data.positions is None


def test_a_layer_of_anndata() -> None:
    data = efemb.read_matrix(AnnData(), layer="counts")
    assert data.is_sparse
    np.testing.assert_array_equal(data.values.toarray(), COUNTS + 1)
    with pytest.raises(DataError, match="no layer 'cuonts'; did you mean 'counts'"):
        efemb.read_matrix(AnnData(), layer="cuonts")
    with pytest.raises(ParameterError, match="layer='counts' selects a layer of an AnnData"):
        efemb.read_matrix(COUNTS, layer="counts")
    empty = AnnData()
    empty.X = None
    with pytest.raises(DataError, match=r"no X; name one of its layers.*counts"):
        efemb.Dataset(empty)


def test_positions_of_variables() -> None:
    cells = AnnData()
    cells.varm = {"spatial": np.arange(10.0).reshape(5, 2)}
    positions = efemb.Dataset(cells).positions
    np.testing.assert_array_equal(positions, cells.varm["spatial"])


def test_a_fit_to_anndata_and_back() -> None:
    cells = AnnData()
    model = efemb.PoissonEmbedding(2, random_state=0).fit(cells)
    same = efemb.PoissonEmbedding(2, random_state=0).fit(COUNTS)
    np.testing.assert_array_equal(model.embedding_, same.embedding_)
    assert model.score(cells) == same.score(COUNTS) == model.fitted().score(cells)
    cells.var_names = pd.Index(["gene3", "other", "gene0"])
    efemb.export.write_anndata(model, cells)
    np.testing.assert_array_equal(cells.varm["efemb"][[0, 2]], model.rho_[[3, 0]])
    np.testing.assert_array_equal(cells.varm["efemb_context"][[0, 2]], model.alpha_[[3, 0]])
    assert np.isnan(cells.varm["efemb"][1]).all()
    cells.var_names = pd.Index(["nothing"])
    with pytest.raises(DataError, match="none of the 1 var_names"):
        efemb.export.write_anndata(model, cells)
    with pytest.raises(InputTypeError, match="must be an AnnData, not ndarray"):
        efemb.export.write_anndata(model, COUNTS)


def test_xarray_keeps_its_coordinates() -> None:
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="M8[ns]")
    coords = {
        "time": ("time", times),
        "trial": ("time", [1, 1, 2]),
        "neuron": ("neuron", ["a", "b"]),
        "area": ("neuron", ["V1", "V2"]),
        "y": ("neuron", [1.0, 2.0]),
        "x": ("neuron", [3.0, 4.0]),
    }
    data = efemb.Dataset(DataArray(np.eye(3, 2), ("time", "neuron"), coords))
    assert list(data.entities or ()) == ["a", "b"]
    assert data.row_labels is not None
    assert data.row_labels[1].isoformat() == "2020-01-02T00:00:00"
    assert data.rows["trial"].tolist() == [1, 1, 2]
    assert data.features["area"].tolist() == ["V1", "V2"]
    assert data.positions is not None
    assert data.positions.tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert data.take_rows([2]).rows["trial"].tolist() == [2]


def test_degrees_of_xarray_become_kilometers_as_those_of_files(tmp_path: Path) -> None:
    degrees = {"latitude": [60.0, 60.0, 61.0], "longitude": [10.0, 11.0, 10.0]}
    coords = {"site": ("site", list("abc"))} | {n: ("site", d) for n, d in degrees.items()}
    data = efemb.Dataset(DataArray(np.eye(4, 3), ("time", "site"), coords))
    table = zip("abc", *degrees.values(), strict=True)
    lines = ["site,latitude,longitude", *(",".join(map(str, line)) for line in table)]
    (tmp_path / "sites.csv").write_text("\n".join(lines))
    of_file = efemb.read_matrix(
        np.eye(4, 3), entities=list("abc"), positions=tmp_path / "sites.csv"
    )
    assert data.positions is not None
    assert of_file.positions is not None
    np.testing.assert_array_equal(data.positions, of_file.positions)
    assert data.features["latitude"].tolist() == degrees["latitude"]


def test_xarray_that_cannot_be_used() -> None:
    with pytest.raises(DataError, match="rows x entities, not time"):
        efemb.Dataset(DataArray(np.ones(3), ("time",), {}))
    several = type("Dataset", (), {"data_vars": {"f": 1, "g": 2}})()
    several.data_vars = {"f": 1, "g": 2}
    with pytest.raises(InputTypeError, match=r"such as data\['f'\]; there are f, g"):
        efemb.Dataset(several)
    with pytest.raises(InputTypeError, match="Dask collection"):
        efemb.Dataset(DataArray(remote("dask"), ("time", "neuron"), {}))


@pytest.mark.parametrize("package", ["dask", "dask_expr", "pyspark"])
def test_collections_on_other_machines_are_refused(package: str) -> None:
    there = remote(package)
    calls = [
        lambda: efemb.Dataset(there),
        lambda: efemb.read_matrix(there),
        lambda: efemb.read_baskets(there, basket="a", item="b"),
        lambda: efemb.PoissonEmbedding(2).fit(there),
        lambda: efemb.CBOW(2).fit(there),
    ]
    for call in calls:
        with pytest.raises(InputTypeError, match=r"loaded into this process.*efemb.shards.prepare"):
            call()


@pytest.mark.parametrize(
    "values",
    [Endless(), [Endless()], {"a": [1, 2]}, {1, 2}, "abc", iter([1])],
    ids=["endless", "list", "dict", "set", "text", "iterator"],
)
def test_what_only_looks_like_an_array_is_refused_at_once(values: Any) -> None:
    with pytest.raises(InputTypeError, match="must be"):
        efemb.Dataset(values)
    with pytest.raises(InputTypeError):
        efemb.GaussianEmbedding(2).fit(values)


def test_a_lazy_frame_is_collected() -> None:
    assert efemb.Dataset(pl.LazyFrame({"a": [1], "b": [2]})).values.tolist() == [[1, 2]]
    with pytest.raises(InputTypeError, match=r'source\["text"\]'):
        efemb.read_text(pl.LazyFrame({"text": ["a b"]}))


@pytest.mark.parametrize(
    "as_frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, lambda d: pl.DataFrame(d).to_arrow()]
)
@pytest.mark.parametrize("name", ["customer_id", "id", "order", "timestamp"])
def test_an_id_column_of_a_wide_frame_is_not_an_item(as_frame: Any, name: str) -> None:
    columns = {name: np.arange(100, 140), **{f"p{n}": COUNTS[:, n] for n in range(5)}}
    frame = as_frame(columns)
    for call in (efemb.Dataset, efemb.read_matrix, efemb.PoissonEmbedding(2).fit):
        with pytest.raises(DataError, match=f"column '{name}' has another value in every row"):
            call(frame)
    data = efemb.read_matrix(frame, row_labels=name)
    assert data.n_entities == 5
    assert efemb.Dataset(frame, entities=list(columns)).n_entities == 6


def test_columns_with_repeated_values_are_items() -> None:
    frame = pd.DataFrame(COUNTS[:, :3], columns=["order", "time", "id"])
    assert efemb.Dataset(frame).n_entities == 3


def test_transposed_values_are_noticed() -> None:
    with pytest.raises(DataError, match="40 is the number of rows: are the values transposed"):
        efemb.Dataset(COUNTS, positions=np.arange(80).reshape(40, 2))
    with pytest.raises(DataError, match="40 is the number of rows: are the values transposed"):
        efemb.Dataset(COUNTS, entities=range(40))


def test_names_of_coordinates() -> None:
    expected = {
        ("x", "y"): ["x", "y"],
        ("id", "Z_um", "y_um", "x_um"): ["x_um", "y_um", "Z_um"],
        ("name", "lng", "lat"): ["lat", "lng"],
        ("centroid-x", "centroid-y", "area"): ["centroid-x", "centroid-y"],
        ("x", "x_um", "y"): ["x", "y"],
        ("xa", "ya"): [],
        ("x_left", "y"): [],
        ("latitude", "speed"): [],
        ("x (um)", "x (mm)", "y"): [],
    }
    assert {header: coordinate_columns(header) for header in expected} == expected


def test_kilometers_have_the_neighbors_of_the_globe() -> None:
    rng = np.random.default_rng(0)
    for low, high in ((58, 62), (-80, 80)):
        degrees = np.stack([rng.uniform(low, high, 30), rng.uniform(0, high, 30)], axis=1)
        points, _ = kilometers(degrees)
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        lat, lon = np.radians(degrees).T
        across = np.sin((lat[:, None] - lat) / 2) ** 2
        across += np.cos(lat[:, None]) * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
        haversine = 2 * 6371 * np.arcsin(np.sqrt(across))
        near = haversine < 300
        np.testing.assert_allclose(apart[near], haversine[near], rtol=0.02)


def write_sensors(path: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def test_positions_with_further_columns(tmp_path: Path) -> None:
    speed = pd.DataFrame(COUNTS[:, :3], columns=["773869", "767541", "767542"])
    latitude, longitude = [34.1, 34.2, 34.3, 34.9], [-118.3, -118.2, -118.1, -118.9]
    path = write_sensors(
        tmp_path / "sensors.csv",
        index=[0, 1, 2, 3],
        sensor_id=[767542, 767541, 773869, 1],
        latitude=latitude,
        longitude=longitude,
    )
    data = efemb.read_matrix(speed, positions=path)
    wanted, _ = kilometers(np.stack([latitude, longitude], axis=1))
    assert data.positions is not None
    np.testing.assert_allclose(data.positions, wanted[[2, 1, 0]])
    assert data.report["positions"] == (
        "latitude and longitude of sensors.csv (in km), matched by 'sensor_id'"
    )
    frame = pd.read_csv(path)
    frame.to_parquet(tmp_path / "sensors.parquet")
    again = efemb.read_matrix(speed, positions=tmp_path / "sensors.parquet")
    np.testing.assert_array_equal(again.positions, data.positions)


def test_positions_that_are_not_clear(tmp_path: Path) -> None:
    speed = pd.DataFrame(COUNTS[:, :3], columns=["a", "b", "c"])
    sizes = {name: [1.0, 2.0, 4.0] for name in ("p", "q", "r", "s")}
    with pytest.raises(DataError, match=r"which columns are coordinates.*there are p, q, r, s"):
        efemb.read_matrix(speed, positions=write_sensors(tmp_path / "many.csv", **sizes))
    path = write_sensors(tmp_path / "apart.csv", ref=[1e6, 2e6, 4e6], p=[1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="distances would be those of ref alone"):
        efemb.read_matrix(speed, positions=path)
    np.save(tmp_path / "apart.npy", np.array([[1e6, 1], [2e6, 2], [3e6, 3]]))
    with pytest.raises(DataError, match="distances would be those of column 0 alone"):
        efemb.read_matrix(speed, positions=tmp_path / "apart.npy")
    path = write_sensors(tmp_path / "lack.csv", name=["a", "b", "z"], x=[1, 2, 3], y=[1, 2, 4])
    with pytest.raises(DataError, match="column 'name' names the entities, but 'c' is not in it"):
        efemb.read_matrix(speed, positions=path)
    path = write_sensors(tmp_path / "twice.csv", name=list("abca"), x=range(4), y=range(4))
    with pytest.raises(DataError, match="'a' occurs more than once in 'name'"):
        efemb.read_matrix(speed, positions=path)
