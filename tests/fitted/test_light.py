"""Loading a model and asking it anything imports no heavy package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fitted.toys import goods, model, neighbor_lists

HEAVY = {"sklearn", "scipy", "pandas", "numba", "matplotlib", "polars", "pyarrow"}
ASK = """
import sys
import numpy as np
import efemb

goods, neurons = (efemb.load(path) for path in sys.argv[1:])
basket = {"tea": 2, "milk": 1}
goods.similar("tea"); goods.similar(["tea"] * 300, where="o")
goods.analogy("tea", "milk"); goods.doesnt_match(["tea", "milk", "soap"])
goods.complements("tea", data=np.eye(6), min_support=1); goods.substitutes("tea", data=np.eye(6))
goods.pairs(data=np.eye(6)); goods.topics(rotate="varimax")
goods.predict(basket); goods.complete(basket); goods.explain(basket, "soap")
goods.what_if(basket, "soap"); print(goods.vectors())
neurons.weights(); neurons.predict({0: 1.0}); neurons.explain({1: 1.0}, 0)
print(*{name.partition(".")[0] for name in sys.modules})
"""


SIMILAR = """
import sys
import efemb
efemb.load(sys.argv[1]).similar("tea", where="o", exclude="soap")
print("numpy.ma" in sys.modules)
"""


def test_a_question_does_without_masked_arrays(tmp_path: Path) -> None:
    """They take 20 ms to import, a third of what NumPy itself takes."""
    goods().save(tmp_path / "goods")
    command = [sys.executable, "-c", SIMILAR, str(tmp_path / "goods")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_queries_are_light(tmp_path: Path) -> None:
    lists = (neighbor_lists([0, 1, 2], [1, 0]),)
    neurons = model([[1.0], [2.0]], [[1.0], [3.0]], family="gaussian", lists=lists)
    paths = [str(tmp_path / name) for name in ("goods", "neurons")]
    for fitted, path in zip((goods(), neurons), paths, strict=True):
        fitted.save(path)
    command = [sys.executable, "-W", "error", "-c", ASK, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert HEAVY.isdisjoint(done.stdout.split())
