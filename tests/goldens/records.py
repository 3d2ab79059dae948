"""What is kept of a fit: hashes for the machine that made them, summaries for any other."""

from __future__ import annotations

import hashlib
import platform
from typing import Any

import numpy as np

from goldens import fits

Array = Any


def machine() -> dict[str, str]:
    """Whatever may change the last bit of a result: CPU, libraries and their versions."""
    import llvmlite.binding
    import numba
    import scipy
    import sklearn
    from threadpoolctl import threadpool_info

    features = llvmlite.binding.get_host_cpu_features().flatten()
    blas = [
        f"{library['internal_api']} {library['version']} {library.get('architecture')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    return {
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "libc": " ".join(platform.libc_ver()),
        "cpu": f"{llvmlite.binding.get_host_cpu_name()} {numba.config.CPU_NAME or ''}".strip(),
        "cpu_features": hashlib.sha256(features.encode()).hexdigest()[:16],
        "blas": "; ".join(sorted(set(blas))),
    }


def record_fit(name: str) -> dict[str, Any]:
    """Fit, and keep the arrays, the score and the number of passes."""
    fit = fits.FITS[name]
    model = fit()
    arrays = record_arrays(fits.parameter_arrays(model))
    return {"arrays": arrays, "score": fits.score(model, fit), "n_iter": _passes(model)}


def _passes(model: Any) -> int | None:
    passes = getattr(model, "n_iter_", None)
    return None if passes is None else int(passes)


def record_arrays(arrays: dict[str, Array]) -> dict[str, Any]:
    return {name: _record_array(array) for name, array in arrays.items()}


def _record_array(array: Array) -> dict[str, Any]:
    exact = array.astype(np.float64)
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
        "sum": float(exact.sum()),
        "norm": float(np.linalg.norm(exact)),
        "first": float(exact.flat[0]),
    }
