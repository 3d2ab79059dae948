"""Containers of other packages, recognized by their attributes: AnnData and xarray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb.data.coordinates import coordinate_columns, is_on_earth, kilometers
from efemb.errors import DataError, InputTypeError, ParameterError, suggest

# Attributes of the classes: instances of frames have their columns as attributes.
_ANNDATA = ("X", "obs_names", "var_names", "obs", "obsm", "varm", "layers")
_XARRAY = ("dims", "coords", "sel", "to_numpy")
# By package: what its objects are, and how to get their values.
_ELSEWHERE = {
    "dask": ("a Dask collection", ".compute()"),
    "dask_expr": ("a Dask collection", ".compute()"),
    "distributed": ("a future of a Dask cluster", ".result()"),
    "pyspark": ("a Spark table", ".toPandas()"),
    "modin": ("a distributed table", "._to_pandas()"),
}
_SPATIAL = "spatial"


@dataclass(frozen=True)
class Opened:
    """The parts of a container, in the words of `Dataset`."""

    values: Any
    entities: list[Any] | None = None
    positions: NDArray[np.float64] | None = None
    row_labels: NDArray[Any] | None = None
    rows: dict[str, Any] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)


def refuse_remote(values: object) -> None:
    """Reject a collection that is spread over workers, without importing its package."""
    package = type(values).__module__.partition(".")[0]
    if package not in _ELSEWHERE:
        return
    kind, call = _ELSEWHERE[package]
    raise InputTypeError(
        f"{type(values).__name__} is {kind}, which would be loaded into this process as a whole: "
        f"if it fits into memory, pass the result of {call}; otherwise make a store of its lines "
        "with efemb.shards.prepare (from Parquet, or directly from a Dask data frame), and fit "
        "with efemb.shards.fit or efemb.dask.fit"
    )


def is_lazy(values: object) -> bool:
    """Whether `values` is a lazy table of polars or narwhals; does not import them."""
    return type(values).__name__ == "LazyFrame" and hasattr(type(values), "collect_schema")


def in_memory(values: Any) -> Any:
    """A lazy table collected, a stream of Arrow read to its end, anything else as it is."""
    kind = type(values)
    streams = hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "to_batches")
    if hasattr(kind, "__array__") or not (streams or is_lazy(values)):
        return values
    # Imported here, since an array needs no readers of tables.
    from efemb.data.readers.several import whole_table

    return whole_table(values)


def is_anndata(values: object) -> bool:
    """Whether `values` has what an AnnData has; does not import anndata."""
    return all(hasattr(type(values), name) for name in _ANNDATA)


def is_xarray(values: object) -> bool:
    """Whether `values` is a DataArray or Dataset of xarray; does not import xarray."""
    return all(hasattr(type(values), name) for name in _XARRAY) or hasattr(
        type(values), "data_vars"
    )


def open_container(values: Any, layer: str | None = None) -> Opened | None:
    """The parts of an AnnData or DataArray; None for anything else.

    Parameters
    ----------
    values : object
        What the caller passed. Dask collections and the like are an error.
    layer : str, optional
        Layer of an AnnData to use instead of X.
    """
    refuse_remote(values)
    if is_anndata(values):
        return _open_anndata(values, layer)
    if layer is not None:
        raise ParameterError(
            f"layer={layer!r} selects a layer of an AnnData, not of {type(values).__name__}"
        )
    return _open_xarray(values) if is_xarray(values) else None


def _open_anndata(cells: Any, layer: str | None) -> Opened:
    """Cells x genes (or bins x neurons) with the names of both and the positions of the cells."""
    if layer is not None and layer not in cells.layers:
        raise DataError(f"the AnnData has no layer {layer!r}; {suggest(layer, cells.layers)}")
    values = cells.X if layer is None else cells.layers[layer]
    if values is None:
        raise DataError(
            "the AnnData has no X; name one of its layers: efemb.read_matrix(adata, layer=...); "
            f"there are {', '.join(cells.layers) or 'none'}"
        )
    if hasattr(type(values), "to_memory"):  # a sparse matrix on disk
        values = values.to_memory()
    refuse_remote(values)
    rows = {str(name): np.asarray(cells.obs[name]) for name in cells.obs if name != "row"}
    if _SPATIAL in cells.obsm:
        places = np.asarray(cells.obsm[_SPATIAL], dtype=np.float64)
        rows |= {f"{_SPATIAL}_{axis}": column for axis, column in enumerate(places.T)}
    positions = cells.varm.get(_SPATIAL)
    return Opened(
        values,
        list(cells.var_names),
        None if positions is None else np.asarray(positions, dtype=np.float64),
        np.asarray(cells.obs_names, object),
        rows=rows,
    )


def _open_xarray(array: Any) -> Opened:
    """Rows x entities with the coordinates of both dimensions."""
    if hasattr(type(array), "data_vars"):
        names = [str(name) for name in array.data_vars]
        raise InputTypeError(
            "an xarray.Dataset holds several arrays: pass one of them, such as "
            f"data[{names[0] if names else 'name'!r}]; there are {', '.join(names) or 'none'}"
        )
    refuse_remote(array.data)
    if len(array.dims) not in (2, 3):
        raise DataError(
            f"a DataArray must have dimensions rows x entities, not {', '.join(array.dims)}"
        )
    row_name, entity_name = array.dims[:2]
    along: dict[str, dict[str, NDArray[Any]]] = {row_name: {}, entity_name: {}}
    for name, coordinate in array.coords.items():
        if coordinate.dims in ((row_name,), (entity_name,)):
            along[coordinate.dims[0]][str(name)] = _plain(coordinate)
    row_labels = along[row_name].pop(row_name, None)
    entities = along[entity_name].pop(entity_name, None)
    features = along[entity_name]
    used = coordinate_columns(list(features))
    positions = np.stack([features[name] for name in used], axis=1) if used else None
    if positions is not None and is_on_earth(used):
        positions, _ = kilometers(positions)
    return Opened(
        array.to_numpy(),
        None if entities is None else entities.tolist(),
        positions,
        row_labels,
        rows=along[row_name],
        features=features,
    )


def _plain(coordinate: Any) -> NDArray[Any]:
    """Values of a coordinate; times become objects that can be labels."""
    values = np.asarray(coordinate.values)
    return values.astype("M8[us]").astype(object) if values.dtype.kind == "M" else values


def check_array_like(values: object, name: str) -> None:
    """Reject objects that NumPy would convert element by element, or never finish converting.

    NumPy treats anything with a length and an index as a sequence. If indexing never ends at a
    number, as in a container whose elements are containers, the conversion does not return.
    """
    if _is_array_like(values):
        if isinstance(values, list | tuple):
            _check_elements(values, name)
        return
    hint = _hint(values)
    raise InputTypeError(
        f"{name} must be an array, a list of rows, a sparse matrix or a data frame, not "
        f"{type(values).__name__}{hint}"
    )


def _check_elements(values: Sequence[object], name: str) -> None:
    examples = {type(element): element for element in values}
    for kind, element in examples.items():
        container = hasattr(kind, "__getitem__") and hasattr(kind, "__len__")
        if container and not isinstance(element, str | bytes) and not _is_array_like(element):
            raise InputTypeError(
                f"{name} must be a list of rows of numbers, not of {kind.__name__}"
            )


def _is_array_like(values: object) -> bool:
    kind = type(values)
    protocols = ("__array__", "__array_interface__", "__array_struct__", "__buffer__")
    if any(hasattr(kind, protocol) for protocol in protocols):
        return True
    if isinstance(values, Sequence | memoryview | bytearray):
        return not isinstance(values, str | bytes)
    # A plain number is an array of no dimensions, which its own error describes.
    return not hasattr(kind, "__getitem__") and not hasattr(kind, "__iter__")


def _hint(values: object) -> str:
    if hasattr(values, "values") and isinstance(values, dict):
        return ": pass a data frame, or a list of its values with entities="
    return ""
