"""Models of the neuron study: the paper's figures, its settings and ours, and the plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

# Mean squared errors of the paper's table: (model, c, K) -> one neuron out, 25% of neurons out.
PRINTED = {
    ("FA", 0, 10): ("0.290 ± 0.003", "0.290 ± 0.003"),
    ("FA", 0, 100): ("0.275 ± 0.003", "0.276 ± 0.003"),
    ("g-emb", 10, 10): ("0.239 ± 0.006", "0.246 ± 0.004"),
    ("g-emb", 10, 100): ("0.239 ± 0.005", "0.245 ± 0.003"),
    ("g-emb", 50, 10): ("0.227 ± 0.002", "0.235 ± 0.003"),
    ("g-emb", 50, 100): ("0.222 ± 0.002", "0.232 ± 0.003"),
    ("ng-emb", 10, 10): ("0.263 ± 0.004", "0.250 ± 0.004"),
    ("ng-emb", 10, 100): ("0.261 ± 0.004", "0.261 ± 0.004"),
}
# The same errors of an independent program on split 0, one neuron out, differenced.
KNOWN = {
    ("thunder", "FA", 0, 10): 0.146,
    ("thunder", "FA", 0, 100): 0.110,
    ("thunder", "g-emb", 10, 10): 0.088,
    ("thunder", "g-emb", 10, 100): 0.088,
    ("thunder", "g-emb", 50, 10): 0.089,
    ("thunder", "g-emb", 50, 100): 0.083,
    ("tectum", "FA", 0, 10): 0.822,
    ("tectum", "g-emb", 10, 10): 0.834,
    ("tectum", "g-emb", 50, 10): 0.808,
}
# Settings of the paper (its table of hyperparameters), ours, and why.
SETTINGS = (
    (
        "data",
        "x_t - x_(t-1)",
        "the same, in units of the overall s.d.",
        "errors are shares of the variance",
    ),
    ("frames", "90 / 5 / 5% at random", "the same; the seed determines the split", ""),
    ("context", "10 or 50 nearest neurons", "the same", "ball tree on all coordinates"),
    ("K", "10, 100", "the same", ""),
    ("lambda, g-emb", "10", "10", "on both kinds of vectors"),
    ("lambda, ng-emb", "0.1", "0.1, half-normal", "as the supplement's gradient; also log-normal"),
    ("sigma^2", "not stated", "1; also learned", "if learned, it rescales lambda"),
    ("intercept", "none", "none", ""),
    (
        "optimizer",
        "Adagrad, 100 frames per step",
        "L-BFGS on moments",
        "exact, and no step to choose",
    ),
    ("iterations", "500", "until validation stops improving", "5 scores without improvement"),
    (
        "missing neighbors",
        "smaller sums",
        "the same; two alternatives",
        "means preserve the scale",
    ),
)
BATCH_FRAMES, ITERATIONS = 100, 500
ADAGRAD_STEPS = (0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class NeuronModel:
    """A model and how it is fitted.

    model : "mean" (of each neuron), "FA", "g-emb" or "ng-emb";  k, c : 0 if it has none
    penalty, prior : the paper's lambda, and the prior it applies to
    scale : "none" sums over neighbors, "items" takes their mean
    outside : the nearest neurons of the other folds, so that leaving a fold out removes none
    step : constant of Adagrad, with the paper's minibatches; None solves exactly
    """

    model: str
    k: int = 0
    c: int = 0
    penalty: float = 10.0
    prior: str = "normal"
    sigma2: float | str = 1.0
    scale: str = "none"
    outside: bool = False
    step: float | None = None

    @property
    def name(self) -> str:
        """The paper's name, and differences from it."""
        text = f"{self.model} (c={self.c})" if self.c else self.model
        return ", ".join([text, *self.differences()])

    def differences(self) -> list[str]:
        """Differences from the main table."""
        texts = []
        if self.prior == "log-normal":
            texts.append("log-normal")
        if self.sigma2 == "learned":
            texts.append("sigma^2 learned")
        if self.scale == "items":
            texts.append("mean of neighbors")
        if self.outside:
            texts.append("neighbors of other folds")
        if self.step is not None:
            texts.append("minibatches")
        return texts

    def printed(self) -> tuple[str, str]:
        """The paper's two figures; empty if it has none."""
        plain = not self.differences()
        return PRINTED.get((self.model, self.c, self.k), ("", "")) if plain else ("", "")

    def settings(self) -> dict[str, Any]:
        """All settings, as JSON."""
        return asdict(self)


def list_main_models(ks: tuple[int, ...]) -> list[NeuronModel]:
    """The rows of the paper's table, and the mean of each neuron."""
    models = [NeuronModel("mean")]
    for k in ks:
        models += [
            NeuronModel("FA", k),
            NeuronModel("g-emb", k, 10),
            NeuronModel("g-emb", k, 50),
            make_nonnegative(k),
        ]
    return models


def make_nonnegative(k: int, prior: str = "half-normal") -> NeuronModel:
    """ng-emb: the supplement's gradient is that of a half-normal, the text says log-normal."""
    return NeuronModel("ng-emb", k, 10, penalty=0.1, prior=prior)


def list_other_readings(ks: tuple[int, ...]) -> list[NeuronModel]:
    """Where the paper is ambiguous, the other reading."""
    models = []
    for k in ks:
        models.append(make_nonnegative(k, "log-normal"))
        for c in (10, 50):
            plain = NeuronModel("g-emb", k, c)
            models.append(replace(plain, sigma2="learned"))
            # With lambda / c this is the same model as long as all neighbors are observed.
            models.append(replace(plain, scale="items", penalty=plain.penalty / c))
            models.append(replace(plain, outside=True))
    return models


def list_minibatch_models(
    models: list[NeuronModel], steps: tuple[float, ...] = ADAGRAD_STEPS
) -> list[NeuronModel]:
    """The same models with the paper's optimizer, for each of its constants."""
    return [replace(model, step=step) for model in models for step in steps]


@dataclass(frozen=True)
class Plan:
    """Models and sizes of a run.

    ks : lengths of the vectors
    n_thunder : number of voxels of zebrafish-thunder, chosen at random; None: all
    n_simulated, n_frames : size of the simulated recording
    iterations, steps : of the paper's optimizer; few_steps for large recordings, where it is slow
    """

    recordings: tuple[str, ...] = ("thunder", "tectum", "simulated")
    ks: tuple[int, ...] = (10, 100)
    n_thunder: int | None = None
    n_simulated: int = 10_000
    n_frames: int = 3_000
    iterations: int = ITERATIONS
    steps: tuple[float, ...] = ADAGRAD_STEPS
    few_steps: tuple[float, ...] = (0.1, 0.3)

    @property
    def figure_model(self) -> NeuronModel:
        """The model of the paper's figure."""
        return NeuronModel("g-emb", max(self.ks), 50)

    def minibatches(self, recording: str) -> list[NeuronModel]:
        """Models that are fitted with the paper's optimizer, whose cost grows with the data."""
        models = [model for model in list_main_models(self.ks) if model.c]
        if recording == "tectum":
            return list_minibatch_models(models, self.steps)
        small = NeuronModel("g-emb", min(self.ks), 10)
        return list_minibatch_models([small], self.few_steps) if recording == "thunder" else []


FULL = Plan()
QUICK = Plan(
    ks=(10,),
    n_thunder=2_000,
    n_simulated=1_000,
    n_frames=400,
    iterations=40,
    steps=(0.1, 0.3),
    few_steps=(0.3,),
)
