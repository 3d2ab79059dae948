"""Cold start: what a new process pays for `import efemb`, its first fit and a command."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Report, Settings, Spread, interleaved, run_python
from benchmarks.stored import stored_model

HEAVY = ("matplotlib", "numba", "pandas", "polars", "pyarrow", "scipy", "sklearn")
FRAME = """
import json, sys, time
start = time.process_time()
{body}
cpu = time.process_time() - start
heavy = sorted(set({heavy!r}) & set(sys.modules))
print(json.dumps(dict(cpu=cpu, modules=len(sys.modules), heavy=heavy)))
"""
IMPORTS = "import sklearn.base, numba"
BODIES = {
    "nothing": "pass",
    "import numpy": "import numpy",
    "import efemb": "import efemb",
    IMPORTS: IMPORTS,
    "first fit, PoissonEmbedding": (
        "import numpy, efemb\n"
        "X = numpy.random.default_rng(0).poisson(0.3, (200, 30))\n"
        "X[:, 0] += 1\n"
        "efemb.PoissonEmbedding(5, random_state=0).fit(X)"
    ),
    "first fit, GaussianEmbedding": (
        "import numpy, efemb\n"
        "X = numpy.random.default_rng(0).normal(size=(200, 30))\n"
        "efemb.GaussianEmbedding(5, random_state=0).fit(X)"
    ),
}

# The process ends inside the command, so that its whole CPU time is told on the way out.
COMMAND = """
import atexit, json, sys, time
heavy = set({heavy!r})
def tell():
    loaded = sorted(heavy & set(sys.modules))
    print(json.dumps(dict(cpu=time.process_time(), heavy=loaded)))
atexit.register(tell)
from efemb.cli import main
sys.argv = ["efemb", "similar", sys.argv[1], "item 17"]
main()
"""


def _measure(body: str) -> dict[str, Any]:
    return dict(json.loads(run_python(FRAME.format(body=body, heavy=HEAVY))))


def run(settings: Settings) -> Report:
    """Medians over fresh processes in turn; the first round only fills the disk caches."""
    report = Report("cold_start", settings)
    jobs = {name: partial(_measure, body) for name, body in BODIES.items()}
    interleaved(jobs, 1)
    found = interleaved(jobs, settings.repeats if settings.quick else max(5, settings.repeats))
    cpu = {name: Spread.of([one["cpu"] for one in many]) for name, many in found.items()}
    for name, spread in cpu.items():
        last = found[name][-1]
        note = f"{last['modules']} modules, heavy: {', '.join(last['heavy']) or 'none'}"
        limit = 0.3 if name == "import efemb" else None
        report.add(f"{name}: CPU-s", spread, beside=note, at_most=limit)
    heavy = found["import efemb"][-1]["heavy"]
    report.add("import efemb loads heavy packages", "NO" if not heavy else ", ".join(heavy))
    for name in list(BODIES)[-2:]:
        gap = cpu[name].median - cpu[IMPORTS].median
        report.add(f"{name}: CPU-s above the imports it needs", gap, at_most=1.0)
    _command(report, 500 if settings.quick else 8000)
    return report


def _command(report: Report, n_items: int) -> None:
    """`efemb similar` on a saved model; CPU-seconds of the whole process, interpreter included."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        stored_model(n_items, 100).save(path)
        code = COMMAND.format(heavy=HEAVY)
        jobs = {"ask": lambda: json.loads(run_python(code, path))}
        found = interleaved(jobs, 1 + max(3, report.settings.repeats))["ask"][1:]
    spread = Spread.of([one["cpu"] for one in found])
    note = f"heavy: {', '.join(found[-1]['heavy']) or 'none'}"
    label = f"efemb similar, {n_items:,} items: CPU-s"
    report.add(label, spread, beside=note, at_most=0.6)
