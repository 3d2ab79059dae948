"""Passes over a text: the tables of vectors that kernels update, and how threads share them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.optimizers.first_order import NO_OFFSETS, FirstOrder, OptimizerState
from efemb.engine.plan import Plan
from efemb.engine.random import RoundKey
from efemb.engine.solvers.windows.chunks import Chunk
from efemb.engine.state import TrainState, Update
from efemb.errors import DivergenceError, ParameterError
from efemb.kernels.hot_rows import borrow, give_back, rename
from efemb.kernels.windows import (
    BIAS,
    BIAS_SQUARES,
    EXTRAS,
    OFFSET,
    SHRINK,
    SQUARES,
    cbow,
    skipgram,
    skipgram_apart,
)

if TYPE_CHECKING:
    from efemb.engine.solvers.windows.solver import WindowsSolver

LINE, GRAIN = 16, 4  # numbers per cache line, and per smallest vector of the kernels
MOST_PROXIMAL_STEPS = 8  # of the prior of groups, per pass
OUTPUTS_PER_ROW = 16  # minimum number of outputs of the text per row that a proximal step visits
BLOCK = 1 << 20  # offsets that are processed at a time, so that they stay in the cache


class WindowPasses:
    """Tables with the vectors for the kernels and the sums of the optimizer next to them.

    Several threads update the same tables without locks, which is fast but not repeatable to the
    last bit. With `deterministic`, one thread makes all steps and the others draw outputs ahead.
    """

    one_by_one = False  # whether steps wait for each other even if not `deterministic`

    def __init__(self, solver: WindowsSolver, state: TrainState, plan: Plan) -> None:
        optimizer = cast(FirstOrder, plan.shard_optimizer)
        if not optimizer.by_word:
            raise ParameterError(f"solver 'windows' takes Adagrad or SGD, got {optimizer!r}")
        if optimizer.decay not in (0, "linear"):
            raise ParameterError(
                f"solver 'windows' takes SGD(decay=0 or 'linear'), got {optimizer!r}"
            )
        if optimizer.shared != 1 and not solver.spec.structure.grouped:
            raise ParameterError(NO_OFFSETS)
        self.solver, self.space, self.optimizer = solver, plan.space, optimizer
        # Replicas keep that of a single fit: here it is only where the sums of squares start.
        self.epsilon = cast(FirstOrder, plan.optimizer).epsilon
        self.n_passes, self.done = plan.n_rounds, state.round
        self.deterministic = plan.deterministic or self.one_by_one
        self.streams, self.parameters = solver.streams, state.parameters
        self._fill()
        self.name = f"{plan.optimizer!r} of windows"  # other optimizers have other sums
        if state.optimizer.optimizer == self.name:
            self._restore(state.optimizer)

    # -- tables ---------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Make the tables. A row has a vector, then its sum of squares, its intercept, ..."""
        vectors = self.space.vectors(self.parameters)
        self.k = vectors.target.shape[1]
        self.width = -(-self.k // GRAIN) * GRAIN
        total = -(-(self.width + EXTRAS) // LINE) * LINE
        self.slots = Slots(1 if self.deterministic else self.solver.pool.n)
        # Each copy of a row would apply the whole shrinkage of the prior, so there are no copies.
        n_slots = 1 if any(self.space.shrinkage()[:2]) else self.slots.n
        n_tokens = self.solver.bound.n_rows
        share = min(1.0, self.streams.chunks.largest(n_tokens, self.slots.n) / n_tokens)
        outputs, members = (share * visits for visits in self.streams.visits(pairs=False))
        tied = self.solver.spec.structure.tied
        hot = busiest(outputs + members if tied else outputs, n_slots)
        n, dtype = len(vectors.target), vectors.target.dtype
        self.all_target = _aligned(n + n_slots * len(hot), total, dtype)
        self.target = self.all_target[:n]
        self.hot = [HotRows(self.all_target, hot, n_slots)]
        self.all_bag, self.bag = self.all_target, self.target
        if not tied:
            hot = busiest(members, n_slots)
            self.all_bag = _aligned(n + n_slots * len(hot), total, dtype)
            self.bag = self.all_bag[:n]
            self.hot.append(HotRows(self.all_bag, hot, n_slots))
        self.target[:, : self.k] = vectors.target
        self.bag[:, : self.k] = vectors.bag
        # Steps are divided by the roots of the sums; vectors of infinite sums stay where they are.
        start = self.epsilon
        if not self.optimizer.sums_squares:
            start = self.optimizer.shared**-2.0 if self.optimizer.shared else np.inf
        for table in (self.target, self.bag):
            table[:, self.width + SQUARES] = start
            table[:, self.width + BIAS_SQUARES] = start
        self.target[:, self.width + BIAS] = vectors.intercept
        self.target[:, self.width + OFFSET] = self._offset()
        self._set_shrinkage(SHRINK)

    def _offset(self) -> Floats | float:
        zeros = self.solver.spec.zeros
        if not zeros.by_noise or zeros.odds:
            return 0.0
        noise = zeros.n * self.streams.share
        # A word that is never drawn is treated as rarer than all others, not as impossible.
        return np.asarray(-np.log(np.maximum(noise, 0.1 * noise[noise > 0].min())))

    def _set_shrinkage(self, column: int) -> None:
        """Divide the shrinkage of each row among its visits in a pass."""
        rho, alpha = self.space.shrinkage()[:2]
        if self.solver.spec.structure.tied:
            alpha = rho
        first, second = (alpha, rho) if self.solver.spec.combine.reverse else (rho, alpha)
        if rho == alpha == 0:
            return
        outputs, members = self.streams.visits(pairs=self.solver.spec.combine.reverse)
        self.bag[:, self.width + column] = second / np.maximum(members, 1.0)
        if self.target is self.bag:
            outputs = outputs + members
        self.target[:, self.width + column] = first / np.maximum(outputs, 1.0)

    def _read(self) -> None:
        """Copy the tables to the parameters, in place: new arrays would double the memory."""
        tables = (self.target, self.bag)
        rho, alpha = reversed(tables) if self.solver.spec.combine.reverse else tables
        self.parameters.rho[...] = rho[:, : self.k]
        self.parameters.alpha[...] = alpha[:, : self.k]
        if self.parameters.intercept is not None:
            self.parameters.intercept[...] = self.target[:, self.width + BIAS]

    def state(self) -> OptimizerState:
        """The sums of squares of the optimizer."""
        arrays = {}
        for name, table in (("target", self.target), ("bag", self.bag)):
            arrays[name] = table[:, self.width + SQUARES].copy()
        arrays["bias"] = self.target[:, self.width + BIAS_SQUARES].copy()
        return OptimizerState(self.name, arrays)

    def _restore(self, state: OptimizerState) -> None:
        for name, table in (("target", self.target), ("bag", self.bag)):
            table[:, self.width + SQUARES] = state.arrays[name]
        self.target[:, self.width + BIAS_SQUARES] = state.arrays["bias"]

    @property
    def moves_intercepts(self) -> bool:
        """Whether the kernels update intercepts."""
        return self.solver.spec.intercept

    # -- steps ----------------------------------------------------------------------------------

    def run(self, key: RoundKey, watch: Callable[[float], bool]) -> Update:
        """Step on every token until `watch(share done)` is true."""
        chunks = self.streams.chunks.drawn(key.generator("text"), self.slots.n)
        n_tokens = sum(chunk.n_tokens for chunk in chunks)
        total, seen = 0.0, 0
        for value, chunk in zip(self._run(chunks, n_tokens), chunks, strict=False):
            total += value
            seen += chunk.n_tokens
            if not np.isfinite(value):
                raise DivergenceError(
                    f"training diverged (NaN or infinity): the objective became {value} in pass "
                    f"{self.done + 1}; lower the optimizer's step (for example "
                    "optimizer=Adagrad(step=0.1, epsilon=1e-4))"
                )
            if watch(seen / n_tokens):
                self.stopped = True
                break
        self.done += 1
        self._read()
        objective = total * n_tokens / max(seen, 1) + self.space.log_prior(self.parameters)
        steps = key.first_step + len(chunks)
        return Update(self.parameters, self.parameters, self.state(), steps, objective)

    stopped = False

    def _run(self, chunks: list[Chunk], n_tokens: int) -> Any:
        """Yield the values of the chunks; all threads step, or one steps and the others draw."""
        before = np.cumsum([0, *(chunk.n_tokens for chunk in chunks)])
        steps = [self._step_size(part / n_tokens) for part in before[:-1]]
        jobs = list(zip(chunks, steps, strict=True))
        pool, draw, step = self.solver.pool, self._draw, self._step
        if self.deterministic:
            drawn = pool.ahead(lambda job: (draw(job[0]), job[1]), jobs)
            return (step(*one) for one in drawn)
        return pool.ahead(lambda job: 0.0 if self.stopped else step(draw(job[0]), job[1]), jobs)

    def _draw(self, chunk: Chunk) -> tuple[Any, ...]:
        return *self.streams.draw(chunk), self.streams.second_rows(chunk)

    def _step_size(self, part: float) -> float:
        if self.optimizer.decay == "linear":
            left = 1.0 - (self.done + part) / self.n_passes
            return self.optimizer.step * max(left, 1e-4)
        return float(self.optimizer.step)

    def _step(self, drawn: Any, step: float) -> float:
        """Steps on a chunk; each of several threads has its own copies of the busiest rows."""
        tokens, _, _, rows, *_ = drawn  # used by this step only, so they are renamed in place
        if len(tokens) == 0:
            return 0.0
        if len(self.hot[0].hot) == 0:
            return self._steps(drawn, step)
        slot = self.slots.free.get()
        places = [rows_of.borrow(slot) for rows_of in self.hot]
        rename(tokens, places[-1])
        rename(rows, places[0])
        try:
            return self._steps(drawn, step)
        finally:
            with self.slots.lock:
                for rows_of in self.hot:
                    rows_of.give_back(slot)
            self.slots.free.put(slot)

    def _steps(self, drawn: Any, step: float) -> float:
        tokens, starts, *outputs, reach, second = drawn
        spec, real = self.solver.spec, self.target.dtype.type
        gain = real(1.0 if self.optimizer.sums_squares else 0.0)
        bias = real(step if self.moves_intercepts else 0.0)
        size = self.solver.bound.reach
        data: tuple[Any, ...] = (
            tokens,
            starts,
            *outputs,
            self.all_target,
            self.all_bag,
            self.width,
            size,
        )
        rates = (real(1.0 / self.k), real(step), gain, bias)
        if spec.combine.reverse:
            arguments: Any = (*data, reach, *rates)
            steps = skipgram if spec.zeros.shared else skipgram_apart
            return float(steps(*arguments))
        mean = (self.solver.bound.scale != "none",)
        of_bag = second if spec.structure.contexts else None
        return float(cbow(*(data + mean + rates + (spec.zeros.among_draws, second, of_bag))))


class GroupedPasses(WindowPasses):
    """Passes over a text in which each group of documents adds an offset to the vectors of words.

    Below the rows of the words, the table has as many rows for each group. The kernel updates the
    row of a word and that of its offset in the same step. The prior of the offsets, which may
    couple groups, is applied by proximal steps several times per pass; they are exact, and stable
    for any precision. If groups have context vectors of their own, their table has the same form.
    """

    one_by_one = True

    def _fill(self) -> None:
        super()._fill()
        spec = self.solver.spec
        self.structure, self.pending = spec.structure, 0
        self.precision = spec.structure.step_precision(spec.prior_rho)
        n_groups = len(spec.structure.labels)
        self.all_target, self.target, self.offsets = _with_offsets(self.target, n_groups)
        self.all_offsets = [self.offsets]
        if self.structure.contexts:
            self.all_bag, self.bag, self.bag_offsets = _with_offsets(self.bag, n_groups)
            self.all_offsets.append(self.bag_offsets)
        own = self.space.of_structure(self.parameters.terms)
        if any(array.any() for array in own.values()):
            self._fill_offsets(own, np.arange(n_groups))
        # Sums of Adagrad start at the precision of the prior; infinite sums mean fixed numbers.
        start = self.precision if self.optimizer.sums_squares else 1.0
        for offsets in self.all_offsets:
            offsets[..., self.width + SQUARES] = start
        moves = self.structure.intercepts
        self.offsets[..., self.width + BIAS_SQUARES] = 1.0 if moves else np.inf
        if not spec.intercept:
            self.target[:, self.width + BIAS_SQUARES] = np.inf

    def _fill_offsets(self, own: dict[str, Floats], groups: Ints) -> None:
        """Compute the offsets from the arrays of the structure."""
        nothing = np.zeros((len(self.target), self.k), dtype=self.target.dtype)
        for words in self._blocks():
            part = {name: array[:, words] for name, array in own.items()}
            arguments = (part, nothing[words], nothing[words, 0], groups)
            vectors, intercepts = self.structure.spread_groups(*arguments)
            self.offsets[:, words, : self.k] = vectors
            self.offsets[:, words, self.width + BIAS] = intercepts
            if self.structure.contexts:
                contexts = self.structure.spread_contexts(part, nothing[words], groups)
                self.bag_offsets[:, words, : self.k] = contexts

    @property
    def moves_intercepts(self) -> bool:
        """Whether the kernels update the intercepts of the words or those of the groups."""
        return self.solver.spec.intercept or self.structure.intercepts

    def _run(self, chunks: list[Chunk], n_tokens: int) -> Any:
        self.n_tokens = n_tokens
        # A proximal step visits all rows of the tables: fewer steps if the text is short.
        n_rows = sum(offsets.shape[0] * offsets.shape[1] for offsets in self.all_offsets)
        outputs = n_tokens * (1 + self.streams.n)
        n_steps = int(np.clip(outputs // (OUTPUTS_PER_ROW * n_rows), 1, MOST_PROXIMAL_STEPS))
        for value, chunk in zip(super()._run(chunks, n_tokens), chunks, strict=False):
            self.pending += chunk.n_tokens
            if self.pending * n_steps >= n_tokens:
                self._step_offsets()
            yield value

    def _blocks(self) -> list[slice]:
        """Slices of the words whose offsets are processed at a time."""
        n_groups, n, total = self.offsets.shape
        size = max(1, BLOCK // (n_groups * total))
        return [slice(first, min(first + size, n)) for first in range(0, n, size)]

    def _step_offsets(self) -> None:
        """Apply the share of the prior that belongs to the text since the last proximal step."""
        share, step = self.pending / self.n_tokens, self._step_size(0.0)
        self.pending = 0
        for words in self._blocks():
            for table in self.all_offsets:
                offsets = table[:, words]
                vectors = offsets[..., : self.k]
                weight = np.sqrt(offsets[..., self.width + SQUARES]) / step
                vectors[...] = self.structure.proximal_step(vectors, weight, share * self.precision)
            offsets = self.offsets[:, words]
            vectors = offsets[..., : self.k]
            if not self.structure.intercepts:
                continue
            intercepts = offsets[..., self.width + BIAS]
            weight = np.sqrt(offsets[..., self.width + BIAS_SQUARES]) / step
            stepped = self.structure.proximal_step(intercepts[..., None], weight, share)
            intercepts[...] = stepped[..., 0]
            if not self.solver.spec.intercept:  # no intercepts of words could absorb their mean
                intercepts -= self.structure.from_offsets(vectors[..., :0], intercepts)[2]

    def _read(self) -> None:
        """Fill the arrays of the structure; the common part of offsets moves to the words."""
        if self.pending:
            self._step_offsets()
        for words in self._blocks():
            offsets, target = self.offsets[:, words], self.target[words]
            vectors, intercepts = offsets[..., : self.k], offsets[..., self.width + BIAS]
            own, common, shift = self.structure.from_offsets(vectors, intercepts)
            target[:, : self.k] += common
            target[:, self.width + BIAS] += shift
            if self.structure.contexts:
                contexts = self.bag_offsets[:, words, : self.k]
                more, common = self.structure.from_context_offsets(contexts)
                self.bag[words, : self.k] += common
                own |= more
            for name, array in own.items():
                self.parameters.terms[self.space.prefix + name][:, words] = array
        super()._read()

    def state(self) -> OptimizerState:
        """The sums of squares of the optimizer, those of the offsets included."""
        state = super().state()
        for name, sums in self._sums_of_offsets().items():
            state.arrays[name] = sums.copy()
        return state

    def _restore(self, state: OptimizerState) -> None:
        super()._restore(state)
        for name, sums in self._sums_of_offsets().items():
            sums[...] = state.arrays[name]

    def _sums_of_offsets(self) -> dict[str, Floats]:
        """Views of the sums of squares of offsets, by name in the state of the optimizer."""
        sums = {
            "offsets": self.offsets[..., self.width + SQUARES],
            "shifts": self.offsets[..., self.width + BIAS_SQUARES],
        }
        if self.structure.contexts:
            sums["contexts"] = self.bag_offsets[..., self.width + SQUARES]
        return sums


def _with_offsets(table: Floats, n_groups: int) -> tuple[Floats, Floats, Floats]:
    """A table with further rows for each group: the whole, the copy of `table`, the new rows."""
    n, width = table.shape
    whole = _aligned((1 + n_groups) * n, width, table.dtype)
    blocks = whole.reshape(1 + n_groups, n, width)
    blocks[0] = table
    return whole, blocks[0], blocks[1:]


def _aligned(n_rows: int, width: int, dtype: Any) -> Floats:
    """Zeros whose rows start at cache lines, so that no vector instruction crosses two lines."""
    spare = np.zeros(n_rows * width + LINE, dtype)
    first = -(spare.ctypes.data // spare.itemsize) % LINE
    return spare[first : first + n_rows * width].reshape(n_rows, width)


WORTH = 16  # visits of a row that justify a copy, which costs as much as a few of them


class HotRows:
    """A table with spare rows at its end, to which threads copy the most visited rows.

    Without copies, threads would wait for each other's cache lines.

    table : array (rows + n_slots * len(hot), width)
    hot : rows to copy;  n_slots : number of threads that may have copies at a time
    """

    def __init__(self, table: Floats, hot: Ints, n_slots: int) -> None:
        self.table, self.hot = table, hot
        self.first = len(table) - n_slots * len(hot)
        self.base = np.zeros((n_slots, len(hot), table.shape[1]), table.dtype)
        self.places = np.tile(np.arange(self.first, dtype=np.int32), (n_slots, 1))
        for slot, places in enumerate(self.places):
            places[hot] = self.first + slot * len(hot) + np.arange(len(hot))

    def borrow(self, slot: int) -> Ints:
        """Copy the hot rows; returns the place of every row for this slot."""
        # Another thread may be writing them: a row that is half old and half new does no harm.
        borrow(self.table, self.hot, self.first + slot * len(self.hot), self.base[slot])
        return np.asarray(self.places[slot])

    def give_back(self, slot: int) -> None:
        """Add the changes of the copies to the rows; only one thread may do so at a time."""
        give_back(self.table, self.hot, self.first + slot * len(self.hot), self.base[slot])


class Slots:
    """One slot for copies per thread, and a lock for adding them up."""

    def __init__(self, n: int) -> None:
        self.n, self.lock = n, threading.Lock()
        self.free: SimpleQueue[int] = SimpleQueue()
        for slot in range(n):
            self.free.put(slot)


def busiest(visits: Floats, n_slots: int) -> Ints:
    """Rows that are worth copying, given the expected visits per chunk; none for a single thread.

    At most a quarter of the rows: threads that share no rows would learn separate models.
    """
    size = min(int((visits >= WORTH).sum()), len(visits) // 4) if n_slots > 1 else 0
    return np.argsort(-visits, kind="stable")[:size]
