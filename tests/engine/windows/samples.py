"""Small texts, and passes over them whose draws can be looked at."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import efemb
from efemb.data.vocabulary import Vocabulary
from efemb.engine.optimizers.first_order import OptimizerState
from efemb.engine.plan import Plan
from efemb.engine.random import RoundKey
from efemb.engine.solvers.windows.chunks import Streams
from efemb.engine.solvers.windows.passes import WindowPasses
from efemb.engine.solvers.windows.solver import WindowsSolver
from efemb.engine.state import TrainState
from efemb.engine.threads import Workers
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from engine.windows import plain

Array = Any
# Longer and shorter than a window, one word, nothing, one word twice.
LENGTHS = (7, 1, 3, 0, 2, 5)


def corpus(
    lengths: tuple[int, ...] = LENGTHS, n_words: int = 5, seed: int = 0, counts: Any = None
) -> efemb.Corpus:
    """Every word occurs if there are enough tokens; word 0 most often."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    share = 1.0 / np.arange(1.0, n_words + 1.0)
    tokens = rng.choice(n_words, n, p=share / share.sum())
    few = min(n, n_words)
    tokens[rng.permutation(n)[:few]] = np.arange(few)
    words = [f"w{i}" for i in range(n_words)]
    vocabulary = Vocabulary(words, counts=counts) if counts is not None else words
    return efemb.Corpus(tokens, np.cumsum([0, *lengths]), vocabulary)


def documents(text: efemb.Corpus) -> plain.Documents:
    edges = text.starts.tolist()
    return [text.tokens[a:b].tolist() for a, b in pairwise(edges)]


def parameters(
    n_words: int, k: int, intercept: bool, *, seed: int = 1, tied: bool = False
) -> Parameters:
    rng = np.random.default_rng(seed)
    rho = rng.normal(0.0, 0.5, (n_words, k))
    alpha = rho if tied else rng.normal(0.0, 0.5, (n_words, k))
    return Parameters(rho, alpha, rng.normal(0.0, 0.5, n_words) if intercept else None)


def spec(context: Any, zeros: Any, **changes: Any) -> Spec:
    """Bernoulli against negative sampling; categorical against anything else."""
    family = "bernoulli" if type(zeros) is efemb.NegativeSampling else "categorical"
    options = {"context": context, "zeros": zeros, "family": family, "prior": None}
    return Spec.resolve(**{**options, **changes})


def passes(
    model: Spec,
    text: efemb.Corpus,
    start: Parameters,
    optimizer: Any,
    *,
    n_passes: int = 1,
    workers: Workers | None = None,
    deterministic: bool = False,
) -> WindowPasses:
    bound = model.context.bind(text)
    solver = WindowsSolver(bound, model, workers or Workers(1), dtype=np.float64)
    space = ParameterSpace(model, bound.n_entities, bound.n_slots, 1, start.rho.shape[1])
    plan = Plan(space, optimizer, None, n_passes, 0, bound.n_rows, deterministic=deterministic)
    state = TrainState(start, start, OptimizerState("", {}), model.family)
    return WindowPasses(solver, state, plan)


def drawn(run: WindowPasses, seed: int) -> plain.Outputs:
    """What the next pass with this seed will see, chunk after chunk."""
    parts = [plain.Outputs.of(run.streams.draw(c)) for c in chunks(run, seed)]
    return plain.Outputs.joined(parts)


def chunks(run: WindowPasses, seed: int) -> Any:
    return run.streams.chunks.drawn(RoundKey(seed).generator("text"))


def go(run: WindowPasses, seed: int) -> float:
    return run.run(RoundKey(seed), lambda part: False).objective


def tables(model: Spec, start: Parameters, offset: Array | float = 0.0) -> plain.Tables:
    """Which vectors predict and which are summed."""
    n = len(start.rho)
    pair = (start.alpha, start.rho) if model.combine.reverse else (start.rho, start.alpha)
    bias = np.zeros(n) if start.intercept is None else start.intercept
    return plain.Tables(*pair, bias, np.zeros(n) + offset)


def moves(before: Parameters, after: Parameters, step: float, reverse: bool) -> tuple[Array, ...]:
    """(new - old) / step of target, bag and bias."""
    rho, alpha = (after.rho - before.rho) / step, (after.alpha - before.alpha) / step
    bias = np.zeros(len(rho))
    if before.intercept is not None:
        assert after.intercept is not None
        bias = (after.intercept - before.intercept) / step
    return (alpha, rho, bias) if reverse else (rho, alpha, bias)


def streams(text: efemb.Corpus, zeros: Any, **context: Any) -> Streams:
    model = spec(efemb.Window(2, **context), zeros)
    return Streams(model.context.bind(text), model)


def outputs(source: Streams, seed: int) -> plain.Outputs:
    chosen = source.chunks.drawn(np.random.default_rng(seed))
    return plain.Outputs.joined([plain.Outputs.of(source.draw(c)) for c in chosen])
