"""The Python examples of the documents run as they stand."""

from __future__ import annotations

import gzip
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest
from scipy import stats

import efemb
import efemb.datasets
import efemb.simulation

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = {
    f"{path.name}-{place}": block
    for path in DOCUMENTS
    for place, block in enumerate(
        re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    )
}
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
WORDS = ["king", "woman", "man", "terrible", "once", "upon", "time", "film", "good", "the"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with the files that the documents speak of; pictures without a screen."""
    matplotlib.use("Agg")
    write_shop(tmp_path / "trips.csv")
    write_shop(tmp_path / "new-trips.csv")
    small_shop().write(tmp_path)
    write_reviews(tmp_path / "reviews.txt.gz")
    monkeypatch.setitem(sys.modules, "pynwb", stand_in_for_pynwb())
    monkeypatch.setitem(sys.modules, "mlflow", stand_in_for_mlflow())
    monkeypatch.setitem(sys.modules, "optuna", stand_in_for_optuna())
    monkeypatch.setitem(sys.modules, "anndata", SimpleNamespace(AnnData=AnnData))
    monkeypatch.chdir(tmp_path)


@cache
def small_shop() -> efemb.simulation.SimulatedShop:
    return efemb.simulation.simulate_shop()


def trips(n_rows: int = 400, n_items: int = 15) -> efemb.Dataset:
    data = efemb.simulation.simulate(
        "p-emb", n_rows=n_rows, n_entities=n_items, n_components=2, seed=0
    ).data
    labels = [f"product {n}" for n in range(n_items)]
    counts = np.asarray((data.values != 0).sum(axis=0)).ravel()
    return efemb.Dataset(data.values, entities=efemb.Vocabulary(labels, counts=counts))


def write_trips(path: Path) -> None:
    """A table of trips, one line for each product of each trip."""
    data = trips()
    dense = data.values.toarray() if data.is_sparse else data.values
    rows, products = np.nonzero(dense)
    lines = [f"{t},product {n},{dense[t, n]:g}" for t, n in zip(rows, products, strict=True)]
    path.write_text("\n".join(["trip,product,quantity", *lines]), encoding="utf-8")


def write_shop(path: Path) -> None:
    """As `efemb datasets sample-trips --out` does."""
    from efemb.cli.datasets import write_baskets

    write_baskets(efemb.datasets.fetch_sample_trips(), path)


def documents() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(np.array(WORDS)[rng.integers(0, len(WORDS), 12)]) for _ in range(100)]


def write_reviews(path: Path) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write("\n".join(documents()))


def stand_in_for_pynwb() -> Any:
    """A session of three cells and five frames, where such files keep them."""
    masks = [[(x, 2, 1.0), (x + 2, 4, 3.0)] for x in (1, 5, 9)]
    rois = SimpleNamespace(table={"pixel_mask": masks}, data=np.arange(3))
    series = SimpleNamespace(rois=rois, data=np.ones((5, 3)))
    session = {"ophys": {"Fluorescence": {"RoiResponseSeries": series}}}

    class File:
        def __init__(self, path: str, mode: str) -> None:
            assert (path, mode) == ("session.nwb", "r")

        def __enter__(self) -> File:
            return self

        def __exit__(self, *_: object) -> None: ...

        def read(self) -> Any:
            return SimpleNamespace(processing=session)

    return SimpleNamespace(NWBHDF5IO=File)


def stand_in_for_mlflow() -> Any:
    """Checks what is logged instead of keeping it."""

    def log_metrics(numbers: dict[str, float], step: int) -> None:
        assert all(isinstance(number, int | float) for number in numbers.values())

    def log_artifacts(folder: str, artifact_path: str) -> None:
        assert Path(folder).is_dir()

    return SimpleNamespace(
        start_run=nullcontext,
        log_metrics=log_metrics,
        log_metric=lambda name, value: float(value),
        log_params=dict,
        log_artifacts=log_artifacts,
    )


def stand_in_for_optuna() -> Any:
    """A study that draws at random; the second trial is pruned."""

    class TrialPruned(Exception):  # noqa: N818 - as in optuna
        pass

    class Trial:
        def __init__(self, number: int) -> None:
            self.rng, self.number = np.random.default_rng(number), number
            self.params: dict[str, float] = {}

        def suggest_int(self, name: str, low: int, high: int) -> int:
            self.params[name] = int(self.rng.integers(low, high + 1))
            return int(self.params[name])

        def suggest_float(self, name: str, low: float, high: float, log: bool) -> float:
            self.params[name] = float(np.exp(self.rng.uniform(np.log(low), np.log(high))))
            return self.params[name]

        def report(self, value: float, step: int) -> None:
            assert np.isfinite(value)

        def should_prune(self) -> bool:
            return self.number == 1

    class Study:
        def optimize(self, objective: Callable[[Trial], float], n_trials: int) -> None:
            scores = {}
            for trial in map(Trial, range(n_trials)):
                with suppress(TrialPruned):
                    scores[trial] = objective(trial)
            assert len(scores) == n_trials - 1
            self.best_params = max(scores, key=scores.__getitem__).params

    return SimpleNamespace(create_study=lambda direction: Study(), TrialPruned=TrialPruned)


class AnnData:
    """What the recipe needs of anndata.AnnData."""

    X = obs = obsm = varm = layers = var_names = obs_names = None  # attributes of the class

    def __init__(self, values: Any) -> None:
        self.X = values
        self.obs, self.obsm, self.varm, self.layers = {}, {}, {}, {}
        self.var_names = [str(n) for n in range(values.shape[1])]
        self.obs_names = [str(t) for t in range(values.shape[0])]


def small_corpus() -> efemb.Corpus:
    rng = np.random.default_rng(0)
    words = ["police", *(f"word{n}" for n in range(59))]
    return efemb.read_text([[words[i] for i in rng.integers(0, 60, 30)] for _ in range(40)])


def small_recording(**settings: Any) -> Any:
    from efemb.simulation.recording import simulate_zebrafish

    return simulate_zebrafish(n_neurons=60, n_frames=80, n_fields=8, seed=0)


STAND_INS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "fetch_complete_journey": (efemb.datasets, lambda: trips(1500)),
    "fetch_movielens_100k": (efemb.datasets, lambda: trips(200, 30)),
    "fetch_lee": (efemb.datasets, small_corpus),
    "simulate_zebrafish": (efemb.simulation, small_recording),
}


def test_there_are_examples() -> None:
    assert {"README.md-0", "CONTRIBUTING.md-0", "start.md-0", "text.md-0"} <= set(BLOCKS)
    assert len(EXAMPLES) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.filterwarnings("ignore:.*was still improving")
def test_block_runs(name: str, tmp_path: Path) -> None:
    if name.startswith("README"):
        write_trips(tmp_path / "trips.csv")
    exec(compile(BLOCKS[name], name, "exec"), {"__name__": "__main__"})


def added_by_contributing(class_name: str) -> dict[str, Any]:
    """What the block of CONTRIBUTING.md that defines a class leaves behind."""
    (block,) = [
        text
        for name, text in BLOCKS.items()
        if name.startswith("CONTRIBUTING") and f"class {class_name}(" in text
    ]
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(block, class_name, "exec"), names)
    return names


def basket_means(rho: Any, model: Any, counts: Any) -> Any:
    """exp(rho_n . sum of x_m alpha_m / sum of x_m + intercept_n), m other than n, as loops."""
    means = np.zeros(counts.shape)
    for t, row in enumerate(counts):
        for n in range(len(row)):
            others = [m for m in range(len(row)) if m != n]
            total = sum(row[m] for m in others)
            context = sum(row[m] * model.alpha_[m] for m in others) / (total or 1.0)
            means[t, n] = np.exp(rho[n] @ context + model.intercept_[n])
    return means


def test_the_family_of_contributing_is_its_density() -> None:
    names = added_by_contributing("Exponential")
    model, waits = names["model"], names["waits"]
    expected = stats.expon.logpdf(waits, scale=model.conditional(waits)).mean()
    assert model.score(waits) == pytest.approx(expected, rel=1e-5)


def test_the_context_of_contributing_is_a_ring() -> None:
    names = added_by_contributing("Ring")
    model, X = names["model"], names["signals"]
    means = np.zeros(X.shape)
    for n in range(X.shape[1]):
        before, after = (n - 1) % 8, (n + 1) % 8
        context = np.outer(X[:, before], model.alpha_[before])
        context += np.outer(X[:, after], model.alpha_[after])
        means[:, n] = context @ model.rho_[n] + model.intercept_[n]
    np.testing.assert_allclose(model.conditional(X), means, rtol=1e-4, atol=1e-5)


def test_the_structure_of_contributing_adds_brands() -> None:
    names = added_by_contributing("Branded")
    model, counts = names["model"], names["trips"]
    assert model.rho_.shape == (8, 2)
    rho = [model.rho_[n] + model.rho_[6 + n // 3] for n in range(6)]
    expected = basket_means(rho, model, counts)
    np.testing.assert_allclose(model.conditional(counts), expected, rtol=1e-4)


def test_the_term_of_contributing_shifts_the_predictor() -> None:
    names = added_by_contributing("RowCovariate")
    model, counts, weekend = names["model"], names["counts"], names["weekend"]
    effect = model.parameters_.named()["weekend.effect"].ravel()
    assert effect[0] > 0 > effect[1]  # beer is bought at the weekend, milk is not
    expected = basket_means(model.rho_, model, counts) * np.exp(np.outer(weekend, effect))
    np.testing.assert_allclose(model.conditional(names["trips"]), expected, rtol=1e-4)


def test_every_block_is_of_a_kind_that_runs() -> None:
    kinds = {
        kind
        for path in DOCUMENTS
        for kind in re.findall(r"^```(\S+)", path.read_text(), re.MULTILINE)
    }
    assert kinds <= {"python", "text", "{toctree}", "{help-of-commands}", "{include}"}


def test_figures_are_told_once() -> None:
    """No line of a table of the README stands on the page of figures again."""
    pages = [(ROOT / name).read_text("utf-8") for name in ("README.md", "docs/figures.md")]
    readme, figures = (set(re.findall(r"^\| ([^|]*) \|", page, re.MULTILINE)) for page in pages)
    assert readme
    assert not readme & figures


# These need the data of the paper's studies or many files, or serve until they are interrupted;
# tests of their own run them.
NOT_RUN = (
    "efemb demo",
    "efemb explore model --data trips.csv",
    "efemb reproduce movies --quick",
    'efemb shards "lines/*.parquet" --basket order --item sku --out store',
)


def commands_of(name: str) -> list[str]:
    """Commands of a page in their order: lines of blocks, last cells of a table."""
    text = (ROOT / name).read_text("utf-8")
    lines = re.findall(r"^(?:    )?(efemb .*)$", text, re.MULTILINE)
    cells = re.findall(r"\| `(efemb [^`]*)` \|$", text, re.MULTILINE)
    return [line for line in [*lines, *cells] if line not in NOT_RUN]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["README.md", "docs/index.md", "docs/start.md", "docs/commands.md", "docs/shop.md"],
)
def test_commands_run_one_after_the_other(name: str, tmp_path: Path) -> None:
    """Remarks follow after two spaces."""
    from efemb.cli import main

    (tmp_path / "january.csv").write_bytes((tmp_path / "new-trips.csv").read_bytes())
    trips = efemb.datasets.fetch_sample_trips()
    for folder in ("summer", "winter"):
        efemb.PoissonEmbedding(2, random_state=0).fit(trips).save(tmp_path / folder)
    (tmp_path / "trips.csv").unlink()
    assert len(commands_of(name)) >= 2
    for line in commands_of(name):
        program, *arguments = shlex.split(line.partition("  ")[0])
        assert program == "efemb"
        with pytest.raises(SystemExit) as done:
            main(arguments)
        assert not done.value.code, line


def commands() -> set[tuple[str, ...]]:
    """Every `efemb ...` of the documents: the command, then its options."""
    text = "\n".join(path.read_text("utf-8") for path in DOCUMENTS)
    found = re.findall(r"^ *efemb (?!COMMAND)(\S+)(.*?)(?:  .*)?$", text, re.MULTILINE)
    return {(name, *re.findall(r"(?<!\S)--?[a-z][\w-]*", rest)) for name, rest in found}


@pytest.mark.parametrize("name", sorted({command[0] for command in commands()}))
def test_commands_are_those_of_the_program(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from efemb.cli import main

    with pytest.raises(SystemExit) as done:
        main([name, "--help"])
    assert not done.value.code
    known = set(re.findall(r"(?<!\S)--?[a-z][\w-]*", capsys.readouterr().out))
    used = {option for command in commands() if command[0] == name for option in command[1:]}
    assert used <= known


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
@pytest.mark.filterwarnings("ignore:.*was still improving")
def test_gallery_example_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import pyplot

    for name, (module, stand_in) in STAND_INS.items():
        monkeypatch.setattr(module, name, stand_in)
    code = path.read_text("utf-8")
    # Samples come with the package.
    fetched = set(re.findall(r"\b(?:fetch_(?!sample_)\w+|simulate_zebrafish)", code))
    assert fetched <= set(STAND_INS), "an example of the gallery must not need the network"
    exec(compile(code, path.name, "exec"), {"__name__": "__main__"})
    pyplot.close("all")
