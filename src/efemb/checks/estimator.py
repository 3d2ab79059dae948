"""check_estimator: fits are reproducible, and saved models give the same answers."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning


def check_estimator(estimator: Any, X: Any) -> None:
    """Check an embedding with its options, on data that it can be fitted to.

    In addition, `sklearn.utils.estimator_checks.check_estimator` checks the general contract.

    Parameters
    ----------
    estimator : unfitted estimator, such as ``Embedding(family=MyFamily())``
    X : rows x entities
        Small: it is fitted three times.

    Raises
    ------
    AssertionError
        If fitting changes an option, two fits with the same seed differ in a bit, conditional means
        do not have the shape of the data, or a saved and loaded model answers differently. Classes
        of user-defined ingredients must be registered with `efemb.storage.register`.
    """
    from efemb.fitted import load

    name = type(estimator).__name__
    before = estimator.get_params(deep=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, second = (clone(estimator).set_params(random_state=0).fit(X) for _ in range(2))
        untouched = clone(estimator)
        untouched.fit(X)
    for key, value in before.items():
        stored = untouched.get_params(deep=False)[key]
        assert repr(stored) == repr(value), f"{name}.fit changes its option {key}"
    for key, array in first.parameters_.named().items():
        message = f"two fits of {name} with random_state=0 differ in {key}"
        assert_array_equal(array, second.parameters_.named()[key], err_msg=message)
        assert np.isfinite(array).all(), f"{name}: {key} holds NaN or infinite numbers"
    means = first.conditional(X)
    assert len(means) == len(X), f"{name}.conditional gives {len(means)} rows for {len(X)}"
    with tempfile.TemporaryDirectory() as folder:
        first.save(Path(folder) / "model")
        loaded = load(Path(folder) / "model")
    message = f"a saved and loaded {name} gives other conditional means"
    assert_allclose(loaded.conditional(X), means, rtol=1e-6, atol=1e-9, err_msg=message)
    assert_allclose(loaded.score(X), first.score(X), rtol=1e-6, err_msg=f"{name}: other score")
